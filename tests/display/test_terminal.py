"""Explanations in the terminal: colours, tables, examples."""

import io
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from tests.command_line import read_rows
from tests.explanations import opposed
from textcls import Classifier, Explanation
from textcls.display.terminal.console import AGAINST, FOR, VisibleConsole, show, stdout_console
from textcls.display.terminal.evaluation import evaluation_report
from textcls.display.terminal.explanation import coloured_text, rich_token_table
from textcls.display.terminal.global_explanation import global_explanation_report
from textcls.display.text import top_k_sentence
from textcls.display.token_table import token_table
from textcls.evaluation import metrics
from textcls.evaluation.evaluation import Evaluation
from textcls.explain.global_explanation.explainer import GlobalExplainer


def colours(explanation: Explanation, label: str) -> dict[str, str]:
    """The coloured parts of the text, as drawn."""
    text = coloured_text(explanation, explanation.attribution(label))
    return {text.plain[span.start : span.end]: str(span.style) for span in text.spans}


def test_tokens_are_coloured_by_sign_and_strength_for_the_label() -> None:
    explanation = opposed("good fair weak bad worst", 2.0, 0.9, 0.1, -0.5, -1.5)
    assert colours(explanation, "good") == {
        "good": f"bold {FOR}",
        "fair": FOR,
        "bad": AGAINST,
        "worst": f"bold {AGAINST}",
    }
    assert colours(explanation, "bad") == {
        "good": f"bold {AGAINST}",
        "fair": AGAINST,
        "bad": FOR,
        "worst": f"bold {FOR}",
    }
    assert all(Style.parse(style) for style in colours(explanation, "good").values())


def test_words_that_are_unknown_are_underlined_in_the_text_and_marked_in_the_table() -> None:
    explanation = opposed("good fair bad", 2.0, 0.05, -1.0, known=[True, False, False])
    spans = coloured_text(explanation, explanation.attribution()).spans
    assert [(span.start, span.end) for span in spans if span.style == "underline"] == [(5, 9), (10, 13)]
    with (console := Console(width=200, file=io.StringIO())).capture() as printed:
        console.print(rich_token_table(token_table(explanation, explanation.attribution(), range(3))))
    rows = printed.get().splitlines()
    assert [row.split("  ")[0] for row in rows[1:4]] == ["good", "fair (unknown)", "bad (unknown)"]


def test_control_characters_in_a_text_do_not_move_the_colours() -> None:
    # Bell and backspace are tokens; the others are white space.
    explanation = opposed("\r\a\b\v\f good\r\nbad", 0, 0, 2.0, -1.0)
    assert len(explanation.spans) == 4
    assert colours(explanation, "good") == {"good": f"bold {FOR}", "bad": f"bold {AGAINST}"}


@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_examples_give_way_and_keep_the_word_in_sight(
    classifier: Classifier, sample_path: Path, width: int
) -> None:
    explainer = GlobalExplainer(classifier.labels)
    for explanation in classifier.explain([row["text"] for row in read_rows(sample_path)[:200]]):
        explainer.add(explanation)
    explainer.add(classifier.explain("\u6ce8\u6587\u306e\u30ad\u30e3\u30f3\u30bb\u30eb " * 9))
    console = Console(width=200, file=(printed := io.StringIO()))
    for part in global_explanation_report(explainer.summary(4), width):
        console.print(part)
    rows = [line.rstrip() for line in printed.getvalue().splitlines() if "[" in line]
    assert len(rows) > 50
    assert all("]" in row for row in rows)
    assert max(map(cell_len, rows)) <= width


def _scored(labels: int, unknown: tuple[str, ...] = ()) -> str:
    """What is shown of an evaluation of so many labels, of which the last is the worst."""
    names = [f"label {i:03}" for i in range(labels)]
    right = np.repeat(np.arange(labels), 2)
    answered = right.copy()
    answered[-1] = 0
    report = metrics.report(np.eye(labels, dtype=np.float32)[answered], right, names)
    console = Console(file=io.StringIO(), width=120)
    for part in evaluation_report(Evaluation(report, unknown_labels=unknown), 120):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_of_many_labels_the_worst_are_shown_and_of_few_all() -> None:
    many = _scored(50)
    assert "The 20 of 50 labels with the lowest F1:\nlabel      precision" in many
    assert many.index("label 049") < many.index("label 000") < many.index("label 001")
    assert "label 030" not in many
    assert "lowest F1" not in _scored(40)


def test_a_label_that_the_model_does_not_know_is_told_with_the_one_that_may_be_meant() -> None:
    said = _scored(3, ("Label_001", "other"))
    assert "The model does not know 'Label_001' (did you mean 'label 001'?), 'other': rows with such" in said


def test_no_text_steers_the_terminal_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = "\x1b[2J red \x1b]0;title\x07 \x9b31m \u202egnirts"
    table = Table(hostile, title=Text(hostile))
    table.add_row(Text(hostile, style="bold"))
    monkeypatch.setenv("COLUMNS", "500")
    with (console := stdout_console()).capture() as printed:
        show([hostile, Text(hostile), table], console)
    assert "red" in printed.get()
    assert not set("\x1b\x07\x9b\u202e") & set(printed.get())


def test_a_terminal_still_gets_its_own_colours() -> None:
    console = VisibleConsole(force_terminal=True, color_system="truecolor", file=io.StringIO())
    with console.capture() as printed:
        console.print(Text("good \x1b bad", style="bold"))
    assert printed.get() == "\x1b[1mgood \u241b bad\x1b[0m\n"


def test_of_many_labels_the_best_few_are_told_and_of_few_they_are_not() -> None:
    said = top_k_sentence({3: 0.61024, 5: 0.7}, 20)
    assert said == "The right label is among the best 3 in 61.02% of the rows, among the best 5 in 70.00% of the rows."
    assert top_k_sentence({3: 0.61, 5: 0.7}, 19) == ""
