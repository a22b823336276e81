"""Which columns are text and label."""

import gzip
import re

import pytest

from tests.data.tables import CSV, JSONL, LINES, Write, rows_of
from textcls import InputError
from textcls.data import open_tables, read_labelled
from textcls.data.columns import choose


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
    with pytest.raises(InputError, match=r"Did you mean 'Labels', which has the labels of all 2\?"):
        read_labelled(write("b.csv", "text,Labels,Labels\na,x,y\n"), [], "Label")


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


def test_two_columns_of_a_training_are_not_replaced_by_one(write: Write) -> None:
    path = write("a.csv", "body\nhello\n")
    with open_tables([path]) as table, pytest.raises(InputError, match="has no column 'subject'; it has 'body'"):
        table.choose(["subject", "body"], "text", guess=True)
    with open_tables([path]) as table:
        assert table.choose(["body"], "text") == ("body",)


def test_a_sheet_without_the_column_points_to_other_sheets_and_to_rows_above_the_names() -> None:
    with pytest.raises(
        InputError, match=r"on another sheet, add --sheet; if rows stand above the names .* remove them"
    ):
        choose("Export.XLSX", ["Exported by CRM"], ["text"], "text", guess=True)


def test_who_waits_for_each_row_reads_no_further_to_find_a_title(write: Write) -> None:
    path = write("export.csv", "Export,\ntext,label\nmy card,billing\n")
    assert rows_of(path) == [{"text": "my card", "label": "billing"}]
    assert rows_of(path, stream=True)[0] == {"Export": "text", "": "label"}


def test_a_title_above_the_names_of_the_columns_is_thought_of(write: Write) -> None:
    path = write("export.csv", "Ticket export 2026,of May\n,\ntext,label\nmy card,billing\n")
    with pytest.raises(InputError, match="if it is a title, remove it"):
        read_labelled(path)
