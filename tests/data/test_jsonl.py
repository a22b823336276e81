"""JSON lines: values keep their types, and a line that is not a row is told with its number."""

import json
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.tables import Write, copied, refusal, rows_of
from textcls import InputError
from textcls.data import Row, open_table, read_labelled, texts_of, writing


def test_values_of_json_keep_their_types(write: Write) -> None:
    content = '{"text": "a", "n": 1, "x": 1.5, "b": true, "none": null, "l": ["p", {"q": 2}]}\n'
    assert rows_of(write("a.jsonl", content)) == [json.loads(content)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"text": "b"', "not valid JSON, Expecting ',' delimiter at column 13; write one object per line"),
        ("[1]", 'write one JSON object per line, such as {"text": "..."}, not a list'),
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
        ('{"text": 5, "label": "x"}', "the text in column 'text' is of type int; write a string"),
        ('{"text": "b"}', "the label in column 'label' is empty"),
        ('{"text": "b", "label": ["x", "y"]}', "2 labels, 'x' and 'y'; each row needs exactly one, so keep one"),
    ],
)
def test_a_text_or_label_of_json_that_is_none_is_told_with_its_line(write: Write, row: str, words: str) -> None:
    path = write("a.jsonl", f'{{"text": "a", "label": "y"}}\n{row}\n')
    with pytest.raises(InputError, match="line 2: ") as caught:
        read_labelled(path)
    assert words in str(caught.value)


def test_a_text_that_is_null_is_empty_as_a_cell_of_csv_is(write: Write) -> None:
    path = write("a.jsonl", '{"text": "a", "label": "y"}\n{"text": null, "label": "x"}\n')
    assert read_labelled(path).texts == ["a", ""]
    with open_table(path) as table:
        assert [one.text for one in texts_of(table, ["text"])] == ["a", ""]
    assert (table.bad.empty, table.bad.count) == (1, 0)


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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(rows=st.lists(st.dictionaries(st.text(), JSON), min_size=1))
def test_any_json_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    with writing.open_writer(path, "jsonl", [], []) as writer:
        writer.write([Row(i, row) for i, row in enumerate(rows)], [{} for _ in rows])
    assert rows_of(path) == rows


def test_numbers_that_json_has_not_are_written_as_null(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    fields = {"a": nan, "b": [1, inf, {"c": -inf}], "d": {"e": nan, "f": 2.5}, "g": (nan,)}
    with writing.open_writer(path, "jsonl", [*fields], []) as writer:
        writer.write([Row(1, fields), Row(2, {"a": "\ud800", "b": nan})], [{}, {}])
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {"a": None, "b": [1, None, {"c": None}], "d": {"e": None, "f": 2.5}, "g": [None]}
    assert second == {"a": "\ud800", "b": None}
    assert "NaN" not in path.read_text()


def test_a_label_that_is_no_number_is_none(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a", "label": "x"}\n{"text": "b", "label": NaN}\n')
    with pytest.raises(InputError, match="line 2: the label in column 'label' is empty"):
        read_labelled(path)
