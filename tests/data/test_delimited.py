"""Tables with a sign between their fields: which sign, whether there is a header, and what quotes mean."""

from pathlib import Path

import pytest

from tests.command_line import succeed
from tests.data.tables import CSV, TWO, Write, notes_of, refusal, rows_of
from textcls import ConfigError, InputError
from textcls.data import BadRows, read_labelled


@pytest.mark.parametrize(("sign", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_another_delimiter_is_found_out_and_said(write: Write, sign: str, name: str) -> None:
    path = write("a.csv", f'id{sign}text\n1{sign}"one, two; {sign} three"\n2{sign}a, b, c\n')
    assert [row["text"] for row in rows_of(path)] == [f"one, two; {sign} three", "a, b, c"]
    assert notes_of(path) == [f"{path} is read with {name} as delimiters."]


def test_commas_are_the_default_and_nothing_is_said_of_them(write: Write) -> None:
    path = write("a.csv", "text,label\na;b;c,x\nd;e;f,y\n")
    assert [row["text"] for row in rows_of(path)] == ["a;b;c", "d;e;f"]
    assert notes_of(path) == []
    assert rows_of(write("one.csv", "text\na; b\nc\n")) == [{"text": "a; b"}, {"text": "c"}]


def test_a_header_with_semicolons_alone_decides_if_no_delimiter_fits_all_rows(write: Write) -> None:
    assert "line 3: 3 fields where the header has 2" in refusal(write("a.csv", "text;label\na;x\nb;c;y\n"))


def test_a_quote_behind_a_space_opens_a_field(write: Write) -> None:
    path = write("a.csv", 'label, text\nx, "one, two"\ny, "three"\n')
    assert rows_of(path) == [{"label": "x", "text": "one, two"}, {"label": "y", "text": "three"}]
    # A text that ends with a comma and a space, or quotes somebody, keeps its signs.
    path = write("b.csv", 'text,label\n"he said, ",x\n"he said, ""no, "" and went",y\n')
    assert [row["text"] for row in rows_of(path)] == ["he said, ", 'he said, "no, " and went']
    # A text that begins with a word in quotes is not a field in quotes, and then nor is any other.
    path = write("c.csv", 'label,text\nx, "Great" movie\ny, "a"\nz,  b\n')
    assert [row["text"] for row in rows_of(path)] == [' "Great" movie', ' "a"', "  b"]
    assert rows_of(write("d.csv", 'label, text\nx, "a"\n'), quotes=False)[0]["text"] == ' "a"'
    assert rows_of(write("e.csv", 'text  label\na  "b"\n'), delimiter=" ")[0]["text"] == "a"


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


def test_the_delimiter_asked_for_is_used(write: Write) -> None:
    assert rows_of(write("a.csv", "text~label\na~x\n"), delimiter="~") == TWO[:1]
    assert "A delimiter is one character" in refusal(write("a.csv", CSV), ConfigError, delimiter="||")


def test_quotes_can_be_ordinary_characters(write: Write) -> None:
    path = write("a.tsv", 'text\tlabel\n"a\tx\n"b" c\ty\n')
    assert [row["text"] for row in rows_of(path, quotes=False)] == ['"a', '"b" c']
    assert "--no-quotes" in refusal(path)


def test_a_quote_that_is_never_closed_is_told_by_the_row_in_which_it_opens_and_never_skipped(write: Write) -> None:
    path = write("a.csv", 'text,label\n"a\nb",x\n"c,y\n' + "d,z\n" * 5000)
    with pytest.raises(InputError, match=r"line 4: a quote in this row is never closed"):
        read_labelled(path, bad=BadRows(skip=True))


def test_a_table_without_names_is_read_again_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text("a b\tx\nc d\ty\n")
    how = ("--no-header", "--text-column", "1", "--label-column", "2")
    succeed("check", tmp_path / "rows.tsv", *how, "--write", tmp_path / "again.tsv")
    assert (tmp_path / "again.tsv").read_text().splitlines() == ["1\t2", "a b\tx", "c d\ty"]
    assert "2 rows, 2 labels" in succeed("check", tmp_path / "again.tsv", *how)
