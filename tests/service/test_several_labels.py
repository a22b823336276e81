"""A model whose texts may have several labels, or none: what is assigned, refused, explained, told and counted."""

import logging
from collections.abc import Iterator
from math import exp
from typing import Any

import httpx
import pytest

from tests.service.clients import ask, numbers, refusal
from tests.service.server import lines, service, serving
from textcls import Classifier
from textcls.server.inference.schemas import ClassifyAnswer
from textcls.server.settings import Settings

TWO = "I forgot my password and want to cancel my subscription"
NONE = "Good morning team, all is well here."


@pytest.fixture(scope="module")
def client(several_labels: Classifier) -> Iterator[httpx.Client]:
    with serving(service(several_labels)) as found:
        yield found


def test_the_labels_of_a_text_are_those_that_python_assigns(client: httpx.Client, several_labels: Classifier) -> None:
    found = ask(client, inputs=[TWO, NONE])["results"]
    expected = several_labels.predict([TWO, NONE])
    assert [result["assigned"] for result in found] == [["account", "cancellation"], []]
    assert [result["assigned"] for result in found] == [list(answer.assigned) for answer in expected]
    assert [result["decision"] for result in found] == ["accept", "abstain"]
    for result, answer in zip(found, expected, strict=True):
        assert [tuple(each.values()) for each in result["labels"]] == answer.top()


def test_a_threshold_is_one_for_all_labels(client: httpx.Client, several_labels: Classifier) -> None:
    for threshold in (0.0, 0.1, 0.5, 1.0):
        (result,) = ask(client, inputs=TWO, threshold=threshold)["results"]
        reached = [each["label"] for each in result["labels"] if each["score"] >= threshold]
        assert result["assigned"] == reached
        assert result["decision"] == ("accept" if reached else "abstain")
    assert reached == []


def test_what_takes_a_label_away_is_looked_for_by_the_threshold_of_the_request(client: httpx.Client) -> None:
    def searched(text: str, **fields: float) -> dict[str, Any]:
        (result,) = ask(client, inputs=text, explain={"counterfactual": True}, **fields)["results"]
        found: dict[str, Any] = result["counterfactual"] | {"assigned": result["assigned"]}
        return found

    for text, fields in ((NONE, {}), (TWO, {"threshold": 1.0})):
        nothing = searched(text, **fields)
        assert (nothing["assigned"], nothing["found"]) == ([], None)
    assert searched(NONE, threshold=0.01)["assigned"]
    # What takes a label away that is assigned from its own threshold on does not where that is low.
    assert searched(TWO)["found"]["before_score"] > 0.01
    assert searched(TWO, threshold=0.01)["found"] is None


def test_top_k_limits_the_scores_and_not_what_is_assigned(client: httpx.Client) -> None:
    (result,) = ask(client, inputs=TWO, top_k=1)["results"]
    assert len(result["labels"]) == 1
    assert result["assigned"] == ["account", "cancellation"]


def test_what_is_said_of_each_label_adds_up_to_its_logit(client: httpx.Client, several_labels: Classifier) -> None:
    (result,) = ask(client, inputs=TWO, explain=True)["results"]
    assert list(result["logits"]) == [each["label"] for each in result["labels"]]
    for label, logit in result["logits"].items():
        parts = result["bias"][label] + sum(token["contributions"][label] for token in result["tokens"])
        assert parts == pytest.approx(logit, abs=1e-4)
    explanation = several_labels.explain(TWO)
    for label in result["assigned"]:
        added = [token["contributions"][label] for token in result["tokens"]]
        assert added == pytest.approx(explanation.attribution(label).values.tolist(), abs=1e-6)


def test_answers_of_several_labels_are_as_documented(client: httpx.Client) -> None:
    for explain in (False, True):
        answer = ask(client, inputs=[TWO, NONE, ""], explain=explain)
        assert ClassifyAnswer.model_validate(answer).model_dump(exclude_unset=True) == answer
        assert answer["model"]["format_version"] == 2


def test_the_model_tells_its_task_and_how_each_label_is_calibrated_and_assigned(
    client: httpx.Client, several_labels: Classifier
) -> None:
    (card,) = client.get("/v1/models").json()["models"]
    info = several_labels.info
    assert info.thresholds is not None
    assert (card["task"], card["threshold"]) == ("multi-label", None)
    assert card["thresholds"] == dict(zip(info.labels, info.thresholds, strict=True))
    (result,) = ask(client, inputs=TWO, explain=True)["results"]
    for label, score in (each.values() for each in result["labels"]):
        odds = card["scale"][label] * result["logits"][label] + card["shift"][label]
        assert score == pytest.approx(1 / (1 + exp(-odds)), abs=1e-5)


def test_the_description_tells_of_several_labels(client: httpx.Client) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["Result"]["properties"]["assigned"]["items"] == {"type": "string"}
    assert "assigned" not in schemas["Result"]["required"]
    assert schemas["ModelCard"]["properties"]["task"]["enum"] == ["single-label", "multi-label"]
    assert "thresholds" in schemas["ModelCard"]["properties"]


def test_a_threshold_that_is_no_probability_is_refused(client: httpx.Client) -> None:
    assert "threshold must be" in refusal(client, 422, {"inputs": TWO, "threshold": 1.5})
    assert "threshold must be" in refusal(client, 422, {"inputs": TWO, "threshold": {"account": 0.5}})


def test_every_assigned_label_is_counted(several_labels: Classifier) -> None:
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
        ("/v1/classify", {"inputs": [TWO, NONE]}),
        ("/predict", {"inputs": TWO}),
    )
    with serving(service(several_labels)) as client:
        for path, body in asked:
            assert client.post(path, json=body).status_code == 200
        found = numbers(client)
    assert found['textcls_predictions_total{label="account",model="tickets"}'] == 2
    assert found['textcls_predictions_total{label="cancellation",model="tickets"}'] == 2
    assert not any(name.startswith("textcls_predictions") and "returns" in name for name in found)
    assert found['textcls_abstentions_total{model="tickets"}'] == 1
    assert found['textcls_score_count{model="tickets"}'] == 3


def test_the_log_holds_the_labels_of_each_text_if_it_may(
    several_labels: Classifier, classifier: Classifier, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "textcls.requests")
    for model in (several_labels, classifier):
        with serving(service(model, Settings(log_requests=True, log_texts=True))) as client:
            ask(client, inputs=[TWO, NONE])
    several, one = (line["labels"] for line in lines(caplog, "textcls.requests"))
    assert several == [["account", "cancellation"], []]
    assert one == [answer.label for answer in classifier.predict([TWO, NONE])]
