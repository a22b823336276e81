"""In which encoding a file is, and the bytes that are not of it."""

import re

import pytest

from tests.data.tables import CSV, JSONL, LINES, TWO, Write, notes_of, refusal, rows_of
from textcls import ConfigError, InputError
from textcls.data import open_table
from textcls.data.rows import BadRows


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize(("name", "content"), [("a.csv", CSV), ("a.jsonl", JSONL), ("a.txt", LINES)])
def test_a_byte_order_mark_says_the_encoding(write: Write, encoding: str, name: str, content: str) -> None:
    path = write(name, content.encode(encoding))
    assert rows_of(path) == TWO
    assert len(notes_of(path)) == (encoding != "utf-8-sig")


def test_what_begins_with_zero_bytes_is_no_text_or_utf_16_without_its_mark(write: Write) -> None:
    path = write("a.csv", CSV.encode("utf-16-le"))
    assert "UTF-16 without a byte order mark, which needs --encoding utf-16-le or utf-16-be." in refusal(path)
    assert rows_of(path, encoding="utf-16-le") == TWO


def test_the_encoding_asked_for_is_used(write: Write) -> None:
    path = write("a.csv", "text\ncaf\u00e9 \u20ac5\n".encode("cp1252"))
    assert rows_of(path, encoding="cp1252") == [{"text": "caf\u00e9 \u20ac5"}]
    assert "Unknown encoding 'latin-99'" in refusal(path, ConfigError, encoding="latin-99")
    assert "Unknown encoding 'rot13'" in refusal(path, ConfigError, encoding="rot13")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "gb18030"])
def test_a_byte_that_is_not_of_the_encoding_asked_for_is_told_with_its_line(write: Write, encoding: str) -> None:
    path = write("a.csv", b"text\na\nb\x81\n")
    assert f"line 3: byte 0x81 is not {encoding}" in refusal(path, encoding=encoding)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", b"text\na\nb\xe9\nc\n"), ("a.jsonl", b'{"text":"a"}\n{"text":"b\xe9"}\n'), ("a.txt", b"a\nb\xe9\n")],
)
def test_a_byte_that_is_not_utf_8_is_told_with_the_word_as_windows_has_it(
    write: Write, name: str, content: bytes
) -> None:
    message = refusal(write(name, content))
    assert "byte 0xe9 is not UTF-8; add --encoding cp1252 if 'b\u00e9' is meant" in message
    assert f"line {3 if name == 'a.csv' else 2}:" in message


def test_bytes_in_the_header_that_are_not_utf_8_are_told(write: Write) -> None:
    assert "line 1: byte 0xe9 is not UTF-8" in refusal(write("a.csv", b"t\xe9xt,label\na,x\n"))


def test_utf_16_that_is_cut_off_is_told(write: Write) -> None:
    assert "is not utf-16" in refusal(write("a.csv", CSV.encode("utf-16")[:-1]))


def test_a_file_in_another_encoding_throughout_is_refused_and_its_rows_are_not_skipped_one_by_one(write: Write) -> None:
    rows = "".join(f"fa\u00e7on {i},\u00e9t\u00e9\n" if i % 4 == 0 else f"row {i},x\n" for i in range(40))
    path = write("a.csv", f"text,label\n{rows}".encode("cp1252"))
    said = "is not UTF-8, in 10 of its first 40 lines; line 2: byte 0xe7 is not UTF-8; add --encoding cp1252 if"
    for skip in (False, True):
        with pytest.raises(InputError, match=re.escape(said)), open_table(path, bad=BadRows(skip=skip)) as table:
            list(table.rows)
    # Of a file of two encodings, and where a few lines among many are odd, rows are bad.
    mixed = b"".join(f"caf\u00e9 {i},x\n".encode("cp1252" if i % 4 == 0 else "utf-8") for i in range(40))
    with open_table(write("c.csv", b"text,label\n" + mixed), bad=BadRows(skip=True)) as table:
        assert len(list(table.rows)) == 30
    rows = "".join(f"fa\u00e7on {i},x\n" if i % 40 == 0 else f"row {i},x\n" for i in range(200))
    with open_table(write("b.csv", f"text,label\n{rows}".encode("cp1252")), bad=BadRows(skip=True)) as table:
        assert len(list(table.rows)) == 195
