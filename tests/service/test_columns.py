"""A model with columns beside the text over HTTP: objects are read with their columns, which answers explain."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.service.clients import ask, refusal
from tests.service.server import service, serving
from textcls import Classifier
from textcls.model.classifier import Text
from textcls.server.inference.schemas import ClassifyAnswer

ROW = {"text": "refund my order", "product": "Lamp XL", "price": 12.5, "opened": "2024-05-13T12:00"}


@pytest.fixture(scope="module")
def client(with_columns: Classifier) -> Iterator[httpx.Client]:
    with serving(service(with_columns)) as found:
        yield found


def test_an_object_is_read_with_its_columns_and_a_text_without(client: httpx.Client, with_columns: Classifier) -> None:
    expected = with_columns.predict(ROW, explain=True).as_json()
    assert ask(client, inputs=ROW, explain=True)["results"] == [expected]
    assert [cell["value"] for cell in expected["columns"]] == [
        "12.5",
        "2024-05-13 12:00",
        "lamp xl",
        "5",
        "Monday",
        "12",
    ]
    assert ask(client, inputs="refund my order")["results"] == [with_columns.predict("refund my order").as_json()]
    several: list[Text] = [ROW, "refund my order", {"text": "refund my order", "price": "12,5", "product": None}]
    answers = ask(client, inputs=several)["results"]
    scores = [with_columns.predict(row).score for row in several]
    assert [answer["score"] for answer in answers] == pytest.approx(scores, abs=1e-5)


def test_what_columns_add_is_part_of_the_evidence_and_of_the_description(client: httpx.Client) -> None:
    answer = ask(client, inputs=ROW, explain={"counterfactual": True, "parts": True})
    ClassifyAnswer.model_validate(answer)
    evidence = answer["results"][0]["evidence"]
    added = sum(column["added"] for column in evidence["columns"])
    changes = ask(client, inputs={"text": "hello", "product": "sofa"}, explain={"counterfactual": True})
    ClassifyAnswer.model_validate(changes)
    (change,) = changes["results"][0]["counterfactual"]["columns"]
    assert (change["column"], change["value"], change["by"]) == ("product", "sofa", "phone")
    assert evidence["bias"] + sum(evidence["tokens"]) + added == pytest.approx(evidence["total"], abs=1e-3)


def test_a_cell_that_is_a_list_is_refused(client: httpx.Client) -> None:
    said = refusal(client, 422, {"inputs": [ROW, {**ROW, "price": [1]}]})
    assert said == "inputs[1]: the column 'price' holds a list; write a string, a number or a date."
    said = refusal(client, 422, {"inputs": {**ROW, "price": {"euro": 1}}})
    assert said == "inputs[0]: the column 'price' holds an object; write a string, a number or a date."


def test_what_parts_columns_from_a_text_is_part_of_a_text_alone(client: httpx.Client) -> None:
    tokens = ask(client, inputs="refund\x1emy order", explain=True)["results"][0]["tokens"]
    assert [token["text"] for token in tokens] == ["refund", "my", "order"]


def test_values_that_say_nothing_are_counted_by_column_and_reason(client: httpx.Client) -> None:
    def counted() -> dict[tuple[str, str], float]:
        found = {}
        for line in client.get("/metrics").text.splitlines():
            if line.startswith("textcls_silent_values_total{"):
                labels = dict(re.findall(r'(\w+)="(.*?)"', line))
                found[labels["column"], labels["reason"]] = float(line.split()[-1])
        return found

    before = counted()
    ask(client, inputs=[ROW, {**ROW, "price": "much", "opened": ""}, {**ROW, "product": "new"}, "a text alone"])
    after = counted()
    assert {key: after[key] - before.get(key, 0) for key in after if after[key] != before.get(key)} == {
        ("price", "not understood"): 1,
        ("opened", "missing"): 2,
        ("product", "unseen"): 1,
        ("product", "missing"): 1,
        ("price", "missing"): 1,
    }


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/vllm/classify", {"input": "refund"}),
        ("/predict", {"inputs": "refund"}),
        (
            "/v2/models/tickets/infer",
            {"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["refund"]}]},
        ),
    ],
)
def test_a_format_that_has_no_place_for_columns_says_where_to_send_rows(
    client: httpx.Client, path: str, body: dict[str, Any]
) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code in (400, 422)
    assert "reads 'text', 'product', 'price' and 'opened' of a row" in answer.text


def test_kserve_has_rows(client: httpx.Client, with_columns: Classifier) -> None:
    instances: list[Text] = [ROW, "refund my order", {"text": "refund my order"}]
    for verb, said in (("predict", "predictions"), ("explain", "explanations")):
        found = client.post(f"/v1/models/tickets:{verb}", json={"instances": instances}).json()[said]
        explain = verb == "explain"
        assert found == [answer.as_json() for answer in with_columns.predict(instances, explain=explain)]
    assert 'textcls_silent_values_total{column="price"' in client.get("/metrics").text


def test_the_columns_are_told(client: httpx.Client, classifier: Classifier) -> None:
    (card,) = client.get("/v1/models").json()["models"]
    assert [(column["name"], column["kind"]) for column in card["columns"]] == [
        ("product", "category"), ("price", "number"), ("opened", "date"),
    ]  # fmt: skip
    with serving(service(classifier)) as other:
        assert "columns" not in other.get("/v1/models").json()["models"][0]
