"""Marks of people: what a field may hold, which tokens it means, and that attention learns to rest on them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from textcls import Classifier
from textcls.errors import InputError
from textcls_training import rationales
from textcls_training.config import TrainConfig
from textcls_training.encoding import Corpus
from textcls_training.model import ModelConfig
from textcls_training.rows import Rows
from textcls_training.run import Source, train

TEXT = "My card was charged twice, twice!"
WHERE = "rows.csv: row 3, column 'why'"


@pytest.mark.parametrize(
    ("cell", "spans"),
    [
        ("", ()),
        ("  ", ()),
        ("[]", ()),
        (None, ()),
        ([], ()),
        ([[3, 7]], ((3, 7),)),
        (["CARD"], ((3, 7),)),
        ("[[3, 7], [12, 25]]", ((3, 7), (12, 25))),
        ('["CARD"]', ((3, 7),)),
        ('["twice"]', ((20, 25), (27, 32))),
        ('["charged  twice", [0, 2]]', ((12, 25), (0, 2))),
        ('["twice,"]', ((20, 26),)),
    ],
)
def test_a_field_holds_spans_of_characters_or_phrases(cell: object, spans: rationales.Spans) -> None:
    assert rationales.parse(cell, TEXT, WHERE) == spans


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("card", "a rationale is a JSON list"),
        ('{"a": 1}', "a rationale is a JSON list"),
        ("[[3, 70]]", r"the text of 33 characters has no span \[3, 70\]"),
        ("[[7, 3]]", r"no span \[7, 3\]"),
        ("[[-1, 3]]", r"no span \[-1, 3\]"),
        ("[3]", "3 is neither a span"),
        ("[true]", "True is neither a span"),
        (3, "a rationale is a JSON list"),
        ([[3, 70]], r"no span \[3, 70\]"),
        ('[""]', "'' is neither a span"),
        ('[" "]', "does not hold ' '"),
        ('["refund"]', "does not hold 'refund'"),
        ('["car"]', "does not hold 'car'"),
    ],
)
def test_a_field_that_marks_nothing_is_refused_with_its_place(cell: object, said: str) -> None:
    with pytest.raises(InputError, match=f"^rows.csv: row 3, column 'why': .*{said}"):
        rationales.parse(cell, TEXT, WHERE)


def test_tokens_that_a_mark_touches_are_flagged_within_what_is_read() -> None:
    texts = ["one two three", "", "naïve 東京"]
    marks: Sequence[rationales.Spans] = [((2, 5), (8, 13)), (), ((7, 8),)]
    found = rationales.flags(texts, marks, 2)
    # "ne t" touches the first two tokens, the third is not read; of the last text the second character of two.
    assert found.tolist() == [True, True, False, False]
    assert len(found) == len(Corpus.of(texts, 2).token)
    assert rationales.flags(texts, marks, 9).tolist() == [True, True, True, False, False, True]


def test_marks_stay_with_their_tokens_when_rows_are_chosen_and_padded() -> None:
    corpus = Corpus.of(["a b c", "d", "e f"], 9)
    rows = Rows(corpus, np.array([0, 1, 0]), np.array([False, True, False, False, True, True]))
    part = rows.select(np.array([2, 0]))
    assert part.marked is not None
    assert part.marked.tolist() == [True, True, False, True, False]
    mask_BT = part.corpus.lengths()[[1, 0]][:, None] > np.arange(3)
    marked_BT = part.marks(np.array([1, 0]), torch.from_numpy(mask_BT))
    assert marked_BT is not None
    assert marked_BT.tolist() == [[False, True, False], [True, True, False]]
    assert rows.marks(np.array([1]), torch.ones(1, 1, dtype=torch.bool)) is None


def test_attention_learns_to_rest_on_what_people_have_marked(tmp_path: Path) -> None:
    # Two words tell the labels apart equally well; people mark one of them.
    generator = np.random.default_rng(0)
    filler = [f"w{i}" for i in range(30)]
    texts, labels, marks = [], [], []
    for i in range(200):
        label = i % 2
        words = [*generator.choice(filler, 6), f"sign{label}", f"clue{label}"]
        generator.shuffle(words)
        texts.append(" ".join(words))
        labels.append(str(label))
        marks.append(rationales.parse(f'["clue{label}"]', texts[-1], ""))
    config = TrainConfig(model=ModelConfig(dim=8), ngram_sizes=(), epochs=8, device="cpu")

    def attention_on_clue(source: Source) -> float:
        train(source, tmp_path / "model.onnx", config)
        explanation = Classifier.load(tmp_path / "model.onnx").predict("w1 sign1 w2 clue1 w3", explain=True).explanation
        assert explanation is not None
        return float(explanation.attention[3])

    plain = attention_on_clue(Source(texts=texts, labels=labels))
    taught = attention_on_clue(Source(texts=texts, labels=labels, rationales=marks))
    assert plain < 0.5 < taught


def test_a_training_with_marks_repeats_itself_and_says_how_many_rows_had_them(sample: Source, tmp_path: Path) -> None:
    first = sample.texts[0]
    marks: list[rationales.Spans] = [((0, len(first)),), *[()] * (len(sample.texts) - 1)]
    config = TrainConfig(model=ModelConfig(dim=8), ngram_sizes=(), epochs=2, device="cpu")
    source = Source(texts=sample.texts, labels=sample.labels, rationales=marks)
    for name in ("one", "other"):
        train(source, tmp_path / f"{name}.onnx", config)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "other.onnx").read_bytes()
    assert Classifier.load(tmp_path / "one.onnx").info.training["rationales"] == 1
