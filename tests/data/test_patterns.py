"""Patterns of file names, which a shell has left as they are."""

from pathlib import Path

import pytest

from textcls.data import read_labelled
from textcls.errors import InputError


def write(path: Path, *rows: str) -> None:
    path.write_text("text,label\n" + "".join(f"{row}\n" for row in rows), encoding="utf-8")


def test_a_pattern_is_all_files_that_it_matches_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("part-2.csv", "part-1.csv", "other.csv"):
        write(tmp_path / name, f"{name},x")
    assert read_labelled(tmp_path / "part-*.csv").texts == ["part-1.csv", "part-2.csv"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    write(tmp_path / "a[1].csv", "itself,x")
    write(tmp_path / "a1.csv", "another,x")
    assert read_labelled(tmp_path / "a[1].csv").texts == ["itself"]


def test_a_pattern_without_a_match_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^No file matches .*part-\*\.csv; check the folder and the pattern\.$"):
        read_labelled(tmp_path / "part-*.csv")


def test_quoted_fields_with_line_breaks_go_on_over_any_number_of_bytes_that_is_read_at_a_time(tmp_path: Path) -> None:
    long = "a line\n" * 100_000
    write(tmp_path / "part-1.csv", f'"{long}",x', '"two\nlines",y')
    write(tmp_path / "part-2.csv", f'"{long}",x')
    assert read_labelled(tmp_path / "part-*.csv").texts == [long, "two\nlines", long]
