"""What may be asked of an explanation beyond its tokens: as Python says it, bounded, and refused in one sentence."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.model_metadata import metadata_of, with_metadata
from tests.service.clients import ask, refusal
from tests.service.server import service, serving
from textcls import Classifier
from textcls.explain.counterfactual import MOST_ASKED, counterfactual
from textcls.server.inference.explaining import COUNTERFACTUAL_TOKENS
from textcls.server.inference.schemas import ClassifyAnswer

TEXT = "My card was charged twice. I want my money back, please!"


def explained(client: httpx.Client, explain: object, text: str = TEXT, **more: Any) -> dict[str, Any]:
    answer = ask(client, inputs=text, explain=explain, **more)
    ClassifyAnswer.model_validate(answer)
    result: dict[str, Any] = answer["results"][0]
    return result


def test_sentences_evidence_parts_and_changes_are_those_of_python(classifier: Classifier) -> None:
    explanation = classifier.explain(TEXT)
    asked = {"unit": "sentence", "parts": True, "counterfactual": True, "label": "billing", "against": "returns"}
    with serving(service(classifier)) as client:
        plain = explained(client, True)
        found = explained(client, asked)
        two = explained(client, {"unit": "phrase", "parts": True}, top_k=2)
    assert {name: found[name] for name in plain} == plain
    assert "evidence" not in plain
    assert found["evidence"] == explanation.attribution("billing", "returns").as_json()
    assert (found["unit"], len(found["units"])) == ("sentence", 2)
    assert found["units"] == explanation.grouped("sentence").units_as_json([one["label"] for one in found["labels"]])
    assert [part["text"] for part in found["parts"]] == [TEXT[part.start : part.end] for part in classifier.parts(TEXT)]
    against = None if found["label"] == "returns" else "returns"
    assert found["counterfactual"] == counterfactual(classifier, TEXT, against=against).as_json()
    assert found["counterfactual"]["asked"] <= MOST_ASKED
    names = {one["label"] for one in two["labels"]}
    assert {frozenset(one["contributions"]) for one in two["units"] + two["parts"]} == {frozenset(names)}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"explain": "yes"}, 'explain must be true, false, or an object such as {"unit": "sentence"}.'),
        ({"explain": {"unit": "line"}}, "explain.unit must be 'token', 'word', 'phrase' or 'sentence'."),
        (
            {"explain": {"units": "word"}},
            "explain.units is not a field of this request; its fields are label, against, unit, parts, counterfactual.",
        ),
        ({"explain": {"label": "Biling"}}, "explain.label: The model has no label 'Biling' (did you mean 'billing'?)"),
        (
            {"explain": {"label": "billing", "against": "billing"}},
            "explain: 'billing' cannot be contrasted with itself",
        ),
        ({"inputs": ["a", "b"], "explain": {"parts": True}}, "explain.parts is told of one text"),
        ({"inputs": ["a", "b"], "explain": {"counterfactual": True}}, "explain.counterfactual is told of one"),
    ],
)
def test_what_cannot_be_explained_is_refused_in_one_sentence(
    client: httpx.Client, given: dict[str, Any], told: str
) -> None:
    assert told in refusal(client, 422, {"inputs": TEXT, **given})


def test_a_node_above_labels_is_explained_too(model_path: Path, tmp_path: Path) -> None:
    metadata = metadata_of(model_path)
    labels = [f"money > {one}" if i < 3 else f"goods > {one}" for i, one in enumerate(metadata["labels"])]
    path = tmp_path / "tree.onnx"
    path.write_bytes(with_metadata(model_path, metadata | {"labels": labels}))
    classifier = Classifier.load(path)
    explanation = classifier.explain(TEXT)
    sibling = "goods" if explanation.label in labels[:3] else "money"
    with serving(service(classifier)) as client:
        found = explained(client, {"label": "money", "against": "goods"})["evidence"]
        assert found == explanation.attribution("money", "goods").as_json()
        # Held against its own node, the answer gives way to the best label elsewhere.
        above = explanation.label.split(" > ")[0]
        assert explained(client, {"against": above})["evidence"]["label"].startswith(sibling)
        for asked in ({"label": above}, {"label": above, "against": sibling}, {"against": sibling}):
            left = explained(client, {**asked, "counterfactual": True})["counterfactual"]["found"]
            assert left["before"] == (above if "label" in asked else explanation.label)
            assert left["label"] == sibling if "against" in asked else left["label"] in labels
        # What the answer is in already is not looked for.
        assert explained(client, {"against": above, "counterfactual": True})["counterfactual"]["found"] is None
        for given, told in (
            ({"label": "money", "against": labels[0]}, "one stands above the other"),
            ({"label": sibling, "counterfactual": True}, f"explain: '{sibling}' is not the answer, with "),
        ):
            assert told in refusal(client, 422, {"inputs": TEXT, "explain": given})


def test_a_long_text_is_too_much_to_search(many_labels: Classifier) -> None:
    text = "word1 " * (COUNTERFACTUAL_TOKENS + 1)
    with serving(service(many_labels)) as client:
        said = refusal(client, 413, {"inputs": text, "explain": {"counterfactual": True}, "top_k": 1})
        assert "texts of at most 200 tokens, and this one has 201" in said
        # As many numbers as parts have are bounded, like those of tokens.
        said = refusal(client, 413, {"inputs": text, "explain": {"parts": True}})
        assert "201 tokens x 120 labels, 12 times for what else is asked" in said
        assert explained(client, {"parts": True}, text, top_k=3)["parts"]


def test_no_change_is_looked_for_where_the_answer_is_already_what_is_wanted(
    classifier: Classifier, several_labels: Classifier
) -> None:
    for model, text in ((classifier, TEXT), (several_labels, "my card was charged twice, I want a refund")):
        with serving(service(model)) as client:
            found = explained(client, {"against": model.predict(text).label, "counterfactual": True}, text)
        assert (found["counterfactual"]["found"], found["counterfactual"]["asked"]) == (None, 0)
        assert found["evidence"]["against"] == model.predict(text).label


def test_what_would_change_an_answer_that_is_not_sure_enough_is_that_of_a_sure_one(classifier: Classifier) -> None:
    with serving(service(classifier)) as client:
        sure = explained(client, {"counterfactual": True})
        unsure = explained(client, {"counterfactual": True}, threshold=0.999)
    assert (sure["decision"], unsure["decision"]) == ("accept", "abstain")
    assert unsure["counterfactual"] == sure["counterfactual"]
    assert sure["counterfactual"]["found"] is not None


def test_of_several_labels_each_can_be_explained(several_labels: Classifier) -> None:
    text = "my card was charged twice, I want a refund"
    label = several_labels.predict(text).assigned[0]
    with serving(service(several_labels)) as client:
        found = explained(client, {"label": label, "unit": "phrase", "counterfactual": True}, text)
    assert found["evidence"]["label"] == label
    assert set(found["counterfactual"]) == {"found", "tokens", "asked", "unit"}
