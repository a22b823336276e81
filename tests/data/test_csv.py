"""Labelled rows in CSV: what is taken, and what is said of a file that cannot be."""

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.tables import Write
from textcls import InputError
from textcls.data import Row, join_columns, open_table, read_labelled


def rows_of(path: Path) -> list[Row]:
    with open_table(path) as table:
        return list(table.rows)


def labelled(path: Path) -> tuple[list[str], list[str]]:
    """The texts and the labels of `path`."""
    found = read_labelled(path, ["text"], "label")
    return list(found.texts), found.labels


def refusal(path: Path) -> str:
    """The one sentence with which reading `path` as labelled texts is refused; it names the file."""
    with pytest.raises(InputError, match=re.escape(str(path))) as caught:
        read_labelled(path, ["text"], "label")
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


# What is read


def test_texts_and_labels_come_in_the_order_of_the_file(write: Write) -> None:
    assert labelled(write("data.csv", "text,label\nb,x\na,y\nc,x\n")) == (["b", "a", "c"], ["x", "y", "x"])


def test_a_byte_order_mark_is_no_part_of_the_first_column(write: Write) -> None:
    path = write("data.csv", b"\xef\xbb\xbftext,label\na,x\n")
    assert labelled(path) == (["a"], ["x"])


def test_quoted_fields_hold_commas_quotes_and_line_breaks(write: Write) -> None:
    path = write("data.csv", 'text,label\n"one, ""two""\nthree\r\nfour",x\n')
    assert read_labelled(path, ["text"], "label").texts == ['one, "two"\nthree\r\nfour']


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_lines_may_end_in_any_way(write: Write, end: str) -> None:
    assert labelled(write("data.csv", f"text,label{end}a,x{end}b,y")) == (["a", "b"], ["x", "y"])


def test_blank_lines_are_no_rows(write: Write) -> None:
    assert labelled(write("data.csv", "text,label\na,x\n\nb,y\n\n")) == (["a", "b"], ["x", "y"])


def test_rows_know_the_line_on_which_they_begin(write: Write) -> None:
    assert [row.line for row in rows_of(write("data.csv", 'text,label\na,x\n"two\nlines",y\nb,z\n'))] == [2, 3, 5]


def test_columns_may_stand_in_any_order_and_with_spaces_around_their_names(write: Write) -> None:
    assert labelled(write("data.csv", "id, label ,text\n1,x,a\n")) == (["a"], ["x"])


def test_several_text_columns_are_joined_one_a_line_in_the_order_asked_for(write: Write) -> None:
    path = write("data.csv", "title,body,label\nHello,my card,x\n,lost,y\n")
    assert read_labelled(path, ["title", "body"], "label").texts == ["Hello\nmy card", "\nlost"]
    assert read_labelled(path, ["body", "title"], "label").texts == ["my card\nHello", "lost\n"]
    assert join_columns(Row(2, {"title": "Hello", "body": "my card"}), ["body"]) == "my card"


def test_labels_lose_the_space_around_them_and_texts_keep_it(write: Write) -> None:
    assert labelled(write("data.csv", "text,label\n a ,  x \n")) == ([" a "], ["x"])


def test_an_empty_text_is_a_text(write: Write) -> None:
    assert read_labelled(write("data.csv", 'text,label\n,x\n"",y\n'), ["text"], "label").texts == ["", ""]


def test_a_field_of_a_megabyte_is_read(write: Write) -> None:
    text = "word, " * 200_000
    assert read_labelled(write("data.csv", f'text,label\n"{text}",x\n'), ["text"], "label").texts == [text]


@given(fields=st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))))
def test_what_the_csv_module_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, fields: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "round_trip.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("a", "b"), *fields])
    # A row of nothing is a blank line.
    written = [pair for pair in fields if any(pair)]
    assert [(row.fields["a"], row.fields["b"]) for row in rows_of(path)] == written


# What is refused


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.csv") == f"There is no file {tmp_path / 'no.csv'}."
    (tmp_path / "tickets.csv").touch()
    meant = f"; perhaps {tmp_path / 'tickets.csv'} is meant."
    assert refusal(tmp_path / "tikets.csv").endswith(meant)
    assert refusal(tmp_path / "tickets").endswith(meant)


def test_an_empty_folder_is_no_table(tmp_path: Path) -> None:
    assert "contains no file in a known format" in refusal(tmp_path)


def test_a_path_through_a_file_cannot_be_read_and_the_reason_is_given(write: Write) -> None:
    assert "cannot be read: Not a directory" in refusal(write("data.csv", "text,label\na,x\n") / "inner.csv")


def test_a_file_without_permission_cannot_be_read_and_the_reason_is_given(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Path, *args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    path = write("data.csv", "text,label\na,x\n")
    monkeypatch.setattr(Path, "open", denied)
    assert "cannot be read: Permission denied" in refusal(path)


def test_a_file_name_that_no_system_allows_cannot_be_read(tmp_path: Path) -> None:
    assert "cannot be read: File name too long" in refusal(tmp_path / ("a" * 300))


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"], ids=["nothing", "mark-alone"])
def test_an_empty_file_is_refused(write: Write, content: bytes) -> None:
    assert "is empty" in refusal(write("data.csv", content))


def test_a_header_without_rows_is_refused(write: Write) -> None:
    assert "has no rows" in refusal(write("data.csv", "text,label\n"))


def test_a_missing_text_column_is_named_with_the_columns_there_are(write: Write) -> None:
    message = refusal(write("data.csv", "message,label\na,x\n"))
    assert "no column 'text'; it has 'message', 'label'" in message
    assert "--text-column" in message


def test_a_missing_label_column_is_named_with_the_columns_there_are(write: Write) -> None:
    message = refusal(write("data.csv", "text,queue\na,x\n"))
    assert "no column 'label'; it has 'text', 'queue'" in message
    assert "--label-column" in message


def test_columns_of_one_name_are_told_apart_and_none_is_taken_for_the_text(write: Write) -> None:
    with pytest.raises(InputError, match="has no column 'text'; it has 'text 1', 'label', 'text 2'"):
        read_labelled(write("data.csv", "text,label,text \na,x,b\n"))
    with open_table(write("jira.csv", "text,tag,tag,label\na,x,y,b\n")) as table:
        assert table.notes[0].endswith("jira.csv: 2 columns are called 'tag'; here they are 'tag 1' and so on.")


@pytest.mark.parametrize(("row", "fields"), [("b,y,extra", "3 fields"), ("b", "1 field")])
def test_a_row_that_does_not_fit_the_header_is_named_by_line(write: Write, row: str, fields: int) -> None:
    message = refusal(write("data.csv", f'text,label\n"a\na",x\n{row}\nc,z\n'))
    assert f"line 4: {fields} where the header has 2" in message


def test_an_empty_label_is_named_by_line_and_column(write: Write) -> None:
    assert "line 3: the label in column 'label' is empty" in refusal(write("data.csv", "text,label\na,x\nb, \nc,z\n"))


@pytest.mark.parametrize(
    "content", ['text,label\na,x\n"b,y\nc,z\n', 'text,label\na,x\n"b"b,y\n'], ids=["open", "inner"]
)
def test_quotes_that_do_not_pair_are_refused(write: Write, content: str) -> None:
    message = refusal(write("data.csv", content))
    assert "check the quotes" in message
    assert "line " in message


def test_a_byte_that_is_not_utf_8_is_named(write: Write) -> None:
    message = refusal(write("data.csv", "text,label\na,x\ncaf\u00e9,y\n".encode("latin-1")))
    assert "byte 0xe9 is not UTF-8; add --encoding cp1252 if 'caf\u00e9' is meant" in message


def test_the_line_of_a_byte_that_is_not_utf_8_is_told(write: Write) -> None:
    rows = "a,x\n" * 5000
    assert "line 5002:" in refusal(write("data.csv", f"text,label\n{rows}caf\u00e9,y\n{rows}".encode("latin-1")))


def test_utf_16_is_read_by_its_mark_and_said(write: Write) -> None:
    path = write("data.csv", "text,label\ncaf\u00e9,x\n".encode("utf-16"))
    assert labelled(path) == (["caf\u00e9"], ["x"])
    assert read_labelled(path).notes == [f"{path} is read as UTF-16, according to its byte order mark."]
