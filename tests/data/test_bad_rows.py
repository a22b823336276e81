"""Rows that cannot be used: skipped, counted and told."""

import pytest

from tests.data.tables import CSV, Write
from textcls import InputError
from textcls.data import BadRows, read_labelled


def test_bad_rows_are_skipped_counted_and_told_if_that_is_asked_for(write: Write) -> None:
    rows = "a,x\nb\nc,\nd\xe9,y\n".encode("latin-1") + b'"e"e,z\n' + b"f,y,\n" * 3 + b"g,x\n"
    bad = BadRows(skip=True)
    found = read_labelled(write("a.csv", b"text,label\n" + rows), bad=bad)
    assert (found.texts, found.labels) == (["a", "g"], ["x", "x"])
    assert bad.count == 7
    summary = bad.summary()
    assert summary is not None
    assert summary.startswith("Skipped 7 rows that cannot be used: ")
    assert "line 3: 1 field where the header has 2; " in summary
    assert "line 4: the label in column 'label' is empty; " in summary
    assert summary.endswith("; and 2 more.")


def test_a_header_that_stands_there_again_is_no_row_but_a_text_that_is_called_text_is(write: Write) -> None:
    part = b"\xef\xbb\xbftext, label\n"
    path = write("a.csv", part + b"a,x\n" + part + b"text,y\n")
    with pytest.raises(InputError, match=r"a\.csv, line 3: the header again, as in files that were joined; leave "):
        read_labelled(path)
    assert read_labelled(path, bad=BadRows(skip=True)).texts == ["a", "text"]


def test_nothing_is_said_of_skipped_rows_if_there_are_none(write: Write) -> None:
    bad = BadRows(skip=True)
    read_labelled(write("a.csv", CSV), bad=bad)
    assert bad.summary() is None


def test_a_file_of_which_no_row_can_be_used_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match=r"a\.csv has no rows that can be used: .*line 2: the label .* is empty\.$"):
        read_labelled(write("a.csv", "text,label\na,\n"), bad=BadRows(skip=True))
