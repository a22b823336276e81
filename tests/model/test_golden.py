"""The frozen model of each format version loads and answers as on the day it was frozen (scripts/make_golden.py)."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from textcls import Classifier, Explanation, Prediction
from textcls.model import artifact

GOLDEN = Path(__file__).parent.parent / "golden"
ANSWERS: list[dict[str, Any]] = json.loads((GOLDEN / "answers_v1.json").read_text(encoding="utf-8"))
SHA256 = "4f828839644c988e0fff2ba88d753c1bc1affc3dba6532f4930410912c52a5b6"
SEVERAL: list[dict[str, Any]] = json.loads((GOLDEN / "answers_v2.json").read_text(encoding="utf-8"))
SHA256_OF_SEVERAL = "2a3abb2ca75a658fad3112fe6c2ecbb69e84818ea8e030d0cd91660c0f77b1cf"
OF_MACHINES: list[dict[str, Any]] = json.loads((GOLDEN / "answers_v3.json").read_text(encoding="utf-8"))
SHA256_OF_MACHINES = "ce3b703faa0ec3f2f1ac710c4d9fa41548d607800324d4b353e6780525d91f31"
WITH_COLUMNS: list[dict[str, Any]] = json.loads((GOLDEN / "answers_v4.json").read_text(encoding="utf-8"))
OF_PROTOTYPES: list[dict[str, Any]] = json.loads((GOLDEN / "answers_v2_prototypes.json").read_text(encoding="utf-8"))
SHA256_OF_PROTOTYPES = "89d47314dd9c4ecb62f16a7dec5f0648a236e9b3713c9fb8868845dbae9dc6a0"
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def found(classifier: Classifier) -> list[Prediction]:
    return classifier.predict([answer["text"] for answer in ANSWERS], explain=True)


def explained(prediction: Prediction) -> Explanation:
    assert prediction.explanation is not None
    return prediction.explanation


def test_the_frozen_model_was_not_written_anew(model_path: Path) -> None:
    assert hashlib.sha256(model_path.read_bytes()).hexdigest() == SHA256


def test_the_frozen_model_says_what_it_is(classifier: Classifier) -> None:
    assert classifier.info.format_version == 1
    assert classifier.labels == ("account", "billing", "cancellation", "returns", "sales", "shipping", "technical")
    assert classifier.info.max_tokens == 64
    assert classifier.info.text_columns == ("text",)
    assert classifier.info.label_column == "label"
    assert classifier.info.features.ngram_sizes == (3, 5)


def test_the_frozen_model_has_the_inputs_and_outputs_of_its_format(model_path: Path) -> None:
    session = onnxruntime.InferenceSession(model_path, providers=["CPUExecutionProvider"])
    assert [(i.name, i.type) for i in session.get_inputs()] == [("text", "tensor(string)")]
    assert {o.name: (o.type, len(o.shape)) for o in session.get_outputs()} == {
        "probabilities": ("tensor(float)", 2),
        "logits": ("tensor(float)", 2),
        "tokens": ("tensor(string)", 2),
        "attention": ("tensor(float)", 2),
        "contributions": ("tensor(float)", 3),
        "known": ("tensor(bool)", 2),
        "rows": ("tensor(float)", 5),
        "ngram_rows": ("tensor(float)", 4),
        "weights": ("tensor(float)", 4),
    }
    assert {o.name for o in session.get_outputs()} == {*artifact.OUTPUTS, *artifact.ROW_OUTPUTS}


def test_probabilities_and_logits_are_as_frozen(found: list[Prediction]) -> None:
    for answer, prediction in zip(ANSWERS, found, strict=True):
        np.testing.assert_allclose(prediction.probabilities, answer["probabilities"], atol=TOLERANCE, rtol=0)
        np.testing.assert_allclose(explained(prediction).logit_values, answer["logits"], atol=TOLERANCE, rtol=0)


def test_tokens_stand_exactly_where_they_were_frozen(found: list[Prediction]) -> None:
    for answer, prediction in zip(ANSWERS, found, strict=True):
        assert explained(prediction).spans == tuple((start, end) for start, end, *_ in answer["tokens"])


def test_attention_and_contributions_are_as_frozen(found: list[Prediction]) -> None:
    for answer, prediction in zip(ANSWERS, found, strict=True):
        for token, (_, _, attention, *added) in zip(explained(prediction).tokens, answer["tokens"], strict=True):
            assert token.attention == pytest.approx(attention, abs=TOLERANCE)
            np.testing.assert_allclose(list(token.contributions.values()), added, atol=TOLERANCE, rtol=0)


def test_long_texts_are_reported_as_cut_as_frozen(found: list[Prediction]) -> None:
    frozen = [answer["truncated"] for answer in ANSWERS]
    assert any(frozen)
    assert not all(frozen)
    assert [prediction.truncated for prediction in found] == frozen


# Format 2: labels are prototypes


@pytest.fixture(scope="module")
def found_of_prototypes(prototypes: Classifier) -> list[Prediction]:
    return prototypes.predict([answer["text"] for answer in OF_PROTOTYPES], explain=True)


def test_the_frozen_model_of_prototypes_was_not_written_anew(prototypes_path: Path) -> None:
    assert hashlib.sha256(prototypes_path.read_bytes()).hexdigest() == SHA256_OF_PROTOTYPES


def test_the_frozen_model_of_prototypes_says_what_it_is(prototypes: Classifier, classifier: Classifier) -> None:
    info = prototypes.info
    assert (info.format_version, info.task, set(info.labels)) == (2, "single-label", set(classifier.labels))
    assert info.prototypes is not None
    assert [name for i, name in enumerate(info.labels) if info.prototypes.taught(i)] == ["returns"]
    assert info.prototypes.keeps_texts


def test_answers_of_prototypes_and_what_they_are_made_of_are_as_frozen(found_of_prototypes: list[Prediction]) -> None:
    for answer, prediction in zip(OF_PROTOTYPES, found_of_prototypes, strict=True):
        np.testing.assert_allclose(prediction.probabilities, answer["probabilities"], atol=TOLERANCE, rtol=0)
        np.testing.assert_allclose(explained(prediction).logit_values, answer["logits"], atol=1e-4, rtol=0)
        for support, frozen in zip(explained(prediction).nearest(), answer["support"], strict=True):
            assert support.to_json() == {**frozen, "weight": pytest.approx(frozen["weight"], abs=1e-4)}


def test_tokens_and_contributions_of_prototypes_are_as_frozen(found_of_prototypes: list[Prediction]) -> None:
    for answer, prediction in zip(OF_PROTOTYPES, found_of_prototypes, strict=True):
        for token, (start, end, attention, *added) in zip(explained(prediction).tokens, answer["tokens"], strict=True):
            assert (token.start, token.end) == (start, end)
            assert token.attention == pytest.approx(attention, abs=TOLERANCE)
            np.testing.assert_allclose(list(token.contributions.values()), added, atol=1e-4, rtol=0)


# Formats 2 and 3: a text may have several labels


@pytest.fixture(scope="module", params=["v2", "v3"])
def of_several(request: pytest.FixtureRequest, several_labels_path: Path) -> tuple[str, Path]:
    """A frozen model of several labels: the version of its format, and its path."""
    return request.param, several_labels_path.with_name(f"model_{request.param}.onnx")


@pytest.fixture(scope="module")
def answers_of_several(of_several: tuple[str, Path]) -> list[tuple[dict[str, Any], Prediction]]:
    """What was frozen, and what is answered now."""
    version, path = of_several
    frozen = SEVERAL if version == "v2" else OF_MACHINES
    return list(zip(frozen, Classifier.load(path).predict([one["text"] for one in frozen], explain=True), strict=True))


def test_the_frozen_model_of_several_labels_was_not_written_anew(of_several: tuple[str, Path]) -> None:
    version, path = of_several
    sha256 = SHA256_OF_SEVERAL if version == "v2" else SHA256_OF_MACHINES
    assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def test_the_frozen_model_of_several_labels_says_what_it_is(
    of_several: tuple[str, Path], classifier: Classifier
) -> None:
    version, path = of_several
    info = Classifier.load(path).info
    assert (f"v{info.format_version}", info.task, info.several) == (version, "multi-label", True)
    assert info.labels == classifier.labels
    for numbers in (info.scale, info.shift, info.thresholds):
        assert numbers is not None
        assert len(numbers) == len(info.labels)


def test_scores_labels_and_decisions_of_several_labels_are_as_frozen(
    answers_of_several: list[tuple[dict[str, Any], Prediction]],
) -> None:
    assert {answer["decision"] for answer, _ in answers_of_several} == {"accept", "abstain"}
    assert max(len(answer["assigned"]) for answer, _ in answers_of_several) > 1
    for answer, prediction in answers_of_several:
        np.testing.assert_allclose(prediction.probabilities, answer["probabilities"], atol=TOLERANCE, rtol=0)
        np.testing.assert_allclose(explained(prediction).logit_values, answer["logits"], atol=TOLERANCE, rtol=0)
        assert list(prediction.assigned) == answer["assigned"]
        assert (prediction.decision, prediction.truncated) == (answer["decision"], answer["truncated"])


def test_tokens_and_contributions_of_several_labels_are_as_frozen(
    answers_of_several: list[tuple[dict[str, Any], Prediction]],
) -> None:
    for answer, prediction in answers_of_several:
        for token, (start, end, attention, *added) in zip(explained(prediction).tokens, answer["tokens"], strict=True):
            assert (token.start, token.end) == (start, end)
            assert token.attention == pytest.approx(attention, abs=TOLERANCE)
            np.testing.assert_allclose(list(token.contributions.values()), added, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("arguments", [[], ["2"], ["../v2"], ["v2", "v3"]])
def test_what_is_no_version_of_the_format_is_not_frozen(tmp_path: Path, arguments: list[str]) -> None:
    script = Path(__file__).parent.parent.parent / "scripts" / "make_golden.py"
    before = sorted(GOLDEN.iterdir())
    done = subprocess.run(
        [sys.executable, script, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "One argument is needed, the version of the format, such as v2.\n")
    assert sorted(GOLDEN.iterdir()) == before


# Format 4: columns beside the text


def test_the_frozen_model_with_columns_was_not_written_anew() -> None:
    content = (GOLDEN / "model_v4.onnx").read_bytes()
    assert hashlib.sha256(content).hexdigest() == "5275c29cf02ffc23bc475c14339c75feb0492790619f7a1382e00947d91aabb2"


def test_answers_and_contributions_of_columns_are_as_frozen() -> None:
    classifier = Classifier.load(GOLDEN / "model_v4.onnx")
    assert classifier.info.format_version == 4
    assert [(one.name, one.kind) for one in classifier.info.columns] == [
        ("product", "category"), ("price", "number"), ("opened", "date"),
    ]  # fmt: skip
    found = classifier.predict([answer["text"] for answer in WITH_COLUMNS], explain=True)
    for answer, prediction in zip(WITH_COLUMNS, found, strict=True):
        added = [cell.contributions for cell in explained(prediction).cells]
        np.testing.assert_allclose(added, answer["columns"], atol=TOLERANCE, rtol=0)
        np.testing.assert_allclose(prediction.probabilities, answer["probabilities"], atol=TOLERANCE, rtol=0)
        np.testing.assert_allclose(explained(prediction).logit_values, answer["logits"], atol=1e-4, rtol=0)


def test_the_frozen_model_with_columns_takes_their_cells_as_a_second_input() -> None:
    session = onnxruntime.InferenceSession(GOLDEN / "model_v4.onnx", providers=["CPUExecutionProvider"])
    assert [(i.name, i.type, len(i.shape)) for i in session.get_inputs()] == [
        ("text", "tensor(string)", 1), ("columns", "tensor(string)", 2),
    ]  # fmt: skip
    cells = np.array([["1234.5", "19874", "lamp xl", "5", "Friday", "0"]], object)
    given = {"text": np.array(["refund"], object), "columns": cells}
    (probabilities,) = session.run(["probabilities"], given)
    np.testing.assert_allclose(probabilities[0], WITH_COLUMNS[3]["probabilities"], atol=TOLERANCE, rtol=0)
