"""Progress: bars in a terminal, and lines, but not too many, elsewhere."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import MofNCompleteColumn

from tests.command_line import write_rows
from textcls import ConfigError
from textcls.cli import reading
from textcls.data import BadRows, ReadOptions
from textcls.display.terminal.progress import ProgressLines, counted, progress_on


def test_elsewhere_than_in_a_terminal_each_phase_is_a_line() -> None:
    printed = io.StringIO()
    with progress_on(Console(file=printed), "texts") as progress:
        progress.phase("LIME", 1200)
        progress.step(3, "state")
    assert printed.getvalue() == "LIME: 1,200 texts\n"


def test_of_the_notes_no_more_than_one_a_second_is_a_line() -> None:
    seconds = iter([0.0, 0.0, 0.4, 1.1, 1.1])
    lines = ProgressLines(Console(file=(printed := io.StringIO())), "rows", clock=lambda: next(seconds))
    lines.phase("[b]", 10)
    for number in (1, 2, 3):
        lines.note(f"epoch {number}")
    assert printed.getvalue().splitlines() == ["[b]: 10 rows", "[b]: epoch 1", "[b]: epoch 3"]


def test_in_a_terminal_a_bar_shows_steps_state_and_the_last_note() -> None:
    printed = io.StringIO()
    console = Console(file=printed, force_terminal=True, width=150)
    with progress_on(console, "rows", MofNCompleteColumn()) as progress:
        progress.phase("choosing", 4)
        progress.step(3, "loss 0.250")
        progress.note("epoch 2")
    *_, last = (line for line in printed.getvalue().splitlines() if "choosing" in line)
    for shown in ("3/4", "loss 0.250", "epoch 2"):
        assert shown in last


def test_a_note_before_the_first_phase_is_a_line_of_its_own() -> None:
    for terminal in (False, True):
        printed = io.StringIO()
        with progress_on(Console(file=printed, force_terminal=terminal, width=100), "rows") as progress:
            progress.note("loops are compiled")
        assert "loops are compiled" in printed.getvalue()


def test_rows_are_counted_in_a_terminal_and_come_in_silence_elsewhere() -> None:
    for terminal in (False, True):
        printed = io.StringIO()
        rows = counted(range(1_234), Console(file=printed, force_terminal=terminal, width=100))
        assert list(rows) == list(range(1_234))
        assert ("1,200 rows" in printed.getvalue()) == terminal


def test_the_count_is_gone_before_an_error_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), *[("a", "x")] * 300])
    console = Console(file=(printed := io.StringIO()), force_terminal=True, width=100)
    monkeypatch.setattr(reading, "stderr_console", lambda *, quiet: console)
    how = reading.Reading(ReadOptions(), BadRows(), quiet=False)

    def work() -> None:
        with how.labelled_rows([data], (), None) as rows:
            for number, _ in enumerate(rows):
                if number == 200:
                    raise ConfigError("Something went wrong.")

    with pytest.raises(ConfigError) as caught:
        work()
    console.print(caught.value)
    assert "200 rows" in printed.getvalue()
    # The cursor is shown again, and the line is empty.
    assert printed.getvalue().endswith("\x1b[?25h\r\x1b[1A\x1b[2KSomething went wrong.\n")
