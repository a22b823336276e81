"""The vectors that come along: which rows get them unasked, and what is said of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithfulness.benchmark import explain_benchmark
from textcls import Classifier
from textcls.data import read_labelled
from textcls_training.config.settings import TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.english import LEAST_KNOWN, PATH, english, english_unasked
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.vector_space import VectorSpace
from textcls_training.pipeline.training import train

SPANISH = (
    "no he recibido mi pedido y quiero que me devuelvan el dinero cuanto antes",
    "la factura de este mes tiene un error, me han cobrado dos veces",
)
SMALL: Mapping[str, Any] = {"dim": 8, "ngrams": "none", "bigrams": False, "epochs": 1, "device": "cpu"}


def vectors_of(given: LabelledTexts, tmp_path: Path, **options: Any) -> Mapping[str, Any] | None:
    """What a model trained on `given` says of its vectors."""
    path = tmp_path / "model.onnx"
    train(given, path, TrainConfig(**{**SMALL, **options}))
    found: Mapping[str, Any] | None = Classifier.load(path).info.training.get("vectors")
    return found


def rows(number: int, *texts: str) -> LabelledTexts:
    return LabelledTexts(
        texts=[f"{texts[i % len(texts)]} {'yes' if i % 3 else 'no'}" for i in range(number)],
        labels=["ab"[bool(i % 3)] for i in range(number)],
    )


def test_few_rows_of_english_get_the_vectors_unasked_and_the_file_tells_of_them(
    sample: LabelledTexts, tmp_path: Path
) -> None:
    found = vectors_of(sample, tmp_path, epochs=8)
    assert found is not None
    assert found["sha256"] == english().sha256
    assert found["licence"] == "Apache-2.0"
    assert "all-MiniLM-L6-v2" in found["source"]
    assert found["known_tokens"] > LEAST_KNOWN


@pytest.mark.parametrize("options", [{"vectors": "none"}, {"mixing": "pool"}, {"attention": "cosine"}], ids=str)
def test_they_stay_away_if_they_are_not_wanted_or_cannot_be_folded(
    sample: LabelledTexts, tmp_path: Path, options: dict[str, Any]
) -> None:
    assert vectors_of(sample, tmp_path, **options) is None


def test_where_validation_rows_do_not_prefer_them_they_leave_no_trace(sample: LabelledTexts, tmp_path: Path) -> None:
    order = np.random.default_rng(0).permutation(len(sample.labels))
    drawn = LabelledTexts(texts=sample.texts, labels=[sample.labels[i] for i in order])
    unasked, without = tmp_path / "unasked.onnx", tmp_path / "without.onnx"
    for epochs in (1, 4):
        config = {**SMALL, "epochs": epochs}
        train(drawn, unasked, TrainConfig(**config))
        train(drawn, without, TrainConfig(**config, vectors="none"))
        assert unasked.read_bytes() == without.read_bytes()
        assert vectors_of(drawn, tmp_path, vectors="english") is not None


def test_rows_of_another_language_get_them_by_name_alone(tmp_path: Path) -> None:
    given = rows(60, *SPANISH)
    assert vectors_of(given, tmp_path) is None
    assert vectors_of(given, tmp_path, vectors="english") is not None


def test_very_much_text_gets_them_by_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textcls_training.data.english.MOST_TOKENS", 500)
    text = "my card was charged twice"
    few = Corpus.of([text] * 100, 48)
    assert english_unasked(few, 2) is not None
    assert english_unasked(Corpus.of([text] * 101, 48), 2) is None
    assert english_unasked(few, 255) is not None
    assert english_unasked(few, 256) is None  # each word says something of each label, which takes space
    monkeypatch.setattr("textcls_training.data.english.MOST_CELLS", 5000)
    assert english_unasked(few, 10) is not None
    assert english_unasked(few, 11) is None


def test_very_much_text_leaves_no_trace_of_them_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textcls_training.data.english.MOST_TOKENS", 500)
    given = rows(120, "my card was charged twice", "the parcel is late")
    unasked, without = tmp_path / "unasked.onnx", tmp_path / "without.onnx"
    train(given, unasked, TrainConfig(**SMALL))
    train(given, without, TrainConfig(**SMALL, vectors="none"))
    assert unasked.read_bytes() == without.read_bytes()


def test_the_file_that_comes_along_is_small_and_its_words_are_alike_where_they_mean_alike() -> None:
    assert PATH.stat().st_size <= 2_000_000
    found = english()
    assert len(found.words) > 26_000
    unit_vd = found.row_VD / np.linalg.norm(found.row_VD, axis=1, keepdims=True)

    def alike(one: str, other: str) -> float:
        a, b = found.numbers([one, other])
        return float(unit_vd[a] @ unit_vd[b])

    assert alike("refund", "reimbursement") > 0.3
    assert alike("refund", "reimbursement") > alike("refund", "football") + 0.2


def test_its_notice_and_its_licence_lie_beside_it() -> None:
    found = english()
    notice = (PATH.parent / "NOTICE").read_text(encoding="utf-8")
    assert f"{len(found.words):,} English words" in notice
    assert "all-MiniLM-L6-v2" in notice
    assert "Apache License" in (PATH.parent / "LICENSE").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def with_english(sample: LabelledTexts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of `sample` with these vectors, small enough that most of their words are left out."""
    path = tmp_path_factory.mktemp("english") / "model.onnx"
    train(sample, path, TrainConfig(dim=8, epochs=8, device="cpu", vectors="english", size="tiny"))
    return path


def test_the_size_holds_and_the_same_rows_give_the_same_bytes(
    with_english: Path, sample: LabelledTexts, tmp_path: Path
) -> None:
    assert with_english.stat().st_size <= 300_000
    again = tmp_path / "again.onnx"
    train(sample, again, TrainConfig(dim=8, epochs=8, device="cpu", vectors="english", size="tiny"))
    assert again.read_bytes() == with_english.read_bytes()


@pytest.mark.parametrize(
    "text",
    ["", " \t\n", "?", "zzqqxx", "İstanbul ﬁancée naïve", "👩‍👩‍👧 refund\u200bme", "the " * 3000, "reimbursement\x00!"],
    ids=ascii,
)
def test_contributions_of_awkward_texts_add_up(with_english: Path, text: str) -> None:
    model = Classifier.load(with_english)
    found = model.predict(text, explain=True).explanation
    assert found is not None
    logits = np.array([*found.logits.values()])
    total = model.info.bias + found.contributions.sum(0)
    np.testing.assert_allclose(total, logits, atol=1e-4 * (1 + np.abs(logits).max()))


def test_explanations_are_as_faithful_as_leaving_each_word_out(with_english: Path, sample_path: Path) -> None:
    held_out = read_labelled(sample_path, ["text"], "label").texts[150:190]
    result = explain_benchmark(
        Classifier.load(with_english), held_out, methods=["contributions", "leave_one_out", "random"]
    )

    def value(number: int, figure: str) -> float:
        found = result.methods[number].figures["delete"][figure].value
        assert found is not None
        return found

    own, left_out, chance = 0, 1, 2
    assert value(own, "loo_tau") > 0.7
    assert value(own, "comprehensiveness") > value(left_out, "comprehensiveness") - 0.01
    assert value(own, "comprehensiveness") > value(chance, "comprehensiveness") + 0.1
    assert value(own, "sufficiency") < value(left_out, "sufficiency") + 0.01
    assert value(own, "sufficiency") < value(chance, "sufficiency") - 0.1


def test_signs_and_unknown_words_count_as_tokens_of_the_share() -> None:
    encoded = VectorSpace.of(english()).encode(Corpus.of(["the card, zzqqxx"], 48))
    assert encoded.known_share() == 0.75
