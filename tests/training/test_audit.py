"""The audit of labels: wrong ones that were planted come first, and what is said of them."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import textcls
from tests.command_line import fail, succeed, write_rows
from textcls import InputError
from textcls.evaluation.data_quality.label_audit import COLUMNS, LabelAudit
from textcls_training.audit import label_set_suspects, suspects
from textcls_training.audit.run import audit
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Bools
from textcls_training.data.labelled_texts import LabelledTexts

QUICK = TrainConfig(epochs=4, dim=8, vectors="none")
WORDS = ("refund", "parcel", "invoice")
TEXTS = [f"{word} please, number {i}" for i in range(40) for word in WORDS]
RIGHT = [word for _ in range(40) for word in WORDS]
WRONG = list(range(7, len(TEXTS), 20))
LABELS = [WORDS[(WORDS.index(label) + 1) % 3] if i in WRONG else label for i, label in enumerate(RIGHT)]


@pytest.fixture(scope="module")
def found() -> LabelAudit:
    """The audit of rows of which each twentieth has a wrong label."""
    return audit(LabelledTexts(texts=TEXTS, labels=LABELS), QUICK)


def test_planted_labels_come_first(found: LabelAudit) -> None:
    assert found.judged == found.rows == len(TEXTS)
    assert sorted(one.row for one in found.suspects[: len(WRONG)]) == WRONG
    is_wrong = np.isin(np.arange(len(TEXTS)), WRONG)
    assert average_precision_score(is_wrong, found.doubt) > 0.99


def test_labels_of_a_single_row_each_cannot_be_audited() -> None:
    with pytest.raises(InputError, match="fewer than two of them have more than one row; add examples"):
        audit(LabelledTexts(texts=["a b", "c d", "e f"], labels=["x", "y", "y"]), QUICK)


def test_planted_rows_get_their_true_label_back(found: LabelAudit) -> None:
    assert [RIGHT[one.row] for one in found.suspects[: len(WRONG)]] == [
        one.suggested for one in found.suspects[: len(WRONG)]
    ]


def test_a_suspect_says_chances_and_words_of_its_text(found: LabelAudit) -> None:
    for one in found.suspects[: len(WRONG)]:
        assert (one.text, one.label) == (TEXTS[one.row], LABELS[one.row])
        assert one.probability < one.probability_suggested
        assert one.words[0] == RIGHT[one.row]
    assert json.loads(json.dumps(found.as_json()))["suspects"][0]["row"] == found.suspects[0].row


def judged_of(
    chance: np.random.Generator, rows: int, wrong: float, turned: int | None
) -> tuple[suspects.Judged, Bools]:
    """The judgement of rows of three labels that models tell well, of which a share has another: any, or the next."""
    meant_R = chance.integers(0, 3, rows)
    logit_RC = 2.5 * np.eye(3)[meant_R] + chance.normal(size=(rows, 3))
    probability_RC = np.exp(logit_RC) / np.exp(logit_RC).sum(1, keepdims=True)
    is_wrong_R = chance.random(rows) < wrong
    by_R = chance.integers(1, 3, rows) if turned is None else np.full(rows, turned)
    label_R = np.where(is_wrong_R, (meant_R + by_R) % 3, meant_R)
    return suspects.judge(probability_RC, label_R, np.ones(rows, np.bool_)), is_wrong_R


@pytest.mark.parametrize("turned", [None, 1])
@pytest.mark.parametrize("wrong", [0.02, 0.1])
def test_about_as_many_rows_are_listed_as_are_wrong_and_most_of_them_are(wrong: float, turned: int | None) -> None:
    found, is_wrong_R = judged_of(np.random.default_rng(), 4_000, wrong, turned)
    listed, all_wrong = found.suspects, is_wrong_R.sum()
    assert 0.4 * all_wrong < len(listed) < 1.6 * all_wrong
    assert is_wrong_R[listed].mean() > 0.5
    assert 0.5 * all_wrong < found.wrong_R.sum() < 2 * all_wrong
    assert np.all(np.diff(found.doubt_R[listed]) <= 0)


@pytest.mark.parametrize("taken", [False, True])
def test_the_order_is_at_least_that_of_the_own_probability_however_labels_go_wrong(taken: bool) -> None:
    """Eight labels of which two each are alike: 5 % of the rows have any other label, or the one that is alike."""
    chance = np.random.default_rng()
    meant_R = chance.integers(0, 8, 4_000)
    sure, alike = (4.0, 1.5) if taken else (3.0, 2.0)  # Ambiguous texts are the harder ones for flips at random.
    logit_RC = sure * np.eye(8)[meant_R] + alike * np.eye(8)[meant_R ^ 1] + chance.normal(size=(4_000, 8))
    probability_RC = np.exp(logit_RC) / np.exp(logit_RC).sum(1, keepdims=True)
    is_wrong_R = chance.random(4_000) < 0.05
    other_R = meant_R ^ 1 if taken else (meant_R + chance.integers(1, 8, 4_000)) % 8
    label_R = np.where(is_wrong_R, other_R, meant_R)
    found = suspects.judge(probability_RC, label_R, np.ones(4_000, np.bool_))
    own = average_precision_score(is_wrong_R, -probability_RC[np.arange(4_000), label_R])
    assert average_precision_score(is_wrong_R, found.doubt_R) > (own if taken else own - 0.05)


def test_hardly_a_row_is_listed_where_all_labels_are_right() -> None:
    found, _ = judged_of(np.random.default_rng(), 4_000, 0.0, None)
    assert len(found.suspects) < 40


def test_doubt_follows_what_goes_wrong() -> None:
    """Rows of label 0 that are as improbable: six look like label 1, which is then what goes wrong, and one like 2."""
    usual = np.eye(3)[[0] * 20 + [1] * 20 + [2] * 20] * 0.45 + 0.15
    probability_RC = np.concatenate([usual, [[0.2, 0.7, 0.1]] * 12, [[0.2, 0.1, 0.7]]])
    label_R = np.array([0] * 20 + [1] * 20 + [2] * 20 + [0] * 13)
    found = suspects.judge(probability_RC, label_R, np.ones(len(label_R), np.bool_))
    assert found.doubt_R[60:72].min() > found.doubt_R[72] > found.doubt_R[:60].max()
    assert found.meant_R[60:].tolist() == [1] * 12 + [2]


def test_of_two_labels_the_own_probability_alone_ranks_and_who_cannot_be_judged_is_no_suspect() -> None:
    label_R, own_R = np.zeros(5, np.int64), np.array([0.9, 0.4, 0.6, 0.1, 0.01])
    judged_R = np.array([True, True, True, True, False])
    found = suspects.judge(np.stack([own_R, 1 - own_R], 1), label_R, judged_R)
    assert np.argsort(-found.doubt_R[:4]).tolist() == np.argsort(own_R[:4]).tolist()
    assert found.wrong_R[4] == 0
    assert 4 not in found.suspects


def test_rows_that_are_doubted_count_next_to_nothing_in_the_second_round() -> None:
    probability_RC = np.array([[0.1, 0.9], [0.4, 0.6], [0.9, 0.1]])
    assert suspects.weights(probability_RC, np.zeros(3, np.int64)).tolist() == [0.02, 1.0, 1.0]


def test_the_only_row_of_a_label_is_not_judged() -> None:
    given = LabelledTexts(texts=[*TEXTS[:60], "odd one"], labels=[*RIGHT[:60], "rare"])
    found = audit(given, replace(QUICK, epochs=1))
    assert (found.rows, found.judged) == (61, 60)
    assert all(one.row != 60 for one in found.suspects)


SETS = [{word, "polite"} if i % 2 else {word} for i, word in enumerate(RIGHT)]
POLITE = [f"{text}, thank you" if "polite" in labels else text for text, labels in zip(TEXTS, SETS, strict=True)]


def planted() -> list[set[str]]:
    """Rows of several labels, of which some lack one that they had, or have one more."""
    found = [set(labels) for labels in SETS]
    for number, row in enumerate(WRONG):
        word = RIGHT[row]
        found[row] ^= {word} if number % 2 else {WORDS[(WORDS.index(word) + 1) % 3]}
    return found


def test_labels_that_are_missing_or_one_too_many_come_first_and_their_rows_get_the_true_ones_back() -> None:
    sets = planted()
    found = textcls.audit_labels(POLITE, sets, epochs=16, dim=8, vectors="none")
    assert found.judged == found.rows == len(TEXTS)
    first = found.suspects[: len(WRONG)]
    assert sorted(one.row for one in first) == WRONG
    assert [one.suggested for one in first] == [tuple(sorted(SETS[one.row])) for one in first]
    for one in first:
        assert one.label == tuple(sorted(sets[one.row]))
        assert one.probability < 0.5 < one.probability_suggested
        added = set(one.suggested) - set(one.label)
        assert not added or one.words[0] in added


@pytest.mark.parametrize("several", [False, True])
def test_every_row_is_judged_where_a_training_would_hold_out_a_part_alone(
    several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("textcls_training.data.split.CROSS_FIT_BELOW", 10)
    monkeypatch.setattr("textcls_training.pipeline.either_way.FEW_ROWS", 10)
    monkeypatch.setattr("textcls_training.pipeline.either_way.better", lambda one, other: True)
    targets: list[list[str]] | list[str] = [sorted(labels) for labels in SETS] if several else RIGHT
    found = textcls.audit_labels(POLITE, targets, epochs=4, dim=8, vectors="none")
    assert found.judged == found.rows == len(TEXTS)


def judged_sets_of(missing: float, added: float) -> tuple[label_set_suspects.JudgedSets, Bools]:
    """The judgement of rows of four labels, of which a share is missing, and a share of those given were added."""
    chance = np.random.default_rng()
    meant_RC = chance.random((4_000, 4)) < [0.4, 0.3, 0.2, 0.1]
    logit_RC = 6.0 * meant_RC - 3.0 + chance.normal(size=meant_RC.shape)
    goes_RC = meant_RC & (chance.random(meant_RC.shape) < missing)
    comes_RC = ~meant_RC & (chance.random(meant_RC.shape) < added / 3)
    has_RC = (meant_RC & ~goes_RC) | comes_RC
    judged = label_set_suspects.judge(1 / (1 + np.exp(-logit_RC)), has_RC, np.ones(len(meant_RC), np.bool_))
    return judged, np.asarray((goes_RC | comes_RC).any(1))


@pytest.mark.parametrize(("missing", "added"), [(0.1, 0.0), (0.0, 0.1), (0.05, 0.05), (0.02, 0.02)])
def test_of_several_labels_most_of_the_rows_listed_have_one_wrong_or_lack_one(missing: float, added: float) -> None:
    found, is_wrong_R = judged_sets_of(missing, added)
    listed, all_wrong = found.suspects, is_wrong_R.sum()
    assert 0.4 * all_wrong < len(listed) < 1.6 * all_wrong
    assert is_wrong_R[listed].mean() > 0.5
    assert np.all(np.diff(found.doubt_R[listed]) <= 0)


def test_hardly_a_row_is_listed_where_all_label_sets_are_right() -> None:
    assert len(judged_sets_of(0.0, 0.0)[0].suspects) < 60


def test_how_sets_go_wrong_is_fitted_to_a_part_of_very_many_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_set_suspects, "MOST_FITTED", 4)
    monkeypatch.setattr(label_set_suspects, "LEAST_FITTED", 400)
    found, is_wrong_R = judged_sets_of(0.05, 0.05)
    assert len(found.wrong_R) == 4_000
    assert is_wrong_R[found.suspects].mean() > 0.5


def test_a_label_on_every_row_that_models_are_sure_of_is_not_doubted() -> None:
    chance = np.random.default_rng()
    has_RC = np.stack([np.ones(400, np.bool_), chance.random(400) < 0.5], 1)
    probability_RC = np.stack([np.full(400, 0.98), np.full(400, 0.5)], 1)
    found = label_set_suspects.judge(probability_RC, has_RC, np.ones(len(has_RC), np.bool_))
    assert found.wrong_RC[:, 0].max() < found.wrong_RC[:, 1].max()
    assert all(0 in found.meant(row) for row in found.suspects)


def test_of_label_sets_that_nobody_has_judged_none_is_doubted() -> None:
    probability_RC = np.array([[0.9, 0.9], [0.1, 0.1], [0.0, 0.0]])
    has_RC = np.array([[True, True], [False, False], [True, False]])
    found = label_set_suspects.judge(probability_RC, has_RC, np.array([True, True, False]))
    assert not found.wrong_RC[2].any()


def test_a_suspect_differs_from_its_row_even_where_it_is_less_probable_than_not() -> None:
    probability_RC = np.array([[0.9, 0.4], [0.2, 0.1]])
    has_RC = np.array([[True, False], [False, False]])
    found = label_set_suspects.JudgedSets(probability_RC, has_RC, np.array([[0.1, 0.3], [0.0, 0.0]]))
    assert (found.own(0), found.meant(0), found.chances(0)) == ([0], [0, 1], (0.6, 0.4))


def test_check_lists_suspects_of_several_labels_and_writes_them_as_labels_are_written(tmp_path: Path) -> None:
    rows = list(zip(POLITE, map("|".join, map(sorted, planted())), strict=True))
    data = write_rows(tmp_path / "tags.csv", [("text", "label"), *rows])
    suspects_path = tmp_path / "suspects.csv"
    output = succeed("check", data, "--label-separator", "|", "--labels", "--suspects", suspects_path)
    assert "may have a wrong label, or lack one; the surest first" in output
    assert re.search(r"line 29 +polite +\+ refund +\d+% to \d+% +refund", output)
    with suspects_path.open(encoding="utf-8", newline="") as file:
        found = {row["text"]: row["suggested_label"] for row in csv.DictReader(file)}
    assert found[POLITE[WRONG[0]]] == "|".join(sorted(SETS[WRONG[0]]))


def test_rows_without_a_label_cannot_be_audited() -> None:
    with pytest.raises(InputError, match="no labels"):
        textcls.audit_labels(["a b", "c d", "e f"], [[], [], []])


def test_texts_of_which_all_are_copies_of_two_cannot_judge_each_other() -> None:
    with pytest.raises(InputError, match="nothing is left to learn its label from; add rows with other"):
        textcls.audit_labels(["my card was charged", "where is my parcel"] * 5, ["billing", "shipping"] * 5)


def test_check_lists_suspects_and_writes_their_rows(tmp_path: Path) -> None:
    rows = [(str(i), text, label) for i, (text, label) in enumerate(zip(TEXTS[:60], LABELS, strict=False))]
    data = write_rows(tmp_path / "tickets.csv", [("id", "text", "label"), *rows])
    output = succeed("check", data, "--labels", "--suspects", tmp_path / "suspects.csv")
    assert "3 rows (5.0%) may have a wrong label" in output
    assert re.search(rf"{re.escape(str(data))}, line 9 +invoice +parcel +\d+% to \d+% +parcel", output)
    with (tmp_path / "suspects.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == ["id", "text", "label", *COLUMNS]
    assert sorted(int(row["id"]) for row in found) == WRONG[:3]
    assert all(row["suggested_label"] == RIGHT[int(row["id"])] for row in found)


def test_suspects_are_found_by_the_audit_alone(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "tickets.csv", [("text", "label"), ("a", "b")])
    assert "--suspects needs --labels" in fail(2, "check", data, "--suspects", tmp_path / "out.csv")


def test_python_audits_with_the_options_of_training() -> None:
    found = textcls.audit_labels(TEXTS, LABELS, epochs=6, dim=8, vectors="none")
    assert WRONG[0] in {one.row for one in found.suspects}
