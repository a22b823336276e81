"""What /v1/classify answers is what Python predicts."""

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.service.clients import ask, leaves
from tests.service.server import service, serving
from textcls import Classifier, Prediction
from textcls.server.inference.schemas import ClassifyAnswer
from textcls.server.settings import Settings

TEXTS = [
    "My card was charged twice",
    "",
    "naïve café 👩‍👩‍👧 e\u0301: 私の荷物はどこですか",
    "nul\0here and\u2003exotic\u00a0spaces",
    "half an emoji: \ud83d",
    "password " * 300,
]


def digest(classifier: Classifier) -> str:
    return hashlib.sha256(classifier.path.read_bytes()).hexdigest()


def as_json(prediction: Prediction, labels: int | None = None) -> dict[str, Any]:
    """What the service has to answer, written by way of the Python API alone."""
    top = prediction.top(labels)
    result: dict[str, Any] = {
        "label": prediction.label,
        "score": prediction.score,
        "labels": [score._asdict() for score in top],
        "decision": prediction.decision,
        "truncated": prediction.truncated,
    }
    if (explanation := prediction.explanation) is not None:
        names = [score.label for score in top]
        result["runner_up"] = explanation.runner_up
        result["completeness_error"] = explanation.completeness_error
        result["bias"] = {name: explanation.bias[name] for name in names}
        result["logits"] = {name: explanation.logits[name] for name in names}
        result["tokens"] = [
            {
                "text": token.text,
                "start": token.start,
                "end": token.end,
                "attention": token.attention,
                "contributions": {name: token.contributions[name] for name in names},
                "known": token.known,
            }
            for token in explanation.tokens
        ]
    return result


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("text", TEXTS, ids=["plain", "empty", "unicode", "nul", "surrogate", "truncated"])
def test_http_answers_exactly_what_python_predicts(
    client: httpx.Client, classifier: Classifier, text: str, explain: bool
) -> None:
    answer = ask(client, inputs=text, explain=explain)
    assert answer["results"] == [as_json(classifier.predict(text, explain=explain))]
    assert answer["model"] == {
        "name": classifier.path.stem,
        "version": digest(classifier)[:12],
        "format_version": 1,
        "labels": len(classifier.labels),
    }


@pytest.mark.parametrize("explain", [False, True])
def test_a_list_is_a_batch_in_the_same_order(client: httpx.Client, classifier: Classifier, explain: bool) -> None:
    answer = ask(client, inputs=TEXTS, explain=explain)
    assert answer["results"] == [as_json(p) for p in classifier.predict(TEXTS, explain=explain)]


def test_a_list_of_one_gives_what_the_text_alone_gives(client: httpx.Client) -> None:
    assert ask(client, inputs=[TEXTS[0]]) == ask(client, inputs=TEXTS[0])


def test_top_k_limits_labels_contributions_and_bias(client: httpx.Client, classifier: Classifier) -> None:
    (result,) = ask(client, inputs=TEXTS[0], top_k=2, explain=True)["results"]
    assert result == as_json(classifier.predict(TEXTS[0], explain=True), 2)
    assert len(result["labels"]) == len(result["bias"]) == 2


def test_top_k_beyond_the_labels_gives_all_of_them(client: httpx.Client, classifier: Classifier) -> None:
    (result,) = ask(client, inputs=TEXTS[0], top_k=10**30)["results"]
    assert {score["label"] for score in result["labels"]} == set(classifier.labels)


def test_without_explain_there_is_nothing_of_an_explanation(client: httpx.Client) -> None:
    explained = {"tokens", "bias", "logits", "runner_up", "completeness_error", "known"}
    assert not explained & set(ask(client, inputs="text")["results"][0])


def test_parts_of_an_answer_add_up_to_its_logits(client: httpx.Client) -> None:
    (result,) = ask(client, inputs=TEXTS[0], explain=True)["results"]
    assert result["completeness_error"] < 1e-5
    assert result["runner_up"] == result["labels"][1]["label"]
    for label, logit in result["logits"].items():
        parts = result["bias"][label] + sum(token["contributions"][label] for token in result["tokens"])
        assert parts == pytest.approx(logit, abs=1e-5)


def test_each_token_says_whether_the_model_knows_it(client: httpx.Client) -> None:
    answer = ask(client, inputs="my zqxv card", explain=True)
    assert [token["known"] for token in answer["results"][0]["tokens"]] == [True, False, True]
    assert ClassifyAnswer.model_validate(answer).model_dump(exclude_unset=True) == answer


def test_offsets_are_code_points_of_the_text_as_sent(client: httpx.Client) -> None:
    text = "👍🏽 Größe: \ud83d 荷物"
    (result,) = ask(client, inputs=text, explain=True)["results"]
    assert [text[t["start"] : t["end"]] for t in result["tokens"]] == [t["text"] for t in result["tokens"]]
    assert "".join(t["text"] for t in result["tokens"]) == text.replace(" ", "")


@pytest.mark.parametrize(("threshold", "decision"), [(0, "accept"), (1, "abstain"), (None, "accept")])
def test_the_threshold_decides_about_abstaining(client: httpx.Client, threshold: float | None, decision: str) -> None:
    assert ask(client, inputs="hello", threshold=threshold)["results"][0]["decision"] == decision


@pytest.mark.parametrize("batching", [False, True])
def test_requests_at_the_same_time_get_their_own_answers(classifier: Classifier, batching: bool) -> None:
    texts = [f"{text[:200]} {i}" for i in range(8) for text in TEXTS]
    with serving(service(classifier, Settings(batching=batching))) as client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda text: ask(client, inputs=text, explain=True)["results"][0], texts))
    expected = [as_json(classifier.predict(text, explain=True)) for text in texts]
    if batching:
        for answer, wanted in zip(answers, expected, strict=True):
            for a, b in zip(leaves(answer), leaves(wanted), strict=True):
                assert a == (pytest.approx(b, abs=1e-5) if isinstance(b, float) else b)
    else:
        assert answers == expected


def test_answers_do_not_wait_for_delayed_acknowledgements(client: httpx.Client) -> None:
    """Without TCP_NODELAY every answer on a kept connection took 44 ms on Linux: head and body are two writes."""

    def seconds() -> float:
        start = time.perf_counter()
        ask(client, inputs="hello")
        return time.perf_counter() - start

    assert min(seconds() for _ in range(30)) < 0.03


def test_answers_are_as_documented(client: httpx.Client) -> None:
    for explain in (False, True):
        answer = ask(client, inputs=["hello", ""], explain=explain)
        assert ClassifyAnswer.model_validate(answer).model_dump(exclude_unset=True) == answer
