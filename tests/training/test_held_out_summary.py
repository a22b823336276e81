"""What a training keeps of its held-out rows: counts, and the unknown tokens that new rows will have."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import textcls
from textcls.evaluation.drift.summary import HeldOutSummary, UnknownShare, names_digest
from textcls_training.data import corpus as corpus_module
from textcls_training.data.arrays import blocks
from textcls_training.data.corpus import Corpus
from textcls_training.pipeline.held_out_summary import in_one_row, unknown_share

TEXTS = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6).map(" ".join), min_size=1, max_size=8)


@given(TEXTS.filter(lambda texts: any(texts)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@pytest.mark.parametrize("at_once", [1, 1000])
def test_the_unknown_share_is_that_of_each_row_beside_all_others(
    monkeypatch: pytest.MonkeyPatch, at_once: int, texts: list[str]
) -> None:
    monkeypatch.setattr(corpus_module, "blocks", partial(blocks, size=at_once))
    corpus = Corpus.of(texts, 64)
    rows = [text.split() for text in texts]
    others = [{word for j, row in enumerate(rows) if j != i for word in row} for i in range(len(rows))]
    unknown = sum(word not in others[i] for i, row in enumerate(rows) for word in row)
    found = unknown_share(corpus, in_one_row(corpus))
    assert found.share == pytest.approx(unknown / sum(map(len, rows)), abs=1e-6)
    assert found.error >= 0


def test_all_tokens_unknown_is_sure_and_none_as_well() -> None:
    corpus = Corpus.of(["a b", "c", ""], 64)
    assert unknown_share(corpus, in_one_row(corpus)) == UnknownShare(1.0, 0.0)
    assert unknown_share(corpus, ~in_one_row(corpus)) == UnknownShare(0.0, 0.0)


def test_a_training_counts_the_answers_to_its_held_out_rows(tmp_path: Path) -> None:
    texts = [f"refund for order {i}" for i in range(60)] + [f"lamp flickers since {i}" for i in range(60)]
    labels = ["returns"] * 60 + ["technical"] * 60
    textcls.train(texts, labels, tmp_path / "m.onnx", epochs=2, vectors="none")
    info = textcls.Classifier.load(tmp_path / "m.onnx").info
    found = HeldOutSummary.of_model(info)
    assert found.rows == info.training["held_out_rows"] == sum(found.labels or ()) == sum(found.scores.counts)
    assert found.accuracy is not None
    assert found.accuracy == info.training["held_out_accuracy"]
    assert sum(found.right) == round(found.accuracy * found.rows)
    assert sum(found.lengths.counts) == 120
    assert found.names_sha256 == names_digest(info.labels) != names_digest(info.labels[::-1])
    # A number in four tokens stands in at most two rows, once with each label.
    assert found.unknown is not None
    assert 0 <= found.unknown.share < 0.25


def test_the_known_words_are_those_of_the_file(tmp_path: Path) -> None:
    texts = ["alpha beta", "alpha gamma", "delta beta", "delta alpha"] * 5
    textcls.train(texts, ["x", "x", "y", "y"] * 5, tmp_path / "m.onnx", epochs=1, vectors="none")
    classifier = textcls.Classifier.load(tmp_path / "m.onnx")
    assert classifier.explain("alpha beta omega").known.tolist() == [True, True, False]
    # Each word stands in several rows, and all of them are in the file.
    assert HeldOutSummary.of_model(classifier.info).unknown == UnknownShare(0.0, 0.0)
