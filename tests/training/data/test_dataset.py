"""Rows as training counts them: numbers of labels, hashes, and the tokens of human rationales."""

import numpy as np
import pytest

from textcls.errors import InputError
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.labelled_texts import LabelledTexts


def test_labels_are_numbered_in_the_order_of_their_names_and_rationales_flag_tokens() -> None:
    given = LabelledTexts(texts=["a b", "c"], labels=["y", "x"], rationales=[((2, 3),), ()])
    dataset = Dataset.of(given, given.label_names(), 9)
    assert dataset.labels.tolist() == [1, 0]
    assert dataset.rationale is not None
    assert dataset.rationale.tolist() == [False, True, False]


def test_a_label_that_no_training_row_has_is_refused() -> None:
    with pytest.raises(InputError, match=r"^The validation rows have the label 'z', which no training row has\.$"):
        Dataset.of(LabelledTexts(texts=["a"], labels=["z"]), ["x", "y"], 9)


@pytest.mark.parametrize(("labels", "said"), [([], "no labels"), (["x", "x"], "only the label 'x'")])
def test_fewer_than_two_labels_are_refused(labels: list[str], said: str) -> None:
    with pytest.raises(InputError, match=rf"^The training rows have {said}; a classifier needs at least two labels\.$"):
        LabelledTexts(texts=["a"] * len(labels), labels=labels).label_names()


def test_the_hash_is_of_all_texts_and_labels_in_their_order() -> None:
    hashes = {
        LabelledTexts(texts=texts, labels=labels).sha256()
        for texts, labels in ((["a", "b"], ["x", "y"]), (["b", "a"], ["y", "x"]), (["a", "b"], ["xb", "y"]))
    }
    assert len(hashes) == 3


def test_rationales_stay_with_their_tokens_when_rows_are_chosen_and_padded() -> None:
    corpus = Corpus.of(["a b c", "d", "e f"], 9)
    dataset = Dataset(corpus, np.array([0, 1, 0]), np.array([False, True, False, False, True, True]))
    part = dataset.select(np.array([2, 0]))
    assert part.rationale is not None
    assert part.rationale.tolist() == [True, True, False, True, False]
    mask_BT = part.corpus.lengths()[[1, 0]][:, None] > np.arange(3)
    rationale_BT = part.rationale_mask(np.array([1, 0]), mask_BT)
    assert rationale_BT is not None
    assert rationale_BT.tolist() == [[False, True, False], [True, True, False]]
    assert dataset.rationale_mask(np.array([1]), np.ones((1, 1), np.bool_)) is None


def test_a_split_holds_every_row_once() -> None:
    dataset = Dataset(Corpus.of(["a", "b", "c"], 9), np.array([0, 1, 0]))
    split = dataset.split(np.array([False, True, False]))
    assert split.train.labels.tolist() == [0, 0]
    assert split.valid.labels.tolist() == [1]
    assert [split.valid.corpus.types[i] for i in split.valid.corpus.token] == ["b"]
