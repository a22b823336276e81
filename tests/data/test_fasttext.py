"""fastText's lines, and files of one text a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.tables import Write, refusal, rows_of
from textcls import InputError
from textcls.data import read_labelled
from textcls.data.source import PEEK


def test_labels_of_fasttext_stand_anywhere_and_keep_all_their_signs(write: Write) -> None:
    path = write("a.txt", "__label__food-safety, is it?\nhow long\t__label__b/c__d \r\n\n__label__e\n")
    assert rows_of(path) == [
        {"label": "food-safety,", "text": "is it?"},
        {"label": "b/c__d", "text": "how long"},
        {"label": "e", "text": ""},
    ]


def test_several_labels_in_a_line_are_refused_with_its_number_where_one_is_needed(write: Write) -> None:
    path = write("a.txt", "__label__a b\n__label__a __label__b c\n")
    with pytest.raises(InputError, match="line 2: 2 labels, 'a' and 'b'; each row needs exactly one, so keep one"):
        read_labelled(path)


def test_several_labels_in_a_line_are_a_list(write: Write) -> None:
    path = write("a.txt", "c\n__label__a b\n__label__a d __label__b\n")
    assert rows_of(path) == [
        {"label": "", "text": "c"},
        {"label": "a", "text": "b"},
        {"label": ["a", "b"], "text": "d"},
    ]


def test_a_line_without_a_label_among_labelled_ones_has_an_empty_label(write: Write) -> None:
    path = write("a.txt", "__label__a b\nc\n")
    with pytest.raises(InputError, match=r"line 2: the label in column 'label' is empty"):
        read_labelled(path)


def test_a_text_file_without_labels_holds_one_text_a_line(write: Write) -> None:
    assert rows_of(write("a.txt", "my card, it\nwas; charged\n")) == [{"text": "my card, it"}, {"text": "was; charged"}]
    assert rows_of(write("one.txt", "hello, you\nthere\n")) == [{"text": "hello, you"}, {"text": "there"}]
    assert "may hold columns or one text per line; add --format csv" in refusal(write("two.txt", "hello, you\na, b\n"))
    assert rows_of(write("two.txt", "a, b\nc, d\n"), format="fasttext") == [{"text": "a, b"}, {"text": "c, d"}]
    assert rows_of(write("a.txt", "a\nb __label__x\n")) == [{"label": "", "text": "a"}, {"label": "x", "text": "b"}]


def test_a_label_behind_many_lines_without_one_is_refused(write: Write) -> None:
    path = write("a.txt", "some words\n" * (PEEK // 11) + "other words\nb __label__x\n")
    assert "the label 'x', where the first lines have none; label all lines, or none" in refusal(path)


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
