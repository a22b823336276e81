"""A report on a model that may give several labels: its figures are those of the rows; what was planted is found."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from scipy.stats import sem, t
from sklearn.metrics import f1_score

import textcls
from tests.cli.several import Rows, several_rows
from tests.command_line import fail, read_rows, succeed, write_rows
from textcls import Classifier, ConfigError, InputError, LabelSetModelReport
from textcls.display.html import fragments
from textcls.display.html.fragments import document
from textcls.display.html.report import report_fragments
from textcls.display.html.report_parts import SHOWN_LABELS, folded
from textcls.display.markdown.card import model_card
from textcls.display.markdown.report import report_markdown
from textcls.display.report_lines import _precise, aims_notes, interval, summary_lines
from textcls.display.report_lines import label_aims as label_rows
from textcls.display.text import percent
from textcls.evaluation.intervals import share
from textcls.evaluation.label_set_intervals import _AT_ONCE, _draws, drawn_figures, label_set_intervals
from textcls.evaluation.label_thresholds import Goal
from textcls.evaluation.metrics import reliability, reliability_of_labels
from textcls.evaluation.reporting.abstention import Costs
from textcls.evaluation.reporting.errors import LEAST
from textcls.evaluation.reporting.label_aims import label_aims
from textcls.evaluation.reporting.set_errors import Judged, _Kind

NASTY = "<script>alert(1)</script> | my card *was* [charged](http://x) twice"
Bools = NDArray[np.bool_]


@pytest.fixture(scope="module")
def rows(sample_path: Path) -> Rows:
    """Rows with one label, two or none, and one of a label that the model does not know."""
    return [*several_rows(read_rows(sample_path)), (NASTY, ["gossip"])]


@pytest.fixture(scope="module")
def found(several_labels: Classifier, rows: Rows) -> LabelSetModelReport:
    """A report on the small model."""
    return textcls.report(several_labels, rows)


def drawn(seed: int, rows: int = 80, labels: int = 5) -> tuple[Bools, Bools]:
    """Labels of rows, and labels that they were assigned: mostly these."""
    random = np.random.default_rng(seed)
    gold = random.random((rows, labels)) < 0.3
    return gold, gold ^ (random.random((rows, labels)) < 0.15)


# Figures


def test_figures_are_those_of_evaluate_and_lie_in_their_intervals(
    several_labels: Classifier, rows: Rows, found: LabelSetModelReport
) -> None:
    evaluated = textcls.evaluate(several_labels, rows)
    assert found.scores == evaluated.report
    assert found.unknown_labels == evaluated.unknown_labels == ("gossip",)
    assert found.accuracy.value == pytest.approx(found.scores.exact)
    assert found.micro_f1.value == pytest.approx(found.scores.micro_f1)
    assert found.macro_f1.value == pytest.approx(found.scores.macro_f1)
    for label, f1 in zip(found.scores.labels, found.label_f1, strict=True):
        assert f1.value == pytest.approx(label.f1)
    for estimate in (found.accuracy, found.micro_f1, found.macro_f1, *found.label_f1):
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert found.aims.own.micro_f1 == pytest.approx(found.scores.micro_f1)
    assert found.aims.own.exact == pytest.approx(found.scores.exact)


def test_missed_labels_and_labels_too_many_are_counted_as_the_answers_have_them(
    several_labels: Classifier, rows: Rows, found: LabelSetModelReport
) -> None:
    answers = [set(answer.assigned) for answer in several_labels.predict([text for text, _ in rows])]
    too_many = [assigned - set(labels) for assigned, (_, labels) in zip(answers, rows, strict=True)]
    missed = [set(labels) - assigned for assigned, (_, labels) in zip(answers, rows, strict=True)]
    assert (found.too_many.count, found.too_many.rows) == (sum(map(len, too_many)), sum(map(bool, too_many)))
    assert (found.missed.count, found.missed.rows) == (sum(map(len, missed)), sum(map(bool, missed)))
    assert found.missed.count == sum(label.rows - round(label.recall * label.rows) for label in found.scores.labels)
    for error in found.missed.surest:
        assert error.label in missed[error.row] - {"gossip"}
        assert error.text == rows[error.row][0]
    assert [error.probability for error in found.missed.surest] == sorted(e.probability for e in found.missed.surest)
    assert all(error.label in too_many[error.row] for error in found.too_many.surest)
    for sign, errors in ((1, found.too_many.surest), (-1, found.missed.surest)):
        for error in errors:
            explanation = several_labels.explain(error.text).readable()
            column = sign * explanation.contributions[:, several_labels.labels.index(error.label)]
            strongest = [error.text[slice(*explanation.spans[i])].lower() for i in np.argsort(-column, kind="stable")]
            assert error.words == tuple(dict.fromkeys(strongest))[: len(error.words)]
            assert error.text[slice(*error.place)].lower() == error.words[0]
            assert error.place == explanation.spans[int(column.argmax())]


def test_labels_that_the_model_does_not_know_are_missed_and_stand_in_the_place_of_others_and_no_promise_is_of_them(
    several_labels: Classifier,
) -> None:
    text = "my card was charged twice"
    told = textcls.report(several_labels, [(text, ["billing"])] * 40 + [(text, ["gossip"])] * 10)
    (group,) = told.too_many.groups
    assert (group.instead, group.none) == ((("gossip", 10),), 0)
    assert (told.missed.count, told.missed.rows, told.missed.groups, told.missed.surest) == (10, 10, (), ())
    promise = float(several_labels.predict(text).probabilities.sum())
    assert told.promised.value == pytest.approx(promise - 40 / 50, abs=1e-5)
    (line,) = (line for line in summary_lines(told) if "promise" in line)
    assert f"promise {promise:.2f} labels a row, {abs(promise - 0.8):.2f} " in line
    assert "than rows have of those that it knows:" in line


def test_the_draws_have_the_f1_that_scikit_learn_gives_them() -> None:
    gold, assigned = drawn(0)
    (figures,) = drawn_figures(gold, [assigned])
    assert figures.micro_f1[0] == pytest.approx(f1_score(gold, assigned, average="micro"))
    assert figures.f1[0].tolist() == pytest.approx(f1_score(gold, assigned, average=None).tolist())
    assert figures.macro_f1[0] == pytest.approx(f1_score(gold, assigned, average="macro"))
    assert figures.exact[0] == (gold == assigned).all(1).mean()
    again = label_set_intervals(gold, assigned)
    assert again == label_set_intervals(gold, assigned)


def test_draws_are_made_few_at_a_time_where_there_are_many_labels_and_are_the_same() -> None:
    count_K = np.array([5, 3, 2])
    few, many = (list(_draws(count_K, labels)) for labels in (2, 100_000))
    assert max(map(len, many)) * 100_000 <= _AT_ONCE
    assert np.concatenate(few).tolist() == np.concatenate(many).tolist()


def test_the_interval_of_micro_f1_holds_the_truth_about_as_often_as_it_says() -> None:
    gold, assigned = drawn(1, rows=40_000)
    truth = f1_score(gold, assigned, average="micro")
    random, held = np.random.default_rng(2), []
    for _ in range(200):
        sample = random.integers(0, len(gold), 150)
        interval = label_set_intervals(gold[sample], assigned[sample]).micro_f1
        held.append(interval.low <= truth <= interval.high)
    assert 0.9 < np.mean(held) < 0.99


def test_of_labels_that_are_always_right_the_intervals_are_those_of_shares() -> None:
    gold = np.array([[True, False]] * 40 + [[False, False]] * 10)
    found = label_set_intervals(gold, gold)
    assert found.micro_f1 == found.exact == share(50, 50)
    assert found.f1 == (share(40, 40), share(0, 0))


def test_thresholds_reach_what_they_were_chosen_for(several_labels: Classifier, rows: Rows) -> None:
    many = [row for row in rows if "gossip" not in row[1]] * 3
    found = textcls.report(several_labels, many)
    for point in found.aims.goals:
        assert point.goal is not None
        reached = point.recall if point.goal.measure == "recall" else point.precision
        assert point.unreached or (reached or 0) >= point.goal.share
    recall = [point.recall or 0 for point in found.aims.curve]
    assert recall == sorted(recall)
    assert recall[-1] == 1.0


def test_what_probabilities_promise_is_held_against_the_labels_that_rows_have(several_labels: Classifier) -> None:
    texts = ["my card was charged twice"] * 50
    expected = float(several_labels.predict(texts[0]).probabilities.sum())
    none = textcls.report(several_labels, [*((text, []) for text in texts), (texts[0], ["billing"])])
    assert none.labels_a_row == pytest.approx(1 / 51)
    assert none.promised.value == pytest.approx(expected - 1 / 51, abs=1e-5)
    assert "they are too high" in next(line for line in summary_lines(none) if "promise" in line)


def test_of_few_rows_no_verdict_is_passed_on_what_probabilities_promise(several_labels: Classifier) -> None:
    texts = ["my card was charged twice", "where is my parcel"]
    few, many = ([(text, ["gossip"]) for text in texts] * n + [(texts[0], ["billing"])] for n in (9, 10))
    (line,) = (line for line in summary_lines(textcls.report(several_labels, few)) if "promise" in line)
    assert "than rows have of those that it knows: there are too few rows to tell more. " in line
    (line,) = (line for line in summary_lines(textcls.report(several_labels, many)) if "promise" in line)
    assert "they are too high" in line


def test_the_interval_of_what_probabilities_promise_is_that_of_student(several_labels: Classifier) -> None:
    texts = ["my card was charged twice", "where is my parcel", "send it back to the shop"]
    found = textcls.report(several_labels, [(text, ["billing"]) for text in texts])
    gaps = several_labels.predict(texts)
    value = [float(answer.probabilities.sum(dtype=np.float64)) - 1 for answer in gaps]
    low, high = t.interval(0.95, df=2, loc=np.mean(value), scale=sem(value))
    assert (found.promised.low, found.promised.high) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize("together", [0.0, 0.5, 1.0])
def test_the_intervals_of_probabilities_hold_where_the_labels_of_a_row_come_together(together: float) -> None:
    random, held = np.random.default_rng(5), []
    probability = np.full((200, 8), 0.35, np.float32)
    for _ in range(300):
        own, shared = (random.random((200, labels)) < 0.35 for labels in (8, 1))
        (each,) = reliability_of_labels(probability, np.where(random.random((200, 1)) < together, shared, own))
        held.append(each.low <= 0.35 <= each.high)
    assert 0.91 < np.mean(held) < 0.99


def test_bins_of_labels_are_those_of_pairs_of_a_row_and_a_label(found: LabelSetModelReport) -> None:
    random = np.random.default_rng(6)
    probability, has = random.random((50, 7), np.float32), random.random((50, 7)) < 0.4
    pairs = reliability(probability.ravel(), has.ravel())
    of_labels = reliability_of_labels(probability, has)
    assert [(one.rows, one.right) for one in of_labels] == [(one.rows, one.right) for one in pairs]
    assert [one.confidence for one in of_labels] == pytest.approx([one.confidence for one in pairs], abs=1e-6)
    assert all(0 <= one.low <= one.share.value <= one.high <= 1 for one in of_labels)
    # Labels that are all there, or all missing, in each row say as much as rows.
    (all_right,) = reliability_of_labels(np.ones((9, 4), np.float32), np.ones((9, 4), bool))
    assert (all_right.low, all_right.high) == share(9, 9)[1:]
    (single,) = reliability_of_labels(np.ones((1, 4), np.float32), np.array([[True, True, True, False]]))
    assert single.high - single.low > 0.5
    said = [line.split("|") for line in report_markdown("Report", found).splitlines()]
    for one in found.scores.reliability:
        row = [percent(one.confidence), percent(one.share.value), interval(one.share), f"{one.rows:,}"]
        assert ["", *(f" {cell} " for cell in row), ""] in said


# What was planted


def test_the_word_behind_a_label_too_many_is_named_with_how_often_it_is_right(several_labels: Classifier) -> None:
    text = "my card was charged twice"
    assert several_labels.predict(text).assigned == ("billing",)
    found = textcls.report(several_labels, [(text, ["billing"])] * 4 + [(text, ["returns"])] * 5 + [(text, [])])
    (group,) = found.too_many.groups
    values = several_labels.explain(text).attribution("billing").values
    start, end = several_labels.explain(text).spans[int(values.argmax())]
    assert (group.word, group.label, group.errors, group.right) == (text[start:end], "billing", 6, 4)
    assert (group.instead, group.none) == ((("returns", 5),), 1)
    assert group.examples[0].text[group.examples[0].start : group.examples[0].end] == group.word


def test_the_word_behind_a_missed_label_is_the_one_that_speaks_most_against_it(several_labels: Classifier) -> None:
    text = "my card was charged twice"
    found = textcls.report(several_labels, [(text, ["billing", "returns"])] * 3 + [(text, ["billing"])] * 2)
    (group,) = found.missed.groups
    values = several_labels.explain(text).attribution("returns").values
    start, end = several_labels.explain(text).spans[int(values.argmin())]
    assert (group.word, group.label, group.errors, group.right) == (text[start:end], "returns", 3, 2)
    assert (group.instead, group.none) == ((), 3)
    assert found.too_many.groups == ()


def test_words_behind_errors_are_counted_as_one_by_one(several_labels: Classifier) -> None:
    random, words = np.random.default_rng(3), ["my", "card", "parcel", "late"]
    names, shape = several_labels.labels, (200, len(several_labels.labels))
    gold, assigned = (random.random(shape) < 0.4 for _ in range(2))
    word_NC = random.integers(-1, len(words), shape, dtype=np.int32)
    judged = Judged([" ".join(words)] * 200, names, [()] * 200, gold, assigned, random.random(shape, np.float32))
    # Each example has the word that counts most, so only the counts are looked at.
    groups = _Kind(several_labels, judged, word_NC, words, 1, gold & ~assigned)._counted(
        assigned & ~gold, assigned & gold
    )
    expected = set()
    for word, of in np.ndindex(len(words), len(names)):
        behind_N = assigned[:, of] & (word_NC[:, of] == word)
        wrong, right = int((behind_N & ~gold[:, of]).sum()), int((behind_N & gold[:, of]).sum())
        if wrong >= LEAST:
            expected.add((-wrong, right, words[word], names[of], word, of))
    assert set(groups) == expected
    assert len(expected) > len(words)


def test_a_kind_of_rows_without_labels_has_no_f1(several_labels: Classifier, rows: Rows) -> None:
    none = [(f"Hello team, all is well here {i}", list[str]()) for i in range(25)]
    with_labels = [row for row in rows if row[1]]
    source = ["none"] * len(none) + ["some"] * len(with_labels)
    found = textcls.report(several_labels, [*none, *with_labels], columns={"source": source})
    of_source = {one.name: one for one in found.slices if one.kind == "source"}
    assert of_source["none"].micro_f1 is None
    assert (of_source["some"].micro_f1 or 0) > 0
    printed = {one["name"]: one for one in found.as_json()["slices"] if one["kind"] == "source"}
    assert printed["none"]["micro_f1"] is None
    (line,) = (line for line in report_markdown("Report", found).splitlines() if line.startswith("| source | none |"))
    assert line.split("|")[6].strip() == ""
    page = document("Report", *report_fragments("Report", found))
    heads = page[page.index("all others</th>") :]
    assert heads.startswith('all others</th><th scope="col" class="number">micro-F1</th>')


def test_a_source_with_wrong_labels_is_found(several_labels: Classifier, rows: Rows) -> None:
    texts = [text for text, _ in rows] * 2
    labels = [list(answer.assigned) for answer in several_labels.predict(texts)]
    source = ["web" if i % 4 else "mail" for i in range(len(texts))]
    wrong = [
        [*own, "returns"] if where == "mail" and "returns" not in own else own
        for own, where in zip(labels, source, strict=True)
    ]
    found = textcls.report(several_labels, zip(texts, wrong, strict=True), columns={"source": source})
    (weak,) = found.weak_slices
    assert (weak.kind, weak.name, weak.others) == ("source", "mail", 1.0)
    assert 0 < (weak.micro_f1 or 0) < 1
    assert any(line.startswith("Weaker on rows with source mail: ") for line in summary_lines(found))


# Renderers


def test_the_page_says_what_matters_and_runs_nothing(several_labels: Classifier, rows: Rows) -> None:
    found = textcls.report(several_labels, [*rows, *[(NASTY, ["<i>gossip</i>", "returns"])] * 3])
    page = document("Report", *report_fragments("Report on <b>", found))
    assert page == document("Report", *report_fragments("Report on <b>", found))
    assert "<script" not in page
    assert "<i>gossip" not in page
    assert "&lt;i&gt;gossip&lt;/i&gt;" in page
    assert page.count("<svg") == 2
    assert "Confusions" not in page
    for heading in ("Probabilities and thresholds", "Labels too many", "Missed labels", "Surest missed labels"):
        assert heading in page


def test_what_thresholds_were_chosen_for_is_claimed_of_the_labels_that_reach_it_alone() -> None:
    random, names = np.random.default_rng(7), ["sure", "luck", "rare"]
    gold = random.random((300, 3)) < [0.4, 0.3, 0.02]
    probability = random.uniform(0.01, 0.99, (300, 3)).astype(np.float32)
    probability[:, 0] = np.where(gold[:, 0], 0.9, 0.1)
    gold[np.argsort(-probability[:, 1])[:30], 1] = False
    found = label_aims(probability, gold, (0.5, 0.5, 0.5), names)
    point = found.goals[1]
    assert point.goal == Goal("precision", 0.9)
    assert (point.few, "luck" in point.unreached, "sure" in point.unreached) == (("rare",), True, False)
    assert found.reached(point) == 1
    assert found.as_json()["goals"][1]["few_rows"] == ["rare"]
    row = next(row for row in label_rows(found) if row[0] == "for 90% precision of each")
    assert row[1] == "1 of 3"
    (line,) = _precise(found)
    assert "of each label, which 1 of 3 labels reach on 20 rows or more, " in line
    notes = " ".join(aims_notes(found))
    assert "Under 20 rows have 'rare': there the threshold rests on the probabilities as well." in notes
    assert "No threshold reaches a precision of 90% for 'luck'" in notes
    (all_reach,) = _precise(label_aims(probability[:, :1], gold[:, :1], (0.5,), names[:1]))
    assert "of each label, 100.0% of the labels that it assigns are right, and it finds 100.0%." in all_reach
    (none,) = _precise(label_aims(probability[:, 1:], gold[:, 1:], (0.5, 0.5), names[1:]))
    assert none == "No label that 20 rows or more have reaches a precision of 90% by any threshold."


def test_labels_that_no_row_has_stand_last_and_without_figures(
    several_labels: Classifier, classifier: Classifier
) -> None:
    text = "my card was charged twice"
    several = textcls.report(several_labels, [(text, ["billing"]), (text, ["returns"])] * 3)
    one = textcls.report(classifier, [(text, "billing"), (text, "returns")] * 3)
    for told in (several, one):
        lines = report_markdown("Report", told).split("## Labels\n")[1].split("## ")[0].strip().splitlines()[2:]
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
        assert [row[0] for row in cells[:2]] == ["returns", "billing"]
        assert len(cells) == len(told.scores.labels) > 3
        assert [row[1] for row in cells[:2]] == ["0.0%", percent(2 / 3)]
        assert all(row[1] == row[2] == row[4] == "" for row in cells[2:])
        page = document("Report", *report_fragments("Report", told))
        # In the table of labels, which comes first.
        first, absent = (page.index(f'<th scope="row">{fragments.name(row[0])}</th>') for row in cells[1:3])
        assert first < absent
    label_rows = [f"<tr><td>{i}</td></tr>" for i in range(SHOWN_LABELS + 3)]
    assert "3 more labels, of higher F1<" in folded([], label_rows, 0)
    assert "3 more labels, of higher F1, or that no row has<" in folded([], label_rows, 2)
    assert "1 more label, that no row has<" in folded([], label_rows[:-2], 4)


def test_markdown_and_card_tell_the_figures_of_several_labels(found: LabelSetModelReport) -> None:
    said = report_markdown("On *this*", found)
    assert "| the model's own |" in said
    assert "## Words behind missed labels" in said
    assert "<script>" not in said.replace("\\<script\\>", "")
    head, _, body = model_card("tickets", found, "heldout").removeprefix("---\n").partition("\n---\n")
    (model,) = yaml.safe_load(head)["model-index"]
    values = {each["name"]: each["value"] for each in model["results"][0]["metrics"]}
    assert values["micro-F1"] == pytest.approx(found.micro_f1.value, abs=1e-4)
    assert values["all labels right"] == pytest.approx(found.accuracy.value, abs=1e-4)
    assert "print(answer.assigned)" in body


# The command


@pytest.fixture
def heldout(tmp_path: Path, rows: Rows) -> Path:
    table = [(text, ";".join(labels), "web" if i % 2 else "mail") for i, (text, labels) in enumerate(rows)]
    return write_rows(tmp_path / "heldout.csv", [("text", "label", "source"), *table])


def test_the_command_writes_each_format_and_prints_what_matters(
    several_labels_path: Path, heldout: Path, tmp_path: Path, found: LabelSetModelReport
) -> None:
    call = ("report", several_labels_path, heldout, "--label-separator", ";", "--by", "source")
    printed = json.loads(succeed(*call, "--json"))
    assert {one["name"] for one in printed["slices"] if one["kind"] == "source"} == {"web", "mail"}
    expected = json.loads(json.dumps(found.as_json()))
    same = ("micro_f1", "labels", "missed", "too_many", "thresholds", "micro_f1_interval", "unknown_labels")
    assert {name: printed[name] for name in same} == {name: expected[name] for name in same}
    for name, more, begins in (
        ("report.html", (), "<!DOCTYPE html>"),
        ("report.md", (), "# Report on model"),
        ("README.md", ("--output-format", "card"), "---\nlibrary_name"),
        ("report.json", (), '{"model": '),
    ):
        succeed(*call, "-o", tmp_path / name, *more)
        assert (tmp_path / name).read_text("utf-8").startswith(begins)
    said = succeed(*call)
    assert said.startswith("Micro-F1 ")
    assert "The model does not know 'gossip', and so never assigns such labels." in said


def test_costs_are_refused_and_rows_of_the_other_kind_are(
    several_labels_path: Path, several_labels: Classifier, classifier: Classifier, heldout: Path
) -> None:
    call = ("report", several_labels_path, heldout, "--label-separator", ";")
    assert "are for models of one label per text, and this one may give several" in fail(2, *call, "--error-cost", "3")
    with pytest.raises(ConfigError, match="are for models of one label per text"):
        textcls.report(several_labels, [("a", ["billing"])], costs=Costs())
    with pytest.raises(InputError, match=r"Row 0 has the string 'billing' for a label"):
        textcls.report(several_labels, [("a", "billing")])
    with pytest.raises(InputError, match="Row 0 has labels in a list, and this model gives one label per text"):
        textcls.report(classifier, [("a", ["billing"])])
    with pytest.raises(InputError, match=r"There are no rows\."):
        textcls.report(several_labels, [("a", ["billing"])][:0])


def test_rows_of_a_single_kind_and_an_empty_text_have_a_report(several_labels: Classifier) -> None:
    found = textcls.report(several_labels, [("", ["billing"])])
    assert found.rows == 1
    assert json.dumps(found.as_json(), allow_nan=False)
    assert document("Report", *report_fragments("Report", found))
    assert report_markdown("Report", found)


def test_rows_none_of_which_has_a_label_are_refused(
    several_labels: Classifier, several_labels_path: Path, tmp_path: Path
) -> None:
    empty = write_rows(tmp_path / "empty.csv", [("text", "label"), *[(f"my card {i}", "") for i in range(30)]])
    said = fail(3, "report", several_labels_path, empty, "--label-separator", ";")
    assert said.count("None of the 30 rows has a label: is that the column of the labels?") == 1
    with pytest.raises(InputError, match=r"^The row has no label: is that the column of the labels\?$"):
        textcls.report(several_labels, [("hello", [])])
