"""Patterns of file names, which a shell has left as they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

import pytest

from textcls.data import read_labelled, tables
from textcls.data.source import Source, open_source
from textcls.data.storage import find
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


def test_a_pattern_may_begin_in_the_root_folder(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "itself,x")
    root, first, *others = (tmp_path / "a.csv").parts
    found = find(str(Path(root, f"{first[:-1]}[{first[-1]}]", *others)))
    assert [(one.name, one.inside) for one in found] == [(str(tmp_path / "a.csv"), "/".join([first, *others]))]


def test_a_pattern_without_a_match_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^No file matches .*part-\*\.csv; check the folder and the pattern\.$"):
        read_labelled(tmp_path / "part-*.csv")


def test_quoted_fields_with_line_breaks_go_on_over_any_number_of_bytes_that_is_read_at_a_time(tmp_path: Path) -> None:
    long = "a line\n" * 100_000
    write(tmp_path / "part-1.csv", f'"{long}",x', '"two\nlines",y')
    write(tmp_path / "part-2.csv", f'"{long}",x')
    assert read_labelled(tmp_path / "part-*.csv").texts == [long, "two\nlines", long]


def test_of_many_files_one_is_open_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(4):
        write(tmp_path / f"part-{i}.csv", f"number {i},x", f"another {i},x")
    usual = read_labelled(tmp_path / "part-*.csv")
    monkeypatch.setattr(tables, "MOST_OPEN", 3)
    opened: list[int] = []

    @contextmanager
    def counted(path: Path) -> Iterator[Source]:
        with open_source(path) as source:
            opened.append(1)
            yield source
            opened.append(-1)

    monkeypatch.setattr(tables, "open_source", counted)
    found = read_labelled(tmp_path)
    assert (found.texts, [found.places[i] for i in range(8)]) == (usual.texts, [usual.places[i] for i in range(8)])
    assert max(accumulate(opened)) == 1
