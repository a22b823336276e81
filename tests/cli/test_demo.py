"""`textcls demo`: the sample and what to do with it, and nobody's file is written over."""

from pathlib import Path

import pytest

from tests.command_line import fail, succeed
from textcls.cli.demo import FILES


def test_the_sample_is_written_with_the_next_commands(tmp_path: Path, sample_path: Path) -> None:
    said = succeed("demo", tmp_path / "new")
    assert f"textcls train {tmp_path / 'new' / 'support_tickets.csv'} --output tickets.onnx" in said
    for name in FILES:
        assert (tmp_path / "new" / name).read_bytes() == sample_path.with_name(name).read_bytes()
    # Again, nothing is in the way.
    assert succeed("demo", tmp_path / "new") == said


def test_the_rows_that_are_told_are_those_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert succeed("demo").startswith("support_tickets.csv, 875 rows, and support_tickets_test.csv, 210 rows. Next:\n")
    assert "875 rows" in succeed("check", "support_tickets.csv")
    assert "210 rows" in succeed("check", "support_tickets_test.csv")


def test_a_file_of_that_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / FILES[1]).write_text("mine")
    assert "exists and is a different file; name another FOLDER." in fail(3, "demo", tmp_path)
    assert (tmp_path / FILES[1]).read_text() == "mine"
    assert not (tmp_path / FILES[0]).exists()
