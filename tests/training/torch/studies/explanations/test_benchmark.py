import json
import re
from contextlib import closing
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.command_line import read_rows
from tests.training.torch.studies.explanations.conftest import TEXTS
from textcls import Classifier
from textcls.cli import main
from textcls.errors import ConfigError, InputError, SurroundingsError, TextclsError
from textcls_torch.studies.explanations import page, plots
from textcls_torch.studies.explanations.benchmark import explain_benchmark
from textcls_torch.studies.explanations.bootstrap import Estimate
from textcls_torch.studies.explanations.explained_store import ExplainedStore, Kept
from textcls_torch.studies.explanations.methods import METHODS, Counted, Method
from textcls_torch.studies.explanations.report import comparison_grids, grids, notes
from textcls_torch.studies.explanations.results import BenchmarkResult, RationaleCounts
from textcls_training.data.arrays import Float64

CHEAP = "contributions,random"


def test_every_method_has_every_figure(result: BenchmarkResult) -> None:
    assert [method.name for method in result.methods] == list(METHODS)
    for method in result.methods:
        assert {group: len(figures) for group, figures in method.figures.items()} == {
            "delete": 7,
            "mask": 7,
            "plausibility": 15,
            "robustness": 4,
        }
        assert all(len(curve) == 5 for curves in method.curves.values() for curve in curves.values())


def test_texts_without_a_token_are_counted_and_left_out(result: BenchmarkResult) -> None:
    assert (result.texts, result.skipped) == (3, 1)
    assert result.methods[0].figures["delete"]["comprehensiveness"].count == 3


def test_leave_one_out_agrees_with_itself_and_chance_does_not_with_another_model(result: BenchmarkResult) -> None:
    by_name = {method.name: method.figures for method in result.methods}
    assert by_name["leave_one_out"]["delete"]["loo_tau"].value == pytest.approx(1)
    assert by_name["contributions"]["robustness"]["other_model"].value == pytest.approx(1)
    assert by_name["random"]["robustness"]["other_model"].value != pytest.approx(1)


def test_the_contributions_cost_one_call(result: BenchmarkResult) -> None:
    assert result.methods[0].calls == 1
    assert all(method.milliseconds > 0 for method in result.methods)


def test_the_contributions_are_compared_with_every_other_method(result: BenchmarkResult) -> None:
    assert {one.other for one in result.comparisons} == set(METHODS) - {"contributions"}
    assert {one.verdict for one in result.comparisons} <= {"better", "not worse", "worse", None}


def test_what_became_of_the_rationales_is_counted(result: BenchmarkResult) -> None:
    assert result.rationales == RationaleCounts(used=2, unmarked=1, unaligned=0, unknown_label=0, inexact=0)


def test_changes_that_do_not_apply_are_counted(result: BenchmarkResult) -> None:
    assert result.changed == {"typo": 3, "synonym": 1, "duplicate": 3, "other_model": 3}


def test_the_result_is_plain_data_without_nan(result: BenchmarkResult) -> None:
    found = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert found["methods"][0]["figures"]["delete"]["sufficiency"]["count"] == 3


def test_the_same_seed_gives_the_same_figures(classifier: Classifier) -> None:
    one, other = (explain_benchmark(classifier, TEXTS, methods=["contributions", "random"]) for _ in range(2))
    assert [method.figures for method in one.methods] == [method.figures for method in other.methods]
    assert one.comparisons == other.comparisons


def test_a_failing_method_is_named_and_stops_the_measurement(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_model: Counted, _seed: int) -> Method:
        def scores(text: str, label: int) -> Float64:
            raise ZeroDivisionError("of all things")

        return scores

    monkeypatch.setitem(METHODS, "attention", broken)
    with pytest.raises(
        TextclsError, match=r"The method attention failed on a text of 5 tokens \(ZeroDivisionError: of"
    ):
        explain_benchmark(classifier, TEXTS, methods=["attention"])


def test_scores_that_are_no_numbers_are_refused(classifier: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "attention", lambda _model, _seed: lambda _text, _label: np.array([float("nan")]))
    with pytest.raises(TextclsError, match="gave no finite score for each of 5 tokens"):
        explain_benchmark(classifier, TEXTS, methods=["attention"])


def test_models_of_other_labels_cannot_be_compared(classifier: Classifier, model_path: Path) -> None:
    other = Classifier.load(model_path)
    other.info = replace(other.info, labels=tuple("abcdefg"))
    with pytest.raises(ConfigError, match="only models of the same labels"):
        explain_benchmark(classifier, TEXTS, other=other)


def test_no_token_at_all_is_an_error(classifier: Classifier) -> None:
    with pytest.raises(InputError, match="No text contains a word"):
        explain_benchmark(classifier, ["", " "])
    with pytest.raises(ConfigError, match="1 texts and 0 rationales"):
        explain_benchmark(classifier, ["a"], rationales=[])
    with pytest.raises(ConfigError, match="removals are"):
        explain_benchmark(classifier, ["a"], removals=[])


# Tables and page


def test_the_tables_show_what_was_measured(result: BenchmarkResult) -> None:
    assert [grid.title for grid in grids(result)] == [
        "Cost of one explanation",
        "Faithfulness, tokens deleted",
        "Faithfulness, tokens masked",
        "Agreement with people",
        "Robustness",
    ]
    assert len(comparison_grids(result)) == 4
    assert any("2 texts used; left out 1 without a marked token" in note for note in notes(result))


class Reader(HTMLParser):
    """Collects tags, what they refer to, ids and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("href", "src", "xlink:href"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def html(result: BenchmarkResult) -> str:
    return page.render(result)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


def test_the_page_loads_nothing_and_runs_nothing(html: str) -> None:
    reader = read(html)
    assert "script" not in reader.tags
    assert all(link.startswith("#") for link in reader.links)
    assert not re.search(r"url\((?!#)", html)
    assert "default-src 'none'" in html
    assert "prefers-color-scheme: dark" in html


def test_the_plots_are_in_the_page_with_ids_of_their_own(html: str) -> None:
    reader = read(html)
    assert reader.tags.count("svg") == 5
    assert plots.INK not in html
    assert len(set(reader.ids)) == len(reader.ids)
    assert {link[1:] for link in reader.links} <= set(reader.ids)


def test_texts_and_labels_are_escaped(result: BenchmarkResult) -> None:
    example = replace(result.examples[0], text="<b>&x", spans=((0, 1), (1, 2), (2, 3), (3, 4), (4, 5)), label="<i>")
    html = page.render(replace(result, examples=(example,), model="<u>.onnx"))
    reader = read(html)
    assert not {"b", "i", "u"} & set(reader.tags)
    assert "<i> " in "".join(reader.words)
    assert "<b>&x" in "".join(reader.words)


def test_the_same_result_gives_the_same_page(result: BenchmarkResult, html: str) -> None:
    assert page.render(result) == html


# Command


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "heldout.csv"
    path.write_text("text,label\n" + "".join(f'"{text}",billing\n' for text in TEXTS), encoding="utf-8")
    return path


def run(*words: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["explain-benchmark", *map(str, words)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def test_the_command_prints_tables_and_writes_page_and_json(model_path: Path, table: Path, tmp_path: Path) -> None:
    marks = tmp_path / "marks.jsonl"
    entry = {"row": 0, "tokens": TEXTS[0].split(), "rationales": [[0, 1, 0, 1, 1]]}
    marks.write_text(json.dumps(entry), encoding="utf-8")
    html, figures = tmp_path / "page.html", tmp_path / "figures.json"
    code, output, progress = run(
        model_path, table, "--methods", CHEAP, "--removal", "both", "--rationales", marks, "--rationale-class", "right",
        "--other", model_path, "--output", html, "--json", figures,
    )  # fmt: skip
    assert code == 0
    assert "Faithfulness, tokens masked" in output
    assert "Rationales: 1 texts used" in output
    assert "plausibility: 2 explanations" in progress
    assert json.loads(figures.read_text(encoding="utf-8"))["texts"] == 3
    assert html.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_command_takes_marks_in_the_forms_of_the_training(model_path: Path, tmp_path: Path) -> None:
    table, figures = tmp_path / "marked.csv", tmp_path / "figures.json"
    marks = ('[""charged twice""]', "[[3, 7]]", "[0, 0, 1, 1]")
    lines = [f'{text},billing,"{mark}"\n' for text, mark in zip(["my card was charged twice"] * 2, marks, strict=False)]
    table.write_text("text,label,why\n" + "".join(lines) + f'a b c d,sales,"{marks[2]}"\n', encoding="utf-8")
    given = (model_path, table, "--methods", "contributions", "--no-robustness", "--rationale-column", "why")
    code, output, _ = run(*given, "--json", figures)
    assert code == 0
    assert "character F1" in output
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert found["rationales"]["used"] == 3
    assert run(*given, "--rationales", table)[0] == 2


def test_a_measurement_that_was_interrupted_goes_on_from_its_state(
    classifier: Classifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, names = tmp_path / "state.jsonl", ["contributions", "random", "leave_one_out"]
    whole = explain_benchmark(classifier, TEXTS, methods=names)
    make, asked = METHODS["leave_one_out"], []

    def failing(model: Counted, seed: int) -> Method:
        method = make(model, seed)

        def scores(text: str, label: int) -> Float64:
            asked.append(text)
            if len(asked) == 3:
                raise KeyboardInterrupt
            return method(text, label)

        return scores

    monkeypatch.setitem(METHODS, "leave_one_out", failing)
    with pytest.raises(KeyboardInterrupt):
        explain_benchmark(classifier, TEXTS, methods=names, state=state)
    with state.open("a", encoding="utf-8") as file:
        file.write('{"key": "cut off')
    found = explain_benchmark(classifier, TEXTS, methods=names, state=state)
    assert [method.figures for method in found.methods] == [method.figures for method in whole.methods]
    assert [method.calls for method in found.methods] == [method.calls for method in whole.methods]
    # The first text was kept, and the warm-up on it left out.
    assert asked.count("my card was charged twice") == 2
    again = len(asked)
    explain_benchmark(classifier, TEXTS, methods=names, state=state)
    assert len(asked) == again


def test_the_state_of_another_measurement_is_refused(classifier: Classifier, tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    given = {"methods": ["contributions"], "with_robustness": False, "state": state}
    explain_benchmark(classifier, TEXTS, **given)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"seed 0 \(now 1\)"):
        explain_benchmark(classifier, TEXTS, seed=1, **given)  # type: ignore[arg-type]
    state.write_text("something else\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="not what explain-benchmark keeps"):
        explain_benchmark(classifier, TEXTS, **given)  # type: ignore[arg-type]


def test_the_model_in_memory_is_measured_and_not_what_its_path_holds_now(model_path: Path, tmp_path: Path) -> None:
    classifier = Classifier.from_bytes(model_path.read_bytes(), tmp_path / "replaced.onnx")
    found = explain_benchmark(classifier, TEXTS, methods=["contributions"], with_robustness=False)
    assert found.texts == 3


def test_two_measurements_cannot_share_a_state_at_a_time(classifier: Classifier, tmp_path: Path) -> None:
    state, kept = tmp_path / "state.jsonl", Kept(np.array([0.5]), 1, 0.1)
    with closing(ExplainedStore.open(state, {"seed": 0})) as store:
        store.put("a", kept)
        before = state.read_bytes()
        with pytest.raises(SurroundingsError, match=r"Another process measures with .*state\.jsonl; wait for it, or"):
            explain_benchmark(classifier, TEXTS, methods=["contributions"], state=state)
        assert state.read_bytes() == before
    with closing(ExplainedStore.open(state, {"seed": 0})) as store:
        assert store.get("a") == kept


@pytest.mark.parametrize(
    "content",
    [
        '{"about": {"seed": 0}}\n{"about": {"seed": 0}}\n',
        '{"about": {"seed": 0}}\n{"key": "a", "scores": [0.5], "calls": 1}\n',
        '{"about": {"seed": 0}}\n{"key": "a", "scores": ["high"], "calls": 1, "seconds": 1}\n',
        '{"about": 3}\n',
        '{"text": "of another program, without an end of its line"}',
    ],
)
def test_a_file_of_other_lines_is_refused_and_stays_as_it_is(tmp_path: Path, content: str) -> None:
    state = tmp_path / "state.jsonl"
    state.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"state\.jsonl is not what explain-benchmark keeps; name another file"):
        ExplainedStore.open(state, {"seed": 0})
    assert state.read_text(encoding="utf-8") == content


def test_a_measurement_that_was_killed_before_its_first_line_was_whole_begins(tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    state.write_text('{"about": {"se', encoding="utf-8")
    ExplainedStore.open(state, {"seed": 0}).close()
    assert state.read_text(encoding="utf-8") == '{"about": {"seed": 0}}\n'


def test_models_that_have_learned_nothing_are_part_of_the_report_on_request(
    classifier: Classifier, sample_path: Path
) -> None:
    texts = [row["text"] for row in read_rows(sample_path)[:120]]
    given = {"methods": ["contributions", "attention"], "with_robustness": False, "sanity": True}
    found = explain_benchmark(classifier, texts, **given)  # type: ignore[arg-type]
    assert found.changed == {"shuffled_labels": 100, "random_weights": 100}
    own = found.methods[0].figures["sanity"]
    assert not any(one.group == "sanity" for one in found.comparisons)
    for name in ("shuffled_labels", "random_weights"):
        assert own[name].value == pytest.approx(0, abs=0.3)
    assert any(note.startswith("Sanity: ") for note in notes(found))


def test_the_command_measures_no_more_texts_than_asked_for(model_path: Path, table: Path, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    assert (
        run(model_path, table, "--methods", "contributions", "--texts", "1", "--seed", "1", "--json", figures)[0] == 0
    )
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert (found["texts"] + found["skipped"], found["removals"]) == (1, ["delete"])


def test_the_command_reads_other_formats_and_skips_bad_rows_if_asked_for(model_path: Path, tmp_path: Path) -> None:
    data, more = tmp_path / "heldout.jsonl", tmp_path / "more.txt"
    data.write_text('{"message": "my card", "intent": "billing"}\n[]\n{"message": "parcel", "intent": "shipping"}\n')
    more.write_text("__label__billing charged twice\n")
    assert run(model_path, data, "--methods", "contributions,random")[0] == 3
    figures = tmp_path / "figures.json"
    words = (model_path, data, "--methods", "contributions,random", "--on-error", "skip", "--json", figures)
    code, _, said = run(*words)
    assert code == 0, said
    assert "'message' is read as the text" in said
    assert "Skipped 1 row that cannot be used" in said
    assert figures.exists()
    assert run(model_path, more, "--methods", "contributions,random")[0] == 0
    code, _, said = run(*words, "--rationales", more)
    assert (code, "none may be skipped" in said) == (2, True)


def test_rationales_of_another_table_are_refused(model_path: Path, table: Path, tmp_path: Path) -> None:
    marks = tmp_path / "marks.jsonl"
    marks.write_text('{"row": 4, "tokens": ["a"], "rationales": [[1]]}', encoding="utf-8")
    code, _, message = run(model_path, table, "--methods", CHEAP, "--rationales", marks)
    assert code == 3
    assert "speaks of row 4, and the table has 4 rows" in message


def test_the_output_may_not_be_an_input(model_path: Path, table: Path) -> None:
    code, _, message = run(model_path, table, "--json", table)
    assert code == 3
    assert "is also the input" in message


def test_without_the_extra_the_command_says_what_to_type(
    model_path: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda _name: None)
    code, _, message = run(model_path, table, "--output", tmp_path / "page.html")
    assert code == 5
    assert "run: pip install 'textcls[explain]'" in message


def test_without_pytorch_the_command_names_its_own_extra(
    model_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name="torch")

    monkeypatch.setattr("textcls._util.optional_dependencies.import_module", missing)
    code, _, message = run(model_path, table)
    assert code == 5
    assert message.startswith("Error: textcls explain-benchmark needs the package 'torch'")
    assert "run: pip install 'textcls[explain]'" in message


def test_a_method_that_does_not_exist_is_a_wrong_call(model_path: Path, table: Path) -> None:
    code, _, message = run(model_path, table, "--methods", "magic")
    assert code == 2
    assert "There is no method 'magic'" in message


def test_an_attention_that_is_far_less_faithful_is_warned_of(result: BenchmarkResult) -> None:
    def with_attention(comprehensiveness: float) -> BenchmarkResult:
        methods = []
        for method in result.methods:
            figures = {group: dict(found) for group, found in method.figures.items()}
            if method.name in ("attention", "contributions"):
                value = comprehensiveness if method.name == "attention" else 0.85
                figures["delete"]["comprehensiveness"] = Estimate(value, None, None, 3)
            methods.append(replace(method, figures=figures))
        return replace(result, methods=tuple(methods), changed={})

    assert "its comprehensiveness is 0.39, that of the contributions 0.85." in notes(with_attention(0.39))[-1]
    assert not any("attention" in note for note in notes(with_attention(0.7)))
    assert not any("Robustness" in note for note in notes(with_attention(0.7)))
