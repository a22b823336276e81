"""All formats that are read and written: what is found out of a file, what comes back, and what is refused."""

import csv
import gc
import gzip
import io
import json
import random
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textcls import ConfigError, InputError, MissingExtraError
from textcls.data import BadRows, ReadOptions, Row, open_table, open_tables, read_labelled, writing

Write = Callable[[str, bytes | str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def parquet(path: Path, columns: dict[str, Any]) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def rows_of(path: Path, **options: Any) -> list[dict[str, Any]]:
    with open_table(path, ReadOptions(**options)) as table:
        return [row.fields for row in table.rows]


def notes_of(path: Path) -> list[str]:
    with open_table(path) as table:
        return table.notes


def refusal(path: Path, kind: type[Exception] = InputError, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        rows_of(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


class Piped(io.BytesIO):
    """Standard input of a test, which is no file of the system."""

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")


def feed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Piped(content)))


TWO = [{"text": "a", "label": "x"}, {"text": "b, c", "label": "y"}]
CSV, TSV = 'text,label\na,x\n"b, c",y\n', "text\tlabel\na\tx\nb, c\ty\n"
JSONL = '{"text": "a", "label": "x"}\n\n{"text": "b, c", "label": "y"}\n'
LINES = "__label__x a\n__label__y b, c\n"


# Which format it is


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV),
        ("a.CSV", CSV),
        ("a.tsv", TSV),
        ("a.tab", TSV),
        ("a.jsonl", JSONL),
        ("a.ndjson", JSONL),
        ("a.ft", LINES),
        ("a.txt", LINES),
        ("a.data", CSV),
        ("a.data", TSV),
        ("a.data", JSONL),
        ("a.data", LINES),
        ("a", "\n\n" + LINES),
        ("a.txt", TSV),
    ],
)
@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_a_file_is_read_by_its_name_or_by_its_first_bytes(
    write: Write, monkeypatch: pytest.MonkeyPatch, name: str, content: str, zipped: bool
) -> None:
    data = gzip.compress(content.encode()) if zipped else content.encode()
    path = write(name + ".gz" * zipped, data)
    assert rows_of(path) == TWO
    feed(monkeypatch, data)
    assert rows_of(Path("-")) == TWO


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_parquet_is_read_by_its_name_by_its_first_bytes_and_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zipped: bool
) -> None:
    path = parquet(tmp_path / "a.parquet", {"text": ["a", "b, c"], "label": ["x", "y"]})
    data = gzip.compress(path.read_bytes()) if zipped else path.read_bytes()
    for name in ("a.pq", "a.data"):
        (tmp_path / name).write_bytes(data)
        assert rows_of(tmp_path / name) == TWO
    feed(monkeypatch, data)
    assert rows_of(Path("-")) == TWO


def test_the_format_that_was_asked_for_counts_more_than_the_name(write: Write) -> None:
    assert rows_of(write("a.csv", JSONL), format="jsonl") == TWO


def test_a_json_file_is_refused_with_the_name_of_json_lines(write: Write) -> None:
    assert "one object a line into a file called .jsonl" in refusal(write("a.json", '[{"text": "a"}]'))
    assert rows_of(write("a.json", JSONL), format="jsonl") == TWO


def test_an_excel_file_is_refused(write: Write) -> None:
    assert "is a zip or Excel file; save its table as CSV." in refusal(write("a.xlsx", b"PK\x03\x04rest"))


@pytest.mark.parametrize("options", [{"delimiter": ";"}, {"quotes": False}])
def test_options_of_csv_do_not_go_with_other_formats(write: Write, options: dict[str, Any]) -> None:
    assert "there is neither --delimiter, --no-quotes nor --no-header" in refusal(
        write("a.jsonl", JSONL), ConfigError, **options
    )


# Delimiter and encoding


@pytest.mark.parametrize(("sign", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_another_delimiter_is_found_out_and_said(write: Write, sign: str, name: str) -> None:
    path = write("a.csv", f'id{sign}text\n1{sign}"one, two; {sign} three"\n2{sign}a, b, c\n')
    assert [row["text"] for row in rows_of(path)] == [f"one, two; {sign} three", "a, b, c"]
    assert notes_of(path) == [f"{path} is read with {name} between its fields."]


def test_commas_are_the_default_and_nothing_is_said_of_them(write: Write) -> None:
    path = write("a.csv", "text,label\na;b;c,x\nd;e;f,y\n")
    assert [row["text"] for row in rows_of(path)] == ["a;b;c", "d;e;f"]
    assert notes_of(path) == []
    assert rows_of(write("one.csv", "text\na; b\nc\n")) == [{"text": "a; b"}, {"text": "c"}]


def test_a_header_with_semicolons_alone_decides_if_no_delimiter_fits_all_rows(write: Write) -> None:
    assert "line 3: 3 fields where the header has 2" in refusal(write("a.csv", "text;label\na;x\nb;c;y\n"))


def test_without_a_header_the_first_line_is_a_row_and_columns_have_numbers(write: Write) -> None:
    path = write("spam.tsv", "ham\thello you\nspam\twin now\n")
    assert rows_of(path, header=False) == [{"1": "ham", "2": "hello you"}, {"1": "spam", "2": "win now"}]
    short = write("short.csv", "3,title,text\n4,title\n")
    assert "2 fields where the first row has 3" in refusal(short, header=False)
    assert "--no-header" in refusal(write("rows.jsonl", "{}\n"), ConfigError, header=False)


def test_a_header_that_looks_like_a_row_is_told_how_to_read_it(write: Write) -> None:
    path = write("spam.tsv", "ham\thello you" + " and you" * 20 + "\nspam\twin now\n")
    with pytest.raises(InputError, match="add --no-header, or --format lines") as caught:
        read_labelled([path])
    assert len(str(caught.value)) < 300


def test_plain_lines_are_texts_and_nothing_else(write: Write) -> None:
    path = write("texts.csv", "hello, world\n\n__label__x is text here\n")
    assert rows_of(path, format="lines") == [{"text": "hello, world"}, {"text": "__label__x is text here"}]


def test_the_delimiter_asked_for_is_used(write: Write) -> None:
    assert rows_of(write("a.csv", "text~label\na~x\n"), delimiter="~") == TWO[:1]
    assert "A delimiter is one character" in refusal(write("a.csv", CSV), ConfigError, delimiter="||")


def test_quotes_can_be_ordinary_characters(write: Write) -> None:
    path = write("a.tsv", 'text\tlabel\n"a\tx\n"b" c\ty\n')
    assert [row["text"] for row in rows_of(path, quotes=False)] == ['"a', '"b" c']
    assert "--no-quotes" in refusal(path)


def test_a_quote_that_is_never_closed_is_told_by_the_row_in_which_it_opens_and_never_skipped(write: Write) -> None:
    path = write("a.csv", 'text,label\n"a\nb",x\n"c,y\n' + "d,z\n" * 5000)
    with pytest.raises(InputError, match=r"line 4: a quote opens in this row and is never closed"):
        read_labelled(path, bad=BadRows(skip=True))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize(("name", "content"), [("a.csv", CSV), ("a.jsonl", JSONL), ("a.txt", LINES)])
def test_a_byte_order_mark_says_the_encoding(write: Write, encoding: str, name: str, content: str) -> None:
    path = write(name, content.encode(encoding))
    assert rows_of(path) == TWO
    assert len(notes_of(path)) == (encoding != "utf-8-sig")


def test_what_begins_with_zero_bytes_is_no_text_or_utf_16_without_its_mark(write: Write) -> None:
    path = write("a.csv", CSV.encode("utf-16-le"))
    assert "UTF-16 without a byte order mark, which --encoding utf-16-le or utf-16-be would read." in refusal(path)
    assert rows_of(path, encoding="utf-16-le") == TWO


def test_the_encoding_asked_for_is_used(write: Write) -> None:
    path = write("a.csv", "text\ncaf\u00e9 \u20ac5\n".encode("cp1252"))
    assert rows_of(path, encoding="cp1252") == [{"text": "caf\u00e9 \u20ac5"}]
    assert "There is no encoding 'latin-99'" in refusal(path, ConfigError, encoding="latin-99")
    assert "There is no encoding 'rot13'" in refusal(path, ConfigError, encoding="rot13")


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


# JSON lines


def test_values_of_json_keep_their_types(write: Write) -> None:
    content = '{"text": "a", "n": 1, "x": 1.5, "b": true, "none": null, "l": ["p", {"q": 2}]}\n'
    assert rows_of(write("a.jsonl", content)) == [json.loads(content)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"text": "b"', "no JSON, Expecting ',' delimiter at column 13; one object a line is needed"),
        ("[1]", 'one JSON object a line is needed, such as {"text": "..."}, not a list'),
        ('"b"', "not a str"),
        ('{"text": ' + "[" * 100_000, "cannot be read"),
        ('{"text": ' + "1" * 5000 + "}", "cannot be read"),
    ],
    ids=["cut", "list", "string", "deep", "long number"],
)
def test_a_line_that_is_no_object_is_told_with_its_number(write: Write, line: str, words: str) -> None:
    path = write("a.jsonl", f'{{"text": "a"}}\n\n{line}\n{{"text": "c"}}\n')
    message = refusal(path)
    assert f"{path}, line 3: " in message
    assert words in message
    assert words in refusal(write("b.jsonl", line))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('{"label": "x"}', "the text in column 'text' has no value"),
        ('{"text": null, "label": "x"}', "the text in column 'text' has no value"),
        ('{"text": 5, "label": "x"}', "the text in column 'text' is a int and no string"),
        ('{"text": "b"}', "the label in column 'label' is empty"),
        ('{"text": "b", "label": ["x", "y"]}', "the label in column 'label' is a list; one label a row is needed"),
    ],
)
def test_a_text_or_label_of_json_that_is_none_is_told_with_its_line(write: Write, row: str, words: str) -> None:
    path = write("a.jsonl", f'{{"text": "a", "label": "y"}}\n{row}\n')
    with pytest.raises(InputError, match="line 2: ") as caught:
        read_labelled(path)
    assert words in str(caught.value)


def test_numbers_and_truth_values_may_be_labels(write: Write) -> None:
    path = write("a.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": false}\n')
    assert read_labelled(path).labels == ["1", "False"]


def test_an_unpaired_surrogate_is_read_from_json_and_written_back_as_it_was(write: Write, tmp_path: Path) -> None:
    path = write("a.jsonl", '{"text": "a\\ud800"}\n')
    assert rows_of(path) == [{"text": "a\ud800"}]
    assert copied(path, tmp_path / "b.jsonl") == [{"text": "a\ud800"}]
    for name in ("b.csv", "b.parquet"):
        with pytest.raises(InputError, match="JSONL"):
            copied(path, tmp_path / name)
        assert not (tmp_path / name).exists()


# fastText's lines


def test_labels_of_fasttext_stand_anywhere_and_keep_all_their_signs(write: Write) -> None:
    path = write("a.txt", "__label__food-safety, is it?\nhow long\t__label__b/c__d \r\n\n__label__e\n")
    assert rows_of(path) == [
        {"label": "food-safety,", "text": "is it?"},
        {"label": "b/c__d", "text": "how long"},
        {"label": "e", "text": ""},
    ]


def test_several_labels_in_a_line_are_refused_with_its_number(write: Write) -> None:
    path = write("a.txt", "__label__a b\n__label__a __label__b c\n")
    assert f"{path}, line 2: 2 labels, 'a' and 'b'; one label a row is needed" in refusal(path)


def test_a_line_without_a_label_among_labelled_ones_has_an_empty_label(write: Write) -> None:
    path = write("a.txt", "__label__a b\nc\n")
    with pytest.raises(InputError, match=r"line 2: the label in column 'label' is empty"):
        read_labelled(path)


def test_a_text_file_without_labels_holds_one_text_a_line(write: Write) -> None:
    assert rows_of(write("a.txt", "my card, it\nwas; charged\n")) == [{"text": "my card, it"}, {"text": "was; charged"}]
    assert rows_of(write("one.txt", "hello, you\nthere\n")) == [{"text": "hello, you"}, {"text": "there"}]
    assert "may hold columns, or one text a line; add --format csv" in refusal(write("two.txt", "hello, you\na, b\n"))
    assert rows_of(write("two.txt", "a, b\nc, d\n"), format="fasttext") == [{"text": "a, b"}, {"text": "c, d"}]
    assert "the label 'x', where the first line has none" in refusal(write("a.txt", "a\nb __label__x\n"))


# Parquet


def test_without_pyarrow_the_command_to_type_is_told(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refusal(write("a.parquet", b"PAR1"), MissingExtraError) == (
        "Parquet needs the package 'pyarrow', which is not installed; type: pip install 'textcls[parquet]'"
    )
    with pytest.raises(MissingExtraError, match="Parquet needs the package 'pyarrow'"):
        writing.format_of(Path("b.parquet"), None, "csv")


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1 and nothing of the kind PAR1", b""])
def test_a_file_that_is_no_parquet_is_told(write: Write, content: bytes) -> None:
    assert "is no Parquet file, or it is damaged or cut off" in refusal(write("a.parquet", content))


def test_a_parquet_file_that_is_cut_off_is_told(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"text": [f"text {i}" for i in range(5000)]})
    path.write_bytes(path.read_bytes()[:-100])
    assert "is damaged or cut off" in refusal(path)


def test_rows_of_parquet_are_told_by_number(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"text": ["a", None], "label": [1, 2]})
    with pytest.raises(InputError, match=r"a\.parquet, row 2: the text in column 'text' has no value"):
        read_labelled(path)


def test_columns_of_parquet_keep_their_types_and_values(tmp_path: Path) -> None:
    columns = {
        "text": pyarrow.array(["a", "b"]),
        "when": pyarrow.array([1, 10**18 + 1], pyarrow.timestamp("ns", "UTC")),
        "day": pyarrow.array([1, None], pyarrow.date32()),
        "price": pyarrow.array(["1.10", "2.00"]).cast(pyarrow.decimal128(5, 2)),
        "kind": pyarrow.array(["p", "q"]).dictionary_encode(),
        "small": pyarrow.array([1, None], pyarrow.int8()),
        "tags": pyarrow.array([["p"], None], pyarrow.list_(pyarrow.string())),
        "raw": pyarrow.array([b"\0\xff", None]),
    }
    path = parquet(tmp_path / "a.parquet", columns)
    copied(path, tmp_path / "b.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "b.parquet").drop(["answer"]).equals(pyarrow.table(columns))
    shown = copied(parquet(tmp_path / "a.parquet", columns | {"raw": [b"\xc3\xa9", None]}), tmp_path / "b.csv")[1]
    assert (shown["price"], shown["small"], shown["tags"]) == ("2.00", "", "")
    assert shown["when"].startswith("2001-09-09 01:46:40.000000001")


@pytest.mark.parametrize(
    ("value", "nested", "as_csv", "as_json"),
    [
        (date(2026, 11, 3), "list", '["2026-11-03"]', ["2026-11-03"]),
        (Decimal("1.10"), "struct", '{"a": "1.10"}', {"a": "1.10"}),
        ("\u00e9".encode(), "list", '["\u00e9"]', ["\u00e9"]),
        ("\u00e9".encode(), None, "\u00e9", "\u00e9"),
    ],
)
def test_what_only_parquet_has_a_type_for_is_text_elsewhere(
    tmp_path: Path, value: Any, nested: str | None, as_csv: str, as_json: Any
) -> None:
    held = {"list": [value], "struct": {"a": value}, None: value}[nested]
    path = parquet(tmp_path / "a.parquet", {"more": [held]})
    assert copied(path, tmp_path / "b.csv") == [{"more": as_csv}]
    assert copied(path, tmp_path / "b.jsonl") == [{"more": as_json}]


@pytest.mark.parametrize("name", ["b.csv", "b.tsv", "b.jsonl"])
@pytest.mark.parametrize("held", [b"\xff", [b"\xff"]])
def test_bytes_that_are_no_text_are_refused_with_their_place(tmp_path: Path, name: str, held: Any) -> None:
    fine = [b"a"] if isinstance(held, list) else b"a"
    path = parquet(tmp_path / "a.parquet", {"text": ["a", "b"], "raw": [fine, held]})
    with pytest.raises(InputError, match=r"a\.parquet, row 2: column 'raw' holds bytes .*; write Parquet, or leave"):
        copied(path, tmp_path / name)
    assert list(tmp_path.iterdir()) == [path]


def test_a_label_of_bytes_is_no_label(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"text": ["a"], "label": [b"x"]})
    with pytest.raises(InputError, match=r"row 1: the label in column 'label' is bytes; write it as a string\."):
        read_labelled(path)


def test_when_writing_parquet_fails_nothing_is_said_but_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    monkeypatch.setattr("textcls.data.parquet.GROUP_ROWS", 1)

    def fail_half_way() -> None:
        with writing.open_writer(tmp_path / "b.parquet", "parquet", ["text"], []) as writer:
            writer.write([Row(1, {"text": "a"})], [{}])
            raise InputError("The second row is wrong.")

    with pytest.raises(InputError, match=r"The second row is wrong\."):
        fail_half_way()
    gc.collect()
    assert unraisable == []
    assert list(tmp_path.iterdir()) == []


class Counted(io.BytesIO):
    """A file that counts what is read of it."""

    read_bytes = 0

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self.read_bytes += len(found)
        return found


def test_the_first_row_of_parquet_is_there_before_the_last_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [random.Random(i).randbytes(100).hex() for i in range(10_000)]
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), path, row_group_size=1000)
    counted = Counted(path.read_bytes())
    monkeypatch.setattr("textcls.data.parquet.seekable", lambda _: nullcontext(counted))
    with open_table(path) as table:
        assert next(table.rows).fields == {"text": texts[0]}
        assert counted.read_bytes < path.stat().st_size / 3


def test_a_long_parquet_file_is_written_in_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textcls.data.parquet.GROUP_ROWS", 100)
    path = parquet(tmp_path / "a.parquet", {"text": [f"text {i}" for i in range(1050)]})
    assert copied(path, tmp_path / "b.parquet", 50) == [{"text": f"text {i}"} for i in range(1050)]
    assert pyarrow.parquet.ParquetFile(tmp_path / "b.parquet").num_row_groups == 11


# Columns


@pytest.mark.parametrize(
    ("columns", "text", "label"),
    [
        ("text,label,message,class", ["text"], "label"),
        ("id,Text,LABEL", ["Text"], "LABEL"),
        ("sentence,sentiment", ["sentence"], "sentiment"),
        ("Class Index,Title,Description", ["Title", "Description"], "Class Index"),
        ("subject,body,queue", ["subject", "body"], "queue"),
        ("review_text,category", ["review_text"], "category"),
        ("utterance,intent", ["utterance"], "intent"),
        ("title,target", ["title"], "target"),
    ],
)
def test_columns_of_well_known_names_are_found_and_said(
    write: Write, columns: str, text: list[str], label: str
) -> None:
    names = columns.split(",")
    path = write("a.csv", columns + "\n" + ",".join(f"<{name}>" for name in names) + "\n")
    found = read_labelled(path)
    assert found.texts == ["\n".join(f"<{name}>" for name in text)]
    assert found.labels == [f"<{label}>"]
    assert (list(found.text_columns), found.label_column) == (text, label)
    assert len(found.notes) == (text != ["text"]) + (label != "label")
    assert all("are read as the text" in note or "is read as the" in note for note in found.notes)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            "review,comment,label",
            "has no column 'text'; it has 'review', 'comment', 'label'. Choose 'review' or 'comment'",
        ),
        ("a,b,label", "has no column 'text'; it has 'a', 'b', 'label'. Choose with --text-column."),
        ("text,topic,intent", "Choose 'topic' or 'intent' with --label-column."),
    ],
)
def test_where_it_is_not_clear_which_column_is_meant_the_option_is_told(write: Write, columns: str, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        read_labelled(write("a.csv", f"{columns}\n1,2,3\n"))


def test_a_mistyped_column_is_answered_with_the_one_that_may_be_meant(write: Write) -> None:
    path = write("a.csv", "message,label\na,x\n")
    with pytest.raises(InputError, match=r"no column 'mesage'; .* Did you mean 'message'\?"):
        read_labelled(path, ["mesage"])
    with pytest.raises(InputError, match=r"Did you mean 'label'\?"):
        read_labelled(path, [], "lable")


def test_a_column_that_was_asked_for_is_never_guessed(write: Write) -> None:
    with pytest.raises(InputError, match="no column 'text'"):
        read_labelled(write("a.csv", "message,label\na,x\n"), ["text"])


def test_further_columns_come_along_as_they_are(write: Write) -> None:
    path = write("a.jsonl", '{"text": "a", "label": "x", "why": [[0, 1]]}\n{"text": "b", "label": "y", "why": []}\n')
    assert read_labelled(path, more=["why"]).more == {"why": [[[0, 1]], []]}
    with pytest.raises(InputError, match="has no column 'because'; it has 'text', 'label', 'why'"):
        read_labelled(path, more=["because"])


# Several files


def test_files_of_several_formats_are_read_one_behind_the_other(write: Write) -> None:
    found = read_labelled(
        [write("a.csv", CSV), write("b.jsonl.gz", gzip.compress(JSONL.encode())), write("c.txt", LINES)]
    )
    assert found.texts == ["a", "b, c"] * 3
    assert [found.places[i].rpartition("/")[2] for i in (1, 3, 4)] == [
        "a.csv, line 3",
        "b.jsonl.gz, line 3",
        "c.txt, line 1",
    ]


def test_every_file_must_have_the_columns_of_the_first(write: Write) -> None:
    first, second = write("a.csv", "message,label\na,x\n"), write("b.csv", CSV)
    with pytest.raises(InputError, match=r"b\.csv has no column 'message'"):
        read_labelled([first, second])
    with (
        open_tables([first, second]) as table,
        pytest.raises(InputError, match=r"has no column 'message', which .*a\.csv has"),
    ):
        table.require_same_columns()


# Rows that cannot be used


def test_bad_rows_are_skipped_counted_and_told_if_that_is_asked_for(write: Write) -> None:
    rows = "a,x\nb\nc,\nd\xe9,y\n".encode("latin-1") + b'"e"e,z\n' + b"f,y,\n" * 3 + b"g,x\n"
    bad = BadRows(skip=True)
    found = read_labelled(write("a.csv", b"text,label\n" + rows), bad=bad)
    assert (found.texts, found.labels) == (["a", "g"], ["x", "x"])
    assert bad.count == 7
    summary = bad.summary()
    assert summary is not None
    assert summary.startswith("Skipped 7 rows that cannot be used: ")
    assert "line 3: 1 fields where the header has 2; " in summary
    assert "line 4: the label in column 'label' is empty; " in summary
    assert summary.endswith("; and 2 more.")


def test_nothing_is_said_of_skipped_rows_if_there_are_none(write: Write) -> None:
    bad = BadRows(skip=True)
    read_labelled(write("a.csv", CSV), bad=bad)
    assert bad.summary() is None


def test_a_file_of_which_no_row_can_be_used_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match=r"a\.csv has no rows that can be used\."):
        read_labelled(write("a.csv", "text,label\na,\n"), bad=BadRows(skip=True))


@pytest.mark.parametrize("keep", [30, 200])
def test_a_gzip_file_that_is_cut_off_is_told(write: Write, keep: int) -> None:
    packed = gzip.compress("".join(f"{i * 7919}\n" for i in range(20_000)).encode())
    assert "is cut off: the gzip file ends too early" in refusal(write("a.csv.gz", packed[: len(packed) * keep // 300]))


def test_a_gzip_file_that_is_damaged_is_told(write: Write) -> None:
    packed = bytearray(gzip.compress(CSV.encode() * 100))
    packed[20:40] = bytes(20)
    assert "is damaged: its gzip data cannot be unpacked" in refusal(write("a.csv.gz", bytes(packed)))


# What is written is read back


def copied(source: Path, target: Path, chunk: int = 1000) -> list[dict[str, Any]]:
    """Write the rows of `source` to `target`, each with an answer, and read them back without it."""
    with open_table(source) as table:
        kind = writing.format_of(target, None, table.format)
        with writing.open_writer(target, kind, table.columns, ["answer"], table.schema) as writer:
            rows = list(table.rows)
            for i in range(0, len(rows), chunk):
                part = rows[i : i + chunk]
                writer.write(part, [{"answer": "yes"}] * len(part))
    back = rows_of(target)
    assert all(row.pop("answer") == "yes" for row in back)
    return back


TEXTS = st.text(st.characters(codec="utf-8"))
ROWS = st.lists(st.tuples(TEXTS, TEXTS), max_size=8).map(lambda rows: [{"text": a, "note": b} for a, b in rows])


@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.csv.gz", "a.tsv.gz", "a.jsonl.gz", "a.parquet.gz"]
)
def test_rows_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, name: str, rows: list[dict[str, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    kind = writing.format_of(path, None, "csv")
    with writing.open_writer(path, kind, ["text", "note"], []) as writer:
        writer.write([Row(i, row) for i, row in enumerate(rows)], [{} for _ in rows])
    if not rows and kind == "jsonl":
        assert "is empty" in refusal(path)
    else:
        assert rows_of(path) == rows


# A word that begins with `__label__` is a label wherever it stands, so texts have none.
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1).filter(
    lambda word: not word.startswith("__label__")
)


@given(rows=st.lists(st.tuples(WORDS, st.lists(WORDS).map(" ".join)), min_size=1))
def test_lines_of_fasttext_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    path.write_bytes("".join(f"__label__{label} {text}\n" for label, text in rows).encode())
    assert [(row["label"], row["text"]) for row in rows_of(path)] == rows


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(deadline=None)
@given(rows=st.lists(st.dictionaries(st.text(), JSON), min_size=1))
def test_any_json_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    with writing.open_writer(path, "jsonl", [], []) as writer:
        writer.write([Row(i, row) for i, row in enumerate(rows)], [{} for _ in rows])
    assert rows_of(path) == rows


@pytest.mark.parametrize("name", ["b.csv", "b.tsv", "b.parquet"])
def test_a_field_that_the_first_line_of_json_has_not_is_never_lost(write: Write, tmp_path: Path, name: str) -> None:
    path = write("a.jsonl", '{"text": "a"}\n{"text": "b", "late": 1}\n')
    with pytest.raises(InputError, match=r"line 2: the first row has no field 'late'; write JSONL"):
        copied(path, tmp_path / name)
    assert copied(path, tmp_path / "b.jsonl") == [{"text": "a"}, {"text": "b", "late": 1}]


def test_a_field_called_as_the_answer_is_never_overwritten(write: Write, tmp_path: Path) -> None:
    path = write("a.jsonl", '{"text": "a"}\n{"text": "b", "answer": "mine"}\n')
    with pytest.raises(InputError, match=r"line 2: there is a field 'answer' already; rename it"):
        copied(path, tmp_path / "b.jsonl")


def test_utf_16_that_is_cut_off_is_told(write: Write) -> None:
    assert "is not utf-16" in refusal(write("a.csv", CSV.encode("utf-16")[:-1]))


def test_values_that_fit_no_one_type_of_parquet_are_told(write: Write, tmp_path: Path) -> None:
    path = write("a.jsonl", '{"text": "a", "n": 1}\n{"text": "b", "n": "two"}\n')
    with pytest.raises(InputError, match=r"the values of column 'n' do not fit one type of Parquet; write JSONL"):
        copied(path, tmp_path / "b.parquet")
    assert copied(path, tmp_path / "b.csv") == [{"text": "a", "n": "1"}, {"text": "b", "n": "two"}]


def test_the_same_rows_give_the_same_bytes_in_gzip(write: Write, tmp_path: Path) -> None:
    path = write("a.csv", CSV)
    for name in ("b.csv.gz", "c.csv.gz"):
        copied(path, tmp_path / name)
    assert (tmp_path / "b.csv.gz").read_bytes() == (tmp_path / "c.csv.gz").read_bytes()
    with gzip.open(tmp_path / "b.csv.gz", "rt", encoding="utf-8", newline="") as file:
        assert len(list(csv.reader(file))) == 3


@pytest.mark.parametrize("name", ["answers", "answers.txt", "answers.json", "answers.gz"])
def test_a_name_that_says_no_format_to_write_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"says no format that can be written; end it in \.csv"):
        writing.format_of(Path(name), None, "csv")
