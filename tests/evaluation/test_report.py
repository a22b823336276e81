"""A report on a model: its figures are those of the rows, what was planted is found, and all renderers say the same."""

import hashlib
import json
import re
import shutil
import tracemalloc
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy.stats import binomtest
from sklearn.metrics import f1_score

import textcls
from tests.command_line import fail, read_rows, succeed, write_rows
from tests.explanations import made_up
from textcls import Classifier, ConfigError, InputError, OneLabelModelReport
from textcls.display.html.fragments import document
from textcls.display.html.report import report_fragments
from textcls.display.html.report_parts import CHARACTERS, quoted
from textcls.display.markdown.card import model_card
from textcls.display.markdown.report import report_markdown
from textcls.display.report_lines import summary_lines
from textcls.display.terminal.evaluation import label_table
from textcls.evaluation import intervals, metrics
from textcls.evaluation.data_quality.scripts import script_of
from textcls.evaluation.reporting.abstention import Costs, abstention
from textcls.evaluation.reporting.answers import RowSummary
from textcls.evaluation.reporting.slices import ReadText, slices
from textcls.evaluation.selective_prediction import at
from textcls.model.model_file.thresholds import store_threshold

NASTY = "<script>alert(1)</script> | my card *was* [charged](http://x) twice"


@pytest.fixture(scope="module")
def rows(sample_path: Path) -> list[tuple[str, str]]:
    """Labelled texts of all labels, and one of a label that the model does not know."""
    found = [(row["text"], row["label"]) for row in read_rows(sample_path)]
    return [*found[::4], (NASTY, "gossip")]


@pytest.fixture(scope="module")
def found(classifier: Classifier, rows: list[tuple[str, str]]) -> OneLabelModelReport:
    """A report on the small model."""
    return textcls.report(classifier, rows)


def kept(tokens: int = 4, unknown: int = 0, script: str = "Latin") -> ReadText:
    return ReadText(tokens, unknown, script)


# Figures


def test_figures_are_those_of_evaluate_and_lie_in_their_intervals(
    classifier: Classifier, rows: list[tuple[str, str]], found: OneLabelModelReport
) -> None:
    evaluated = textcls.evaluate(classifier, rows)
    assert found.scores == evaluated.report
    assert found.unknown_labels == evaluated.unknown_labels == ("gossip",)
    right = [label for _, label in rows]
    answers = [answer.label for answer in classifier.predict([text for text, _ in rows])]
    assert found.accuracy.value == found.scores.accuracy
    assert found.macro_f1.value == pytest.approx(f1_score(right, answers, average="macro", zero_division=0))
    for label, f1 in zip(found.scores.labels, found.label_f1, strict=True):
        assert f1.value == pytest.approx(label.f1)
    assert found.label_f1[-1].value == 0  # Of the unknown label.
    for estimate in (found.accuracy, found.macro_f1, *found.label_f1):
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert sum(count for *_, count in found.scores.confusions) == sum(
        a != b for a, b in zip(answers, right, strict=True)
    )


def test_the_interval_of_a_share_holds_the_truth_as_often_as_it_says() -> None:
    drawn = np.random.default_rng(1).binomial(60, 0.8, 2000).tolist()
    held = [one.low <= 0.8 <= one.high for one in (intervals.share(right, 60) for right in drawn)]
    assert 0.93 < np.mean(held) < 0.98


@given(st.integers(0, 400).flatmap(lambda rows: st.tuples(st.integers(0, rows), st.just(rows))))
def test_the_interval_of_a_share_is_that_of_wilson(counts: tuple[int, int]) -> None:
    hits, rows = counts
    estimate = intervals.share(hits, rows)
    if rows:
        interval = binomtest(hits, rows).proportion_ci(method="wilson")
        assert (estimate.low, estimate.high) == pytest.approx((interval.low, interval.high), abs=1e-12)
    else:
        assert estimate == (0.0, 0.0, 1.0)


def test_the_interval_of_a_mean_over_labels_holds_the_draws_and_what_lies_opposite() -> None:
    draws = np.random.default_rng().beta(5, 2, 400)
    low, high = np.percentile(draws[1:], [2.5, 97.5])
    found = intervals.of_draws(draws, 100, biased=True)
    first = float(draws[0])
    assert found.low == pytest.approx(max(0, min(low, 2 * first - high)))
    assert found.high == pytest.approx(min(1, max(high, 2 * first - low)))


def test_of_a_label_that_is_always_right_the_interval_is_that_of_its_rows() -> None:
    right = np.array([0] * 40 + [1] * 40)
    macro, (first, second, absent) = intervals.f1_intervals(right, right, 3)
    assert first == second == intervals.share(40, 40)
    assert macro == intervals.share(80, 80)
    assert absent == (0.0, 0.0, 1.0)


def test_the_interval_of_macro_f1_holds_it_where_draws_lack_rare_labels() -> None:
    random = np.random.default_rng(3)
    right = random.integers(0, 10, 400)
    answers = np.where(random.random(400) < 0.8, right, random.integers(0, 60, 400))
    macro, _ = intervals.f1_intervals(right, answers, 60)
    assert macro.low <= macro.value <= macro.high


def test_labels_without_rows_stand_last_and_without_scores() -> None:
    report = metrics.report(np.eye(3)[[1, 1, 2]], np.array([1, 1, 2]), ("a", "b\u200b" * 80, "c"))
    console = Console(width=120, record=True)
    console.print(*label_table(report), sep="\n")
    lines = console.export_text().splitlines()
    assert lines[-1].split() == ["a", "0"]
    assert max(map(len, lines)) < 120


def test_the_bins_of_reliability_add_up_to_the_calibration_error(found: OneLabelModelReport) -> None:
    assert sum(each.rows for each in found.scores.reliability) == found.rows
    gaps = sum(abs(each.rows * each.confidence - each.right) for each in found.scores.reliability)
    assert gaps / found.rows == pytest.approx(found.scores.ece)
    confidence = [each.confidence for each in found.scores.reliability]
    assert confidence == sorted(confidence)
    assert metrics.reliability(np.zeros(0), np.zeros(0, bool)) == ()


# Thresholds and costs


@given(
    st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), min_size=1, max_size=60),
    st.floats(0, 100),
    st.floats(0, 100),
)
def test_no_threshold_that_is_told_is_cheaper_than_the_cheapest(
    rows: list[tuple[float, bool]], error: float, left: float
) -> None:
    confidence, right = np.array([c for c, _ in rows], np.float32), np.array([r for _, r in rows])
    found = abstention(confidence, right, Costs(error, left), None)
    cost = found.costs.of(found.cheapest)
    assert cost <= found.costs.of(found.all_answered)
    assert cost <= left + 1e-9  # To answer nothing.
    assert all(cost <= found.costs.of(point) for point in found.points)
    each = [at(float(threshold), confidence, right) for threshold in {*confidence.tolist(), 1.1}]
    apart = np.diff(np.unique(confidence)).min(initial=1) > 1e-6
    assert not apart or cost == pytest.approx(min(map(found.costs.of, each)))
    for point in (found.cheapest, *found.points):
        # As it is printed, a threshold parts the same rows.
        assert not point.accepted or at(float(f"{point.threshold:.9g}"), confidence, right).accepted == point.accepted
    coverage = [point.coverage for point in found.points]
    assert coverage == sorted(coverage)
    assert found.all_answered.accepted == len(rows)
    for target, point in found.targets:
        assert (point.precision or 0) >= target


def test_costs_below_zero_and_what_are_none_are_refused(classifier: Classifier) -> None:
    wrong: tuple[Any, ...] = (-1.0, "a", None)
    for cost in wrong:
        with pytest.raises(ConfigError, match="Costs are numbers of 0 or more"):
            Costs(cost)
    with pytest.raises(ConfigError, match=r"costs are what textcls\.Costs\(error=10, abstention=1\) makes"):
        textcls.report(classifier, [("my card", "billing")], costs=(5, 1))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("threshold", "answered"), [(0.6, "answers {coverage} of the rows, {right} of them right ("), (1.0, "answers none")]
)
def test_what_a_model_answers_from_its_own_threshold_on_is_told(
    classifier: Classifier, rows: list[tuple[str, str]], tmp_path: Path, threshold: float, answered: str
) -> None:
    path = Path(shutil.copy(classifier.path, tmp_path / "tickets.onnx"))
    store_threshold(path, threshold)
    model = Classifier.load(path)
    found = textcls.report(model, rows)
    point = textcls.evaluate(model, rows).operating_point
    assert found.abstention.own == point
    assert point is not None
    right = f"{point.precision or 0:.1%}"
    said = f"Below its own threshold of {threshold:.9g} it abstains: it "
    said += answered.format(coverage=f"{point.coverage:.1%}", right=right)
    assert any(line.startswith(said) for line in summary_lines(found))
    assert found.as_json()["abstention"]["own"]["accepted"] == point.accepted
    for page in (report_markdown("Report", found), "".join(report_fragments("Report", found))):
        assert "the model's own" in page.replace("&#x27;", "'")
        assert "The other thresholds were chosen on these rows" in page
    assert textcls.report(classifier, rows).as_json()["abstention"]["own"] is None


# What was planted


def test_what_decides_for_an_answer_is_told_against_its_rival_whether_it_is_right_or_wrong() -> None:
    # "one" tells a from c, and "two" tells it from b, the next probable label.
    explanation = made_up("one two", [(3, 3, -9), (2, 0, 0)], ("a", "b", "c"))
    assert RowSummary.of(explanation, "a").words == ("two",)
    assert RowSummary.of(explanation, "b").words == ("two",)
    assert RowSummary.of(explanation, "c").words == ("one", "two")


def test_the_word_behind_errors_is_named_with_how_often_it_is_right(classifier: Classifier) -> None:
    texts = ["my card was charged twice"] * 9
    word = RowSummary.of(classifier.explain(texts[0]), "billing").words[0]
    assert classifier.predict(texts[0]).label == "billing"
    report = textcls.report(classifier, zip(texts, ["billing"] * 4 + ["gossip"] * 5, strict=True))
    (group,) = report.errors
    assert (group.word, group.answered, group.errors, group.of, group.right) == (
        word,
        "billing",
        5,
        (("gossip", 5),),
        4,
    )
    assert {error.row for error in report.surest_errors} == {4, 5, 6, 7, 8}


def test_behind_errors_stand_words_also_where_letters_stand_without_spaces(classifier: Classifier) -> None:
    report = textcls.report(classifier, [("ช่วยลดความเสี่ยง", label) for label in classifier.labels * 3])
    words = {"ช่วย", "ลด", "ความ", "เสี่ยง"}
    assert {group.word for group in report.errors} <= words
    assert set(report.surest_errors[0].words) <= words
    assert {word.text for label in report.evidence.labels for word in (*label.words_for, *label.words_against)} <= words


def test_the_word_behind_an_error_stands_where_the_report_says(found: OneLabelModelReport) -> None:
    for error in found.surest_errors:
        assert error.text[slice(*error.place)].lower() == error.words[0]


def test_of_a_long_text_the_page_quotes_what_stands_around_the_word_behind_the_error() -> None:
    long = quoted("before " * 100 + "<word> " + "behind " * 100, (700, 706))
    (said,) = re.findall("<bdi>(.*)</bdi>", long)
    assert re.fullmatch("\u2026(before )+<mark>&lt;word&gt;</mark>( behind)+\u2026", said)
    assert 200 < len(said) < 300
    assert "<bdi>a <mark>word</mark></bdi>" in quoted("a word", (2, 6))
    assert "<bdi>no word</bdi>" in quoted("no word", (0, 0))
    assert f"<bdi>{'whole ' * 39}<mark>" in quoted("whole " * 40, (234, 239))
    assert quoted("word " * 100, (0, 0)).count("word") == CHARACTERS // 5


def test_a_word_is_told_once_however_often_it_stands(classifier: Classifier) -> None:
    words = RowSummary.of(classifier.explain("card card card charged"), "returns").words
    assert len(words) == len(set(words))
    assert set(words) <= {"card", "charged"}


def test_a_source_with_wrong_labels_is_found_and_sources_dealt_by_chance_are_not(
    classifier: Classifier, rows: list[tuple[str, str]]
) -> None:
    texts = [text for text, _ in rows] * 2
    labels = [answer.label for answer in classifier.predict(texts)]
    source = ["web" if i % 5 else "mail" for i in range(len(texts))]
    chance = np.random.default_rng(0).integers(0, 8, len(texts)).tolist()
    wrong = [
        "gossip" if where == "mail" and i % 2 else label
        for i, (label, where) in enumerate(zip(labels, source, strict=True))
    ]
    report = textcls.report(classifier, zip(texts, wrong, strict=True), columns={"source": source, "chance": chance})
    (weak,) = report.weak_slices
    assert (weak.kind, weak.name) == ("source", "mail")
    assert weak.accuracy.value < weak.others == 1.0
    assert {one.kind for one in report.slices} >= {"length", "source", "chance"}
    assert any(line.startswith("Weaker on rows with source mail: ") for line in summary_lines(report))


def test_lengths_are_quarters_and_small_kinds_are_not_told() -> None:
    answers = [kept(tokens=1 + i % 40) for i in range(400)] + [kept(script="Han", unknown=3)] * 5
    found = slices(answers, np.ones(405, bool), {})
    lengths = [one for one in found if one.kind == "length"]
    assert [one.name for one in lengths] == ["1 to 10 tokens", "11 to 20 tokens", "21 to 30 tokens", "31 to 40 tokens"]
    assert sum(one.rows for one in lengths) == 405
    assert {one.name for one in found if one.kind != "length"} == set()  # Five rows are too few to hold against others.
    assert not any(one.weak for one in found)


def test_many_numbers_and_dates_of_a_column_are_told_by_quarters() -> None:
    answers = [kept() for _ in range(400)]
    ages: list[object] = [str(i % 40) for i in range(396)] + [None] * 4
    opened = [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(400)]
    found = slices(answers, np.arange(400) % 40 >= 10, {"age": ages, "opened": opened})
    age = [one for one in found if one.kind == "age"]
    assert [one.name for one in age] == ["0 to 9", "10 to 19", "20 to 29", "30 to 39"]  # Four without are too few.
    assert [one.weak for one in age] == [True, False, False, False]
    dates = [one.name for one in found if one.kind == "opened"]
    assert len(dates) == 4
    assert dates == sorted(dates)
    assert dates[0].startswith("2024-01-01 to 2024-0")


def test_one_very_long_value_of_a_column_does_not_widen_all_others() -> None:
    source = ["web"] * 500 + ["mail"] * 499 + ["x" * 100_000]
    answers = [kept() for _ in source]
    slices(answers, np.ones(1000, bool), {"source": ["web"] * 1000})  # Imports are not counted.
    tracemalloc.start()
    try:
        found = slices(answers, np.ones(1000, bool), {"source": source})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert {one.name for one in found if one.kind == "source"} == {"web", "mail"}
    assert most < 10_000_000


@pytest.mark.parametrize(
    ("text", "script"), [("my card", "Latin"), ("\u6ce8\u6587\u4e66 ok", "Han"), ("12 !?", ""), ("", "")]
)
def test_a_text_has_the_script_of_most_of_its_letters(text: str, script: str) -> None:
    assert script_of(text) == script


# Renderers


def test_the_page_runs_nothing_whatever_stands_in_texts_and_labels(classifier: Classifier) -> None:
    report = textcls.report(classifier, [*[(NASTY, "<i>gossip</i>")] * 3, ("my card", "billing")])
    page = document("Report", *report_fragments("Report", report))
    assert page.count("&lt;script&gt;alert(1)") >= 3
    assert page.count("&lt;i&gt;gossip&lt;/i&gt;") >= 3
    assert "<script" not in page
    assert "<i>gossip" not in page


def test_the_page_says_what_matters_and_is_the_same_each_time(found: OneLabelModelReport) -> None:
    page = document("Report", *report_fragments("Report on <b>", found))
    assert "default-src 'none'" in page
    assert "Report on &lt;b&gt;" in page
    for line in summary_lines(found):
        assert line.replace("'", "&#x27;") in page
    assert page.count("<svg") == 3
    assert page == document("Report", *report_fragments("Report on <b>", found))


def test_markdown_takes_no_text_for_a_sign(classifier: Classifier) -> None:
    report = textcls.report(classifier, [*[(NASTY, "a|b*c")] * 3, ("my card", "billing")])
    said = report_markdown("On *this*", report)
    assert said.startswith("# On \\*this\\*\n")
    assert "a\\|b\\*c" in said
    assert "a|b" not in said
    assert "<script>" not in said.replace("\\<script\\>", "")


def test_the_card_has_the_facts_that_the_hub_reads(found: OneLabelModelReport) -> None:
    card = model_card("tickets", found, "heldout")
    head, _, body = card.removeprefix("---\n").partition("\n---\n")
    facts = yaml.safe_load(head)
    assert facts["pipeline_tag"] == "text-classification"
    (model,) = facts["model-index"]
    values = {each["name"]: each["value"] for each in model["results"][0]["metrics"]}
    assert values["accuracy"] == pytest.approx(found.accuracy.value, abs=1e-4)
    assert body.lstrip().startswith("# tickets\n")
    assert found.model.sha256 in body
    hub = pytest.importorskip("huggingface_hub")
    (result, *_) = hub.ModelCard(card).data.eval_results
    assert (result.task_type, result.dataset_name, result.metric_type) == ("text-classification", "heldout", "accuracy")


# The command


@pytest.fixture
def heldout(tmp_path: Path, rows: list[tuple[str, str]]) -> Path:
    table = [(text, label, "web" if i % 2 else "mail") for i, (text, label) in enumerate(rows)]
    return write_rows(tmp_path / "heldout.csv", [("text", "label", "source"), *table])


def test_the_command_writes_each_format_and_prints_what_matters(
    model_path: Path, heldout: Path, tmp_path: Path
) -> None:
    call = ("report", model_path, heldout, "--by", "source")
    printed = json.loads(succeed(*call, "--json"))
    count = printed["rows"]
    for name, more, begins in (
        ("report.html", (), "<!DOCTYPE html>"),
        ("report.md", (), "# Report on model"),
        ("README.md", ("--output-format", "card"), "---\nlibrary_name"),
        ("report.json", (), '{"model": '),
    ):
        assert succeed(*call, "-o", tmp_path / name, *more) == f"{count:,} rows -> {tmp_path / name}\n"
        assert (tmp_path / name).read_text("utf-8").startswith(begins)
    assert json.loads((tmp_path / "report.json").read_text("utf-8")) == printed
    assert {one["name"] for one in printed["slices"] if one["kind"] == "source"} == {"web", "mail"}
    said = succeed(*call, "--error-cost", "0")
    assert said.startswith("It answers ")
    assert "If a wrong answer costs 0 and a row that is left to people 1, it is cheapest to answer all" in said


def test_what_cannot_be_reported_is_refused_and_nothing_is_written(
    model_path: Path, several_labels_path: Path, heldout: Path, tmp_path: Path
) -> None:
    output = tmp_path / "report.html"
    assert "has no column 'from'" in fail(3, "report", model_path, heldout, "--by", "from", "-o", output)
    assert "end it in .html, .md or .json" in fail(2, "report", model_path, heldout, "-o", tmp_path / "report.pdf")
    assert "--output-format needs --output" in fail(2, "report", model_path, heldout, "--output-format", "card")
    assert "--json prints, and --output writes" in fail(2, "report", model_path, heldout, "--json", "-o", output)
    assert "has one label, but the model assigns several" in fail(3, "report", several_labels_path, heldout)
    said = fail(2, "report", model_path, heldout, "--label-separator", ";", "-o", output)
    assert "gives each text one label; report on rows with one label each." in said
    assert "is also the input" in fail(3, "report", model_path, heldout, "-o", heldout, "--output-format", "html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heldout.csv"]


def test_a_report_is_logged_to_mlflow_as_a_run(
    model_path: Path, heldout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec("mlflow") is None:
        said = fail(5, "report", model_path, heldout, "--mlflow")
        assert 'run: pip install "textcls[mlflow]"' in said
        pytest.skip("mlflow is not here (pip install mlflow-skinny)")
    for name, value in {"TRACKING_URI": (tmp_path / "runs").as_uri(), "ALLOW_FILE_STORE": "true"}.items():
        monkeypatch.setenv(f"MLFLOW_{name}", value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Those of its own.
        succeed("report", model_path, heldout, "--mlflow")
    (accuracy,) = (tmp_path / "runs").rglob("metrics/accuracy")
    value = json.loads(succeed("report", model_path, heldout, "--json"))["accuracy"]
    assert float(accuracy.read_text().split()[1]) == pytest.approx(value)
    assert {path.name for path in (tmp_path / "runs").rglob("artifacts/*")} == {
        "report.html",
        "README.md",
        "report.json",
    }


def test_a_column_may_be_called_as_a_kind_of_rows_is(classifier: Classifier) -> None:
    rows = [("my card was charged twice", "billing")] * 50
    found = textcls.report(classifier, rows, columns={"length": ["long", "short"] * 25})
    assert {(one.kind, one.name) for one in found.slices} >= {("column length", "long"), ("column length", "short")}


def test_columns_have_a_value_for_each_row(classifier: Classifier) -> None:
    with pytest.raises(InputError, match=r"The column 'source' has 1 values, and there are 2 rows\."):
        textcls.report(classifier, [("a", "billing"), ("b", "sales")], columns={"source": ["web"]})
    wrong: tuple[tuple[Any, str], ...] = ((3, "not a sequence but int"), (iter("ab"), "iterator, which is read once"))
    for column, said in wrong:
        with pytest.raises(InputError, match=said):
            textcls.report(classifier, [("a", "billing"), ("b", "sales")], columns={"source": column})
    with pytest.raises(InputError, match=r"There are no rows\."):
        textcls.report(classifier, [])


def test_a_report_names_the_model_that_has_answered_whatever_lies_at_its_path_by_then(
    model_path: Path, tmp_path: Path
) -> None:
    content, path = model_path.read_bytes(), tmp_path / "tickets.onnx"
    rows = [("my card was charged twice", "billing"), ("where is my parcel", "shipping")]
    for there in (None, b"another"):
        if there is not None:
            path.write_bytes(there)
        found = textcls.report(textcls.Classifier.from_bytes(content, path), rows)
        assert (found.model.sha256, found.model.bytes) == (hashlib.sha256(content).hexdigest(), len(content))
