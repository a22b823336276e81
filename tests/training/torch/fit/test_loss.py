"""The cross-entropy against targets: a hard label is a special case of probabilities, and weights mean the same."""

import numpy as np
import pytest
import torch

from tests.training.helpers import dataset_of, fit_all, logits_of, resolved, same_weights
from textcls_torch.fit import loss
from textcls_torch.fit.loss import label_loss, label_set_loss, make_loss
from textcls_training.config.resolve import LabelWeights
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.label_weights import FOCUS, class_weights, label_set_weights

LOGITS_VBC = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
LABEL_B = torch.tensor([0, 2, 1, 1, 0])
ONE_HOT_BC = torch.nn.functional.one_hot(LABEL_B, 3).float()
WEIGHT_C = torch.tensor([0.5, 1.0, 3.0])
CORPUS = Corpus.of(["a", "b", "c"], 9)
LABEL_R = np.array([1, 0, 1])


def test_hard_labels_cost_what_their_probabilities_cost() -> None:
    hard = label_loss(LOGITS_VBC, LABEL_B, WEIGHT_C)
    soft = label_loss(LOGITS_VBC, ONE_HOT_BC, WEIGHT_C)
    torch.testing.assert_close(hard, soft)
    by_hand = -(WEIGHT_C * ONE_HOT_BC * LOGITS_VBC.log_softmax(2)).sum()
    torch.testing.assert_close(hard, by_hand)


def test_a_soft_row_costs_what_hard_rows_of_its_labels_cost_by_their_shares() -> None:
    share_C = torch.tensor([0.2, 0.5, 0.3])
    soft = label_loss(LOGITS_VBC[:, :1], share_C[None], WEIGHT_C)
    hard = [label_loss(LOGITS_VBC[:, :1], torch.tensor([c]), WEIGHT_C) for c in range(3)]
    torch.testing.assert_close(soft, sum(share * loss for share, loss in zip(share_C, hard, strict=True)))


def test_a_row_of_weight_two_costs_as_much_as_the_row_twice() -> None:
    twice = torch.tensor([0, 1, 2, 3, 4, 4])
    weight_B = torch.tensor([1.0, 1, 1, 1, 2])
    for target in (LABEL_B, ONE_HOT_BC):
        weighted = label_loss(LOGITS_VBC, target, WEIGHT_C, weight_B)
        torch.testing.assert_close(weighted, label_loss(LOGITS_VBC[:, twice], target[twice], WEIGHT_C))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("none", [1, 1, 1]), ("balanced", [4 / (3 * 2.5), 4 / (3 * 1.5), 4 / 3]), ((2.0, 0.5, 1.0), [2, 0.5, 1])],
)
def test_class_weights_count_rows_by_their_weights_and_targets(kind: LabelWeights, expected: list[float]) -> None:
    probability_RC = np.array([[0.5, 0.5, 0], [1, 0, 0], [0.5, 0.5, 0]], np.float32)
    dataset = Dataset(CORPUS, LABEL_R, None, probability_RC, np.array([1, 1, 2], np.float32))
    mass_C = dataset.label_mass(3)
    assert mass_C.tolist() == [2.5, 1.5, 0]
    np.testing.assert_allclose(class_weights(mass_C, kind), expected, rtol=1e-6)


def test_the_mass_of_hard_labels_is_how_many_rows_have_them() -> None:
    assert Dataset(CORPUS, LABEL_R).label_mass(3).tolist() == [1, 2, 0]
    assert Dataset(CORPUS, LABEL_R, weight_R=np.array([1, 2, 3], np.float32)).label_mass(2).tolist() == [2, 4]


def test_targets_and_weights_stay_with_their_rows() -> None:
    probability_RC = np.eye(3, dtype=np.float32)[LABEL_R]
    part = Dataset(CORPUS, LABEL_R, None, probability_RC, np.array([1, 2, 3], np.float32)).select(np.array([2, 1]))
    assert part.probability_RC is not None
    assert part.probability_RC.argmax(1).tolist() == part.labels.tolist() == [1, 0]
    assert part.weight_R is not None
    assert part.weight_R.tolist() == [3, 2]


def test_a_model_learns_the_probabilities_that_it_is_told() -> None:
    told = {"red": [0.8, 0.2], "blue": [0.3, 0.7]}
    texts = [*told] * 60
    probability_RC = np.array([told[text] for text in texts], np.float32)
    dataset = Dataset(Corpus.of(texts, 9), probability_RC.argmax(1), None, probability_RC)
    learned = fit_all(dataset, resolved(dataset, epochs=20, ngrams=()))
    (logits_RC,) = logits_of(learned, Corpus.of([*told], 9))
    np.testing.assert_allclose(torch.from_numpy(logits_RC).softmax(1), [*told.values()], atol=0.03)


def test_rows_of_weight_zero_teach_nothing(sample: LabelledTexts) -> None:
    dataset = dataset_of(sample)
    weight_R = (np.arange(150) % 2).astype(np.float32)
    turned = np.where(weight_R > 0, dataset.labels, 0)
    one, other = (dataset._replace(labels=labels, weight_R=weight_R) for labels in (dataset.labels, turned))
    models = [fit_all(rows, resolved(dataset)).trained_model((0.5, 0.5)) for rows in (one, other)]
    assert same_weights(*models)


# Several labels a text

TARGET_BC = torch.tensor([[1, 0, 0], [1, 0.25, 1], [0, 0, 0], [0, 1, 0], [0, 0.5, 1]])
SETS = LabelMatrix.of([{"a": 1.0}, {"a": 1.0, "b": 0.5}, {}], ["a", "b"])


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without focus, which leaves cross-entropy."""
    monkeypatch.setattr(loss, "FOCUS", 0.0)


@pytest.mark.usefixtures("plain")
def test_several_labels_cost_what_pytorchs_binary_cross_entropy_costs() -> None:
    ones = torch.ones(3)
    found = label_set_loss(LOGITS_VBC, TARGET_BC, ones, ones)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        LOGITS_VBC, TARGET_BC.expand(2, 5, 3), reduction="sum"
    )
    torch.testing.assert_close(found, expected)
    present = torch.nn.functional.binary_cross_entropy_with_logits(
        LOGITS_VBC, TARGET_BC.expand(2, 5, 3), pos_weight=WEIGHT_C, reduction="sum"
    )
    torch.testing.assert_close(label_set_loss(LOGITS_VBC, TARGET_BC, WEIGHT_C, ones), present)


def test_absent_labels_that_seem_to_be_there_cost_more_than_those_that_are_ruled_out() -> None:
    ones, chance = torch.ones(3), LOGITS_VBC.sigmoid()
    by_hand = -(TARGET_BC * chance.log() + (1 - TARGET_BC) * chance**FOCUS * (1 - chance).log()).sum()
    torch.testing.assert_close(label_set_loss(LOGITS_VBC, TARGET_BC, ones, ones), by_hand)


@pytest.mark.usefixtures("plain")
def test_the_weight_of_rows_without_a_label_is_that_of_rows_with_its_opposite() -> None:
    ones = torch.ones(3)
    turned = label_set_loss(-LOGITS_VBC, 1 - TARGET_BC, WEIGHT_C, ones)
    torch.testing.assert_close(label_set_loss(LOGITS_VBC, TARGET_BC, ones, WEIGHT_C), turned)


def test_a_row_of_weight_two_costs_as_much_as_the_row_twice_with_several_labels_too() -> None:
    ones, twice = torch.ones(3), torch.tensor([0, 1, 2, 3, 4, 4])
    weighted = label_set_loss(LOGITS_VBC, TARGET_BC, WEIGHT_C, ones, torch.tensor([1.0, 1, 1, 1, 2]))
    torch.testing.assert_close(weighted, label_set_loss(LOGITS_VBC[:, twice], TARGET_BC[twice], WEIGHT_C, ones))


@pytest.mark.parametrize(
    ("kind", "present", "absent"),
    [
        ("none", [1, 1], [1, 1]),
        # Of four rows by weight: three have a, and half of two has b.
        ("balanced", [2 / 3, 2 / 1], [2 / 1, 2 / 3]),
        ((5.0, 0.5), [5, 0.5], [1, 1]),
    ],
)
def test_weights_of_labels_are_those_of_rows_that_have_them(
    kind: LabelWeights, present: list[float], absent: list[float]
) -> None:
    dataset = Dataset(CORPUS, SETS.rarest(), weight_R=np.array([1, 2, 1], np.float32), sets=SETS)
    found = label_set_weights(dataset, kind)
    np.testing.assert_allclose(found[0], present, rtol=1e-6)
    np.testing.assert_allclose(found[1], absent, rtol=1e-6)


def test_the_loss_of_a_dataset_reads_the_rows_of_a_batch() -> None:
    dataset = Dataset(CORPUS, SETS.rarest(), weight_R=np.array([1, 2, 3], np.float32), sets=SETS)
    logits = LOGITS_VBC[:, :2, :2]
    loss = make_loss(dataset, 2, (5.0, 0.5), torch.device("cpu"))
    found = loss(logits, *map(torch.from_numpy, loss.targets(np.array([2, 1]))))
    target, weight = torch.tensor([[0.0, 0], [1, 0.5]]), torch.tensor([3.0, 2])
    expected = label_set_loss(logits, target, torch.tensor([5.0, 0.5]), torch.ones(2), weight)
    torch.testing.assert_close(found, expected)
