"""The texts of a pre-training: which are used, which are held out."""

from pathlib import Path

import pytest

from tests.command_line import write_rows
from textcls import InputError
from textcls_training.pretraining.texts import read_texts


def test_neither_order_nor_copies_change_what_is_learned_from_and_held_out(tmp_path: Path) -> None:
    texts = [f"text number {i}" for i in range(60)]
    once = write_rows(tmp_path / "once.csv", [("text",), *((text,) for text in texts)])
    twice = write_rows(tmp_path / "twice.csv", [("text",), *((text,) for text in [*reversed(texts), *texts, " "])])
    found, _ = read_texts([once], limit=1000)
    again, _ = read_texts([twice], limit=1000)
    assert (found.train, found.held_out, found.sha256) == (again.train, again.held_out, again.sha256)
    assert (found.given, again.given) == (60, 121)
    assert len(found.held_out) == 3
    assert sorted([*found.train, *found.held_out]) == sorted(texts)


def test_no_more_texts_are_kept_than_asked_for(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "texts.csv", [("text",), *((f"text {i}",) for i in range(50))])
    found, _ = read_texts([path], limit=10)
    assert (len(found.train), len(found.held_out), found.given) == (9, 1, 50)


def test_a_column_of_a_well_known_name_is_read_and_told(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "texts.csv", [("message",), ("one",), ("two",)])
    found, notes = read_texts([path], limit=10)
    assert sorted([*found.train, *found.held_out]) == ["one", "two"]
    assert "'message' is read as the text" in notes[0]


def test_fewer_than_two_texts_are_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "texts.csv", [("text",), ("same",), ("Same",), ("  ",)])
    with pytest.raises(InputError, match="At least two different texts"):
        read_texts([path], limit=10)
