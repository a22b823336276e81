"""Several labels a row, probabilities and weights: every form in which they are read, and what is refused."""

import csv
import io
import json
import string
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.tables import Write, parquet
from textcls import ConfigError, InputError
from textcls.data import (
    BadRows,
    Labelled,
    LabelledSets,
    LabelSet,
    TargetOptions,
    labelled,
    open_targets,
    read_label_sets,
    read_labelled,
    targets,
)
from textcls.data import rows as rows_of_files
from textcls.data.label_names import LabelNames
from textcls.data.labelled import Usual
from textcls.data.memory import MemoryTable
from textcls.model import label_sets

BOTH = {"billing": 1.0, "refund": 1.0}


def sets(path: Path, *, label_columns: Sequence[str] = (), **options: str | bool) -> list[LabelSet]:
    """The label sets in the file at `path`, which is found to hold such."""
    chosen = TargetOptions(label_columns=tuple(label_columns), **options)  # type: ignore[arg-type]
    found = read_labelled(path, targets=chosen)
    assert isinstance(found, LabelledSets)
    return found.labels


def refusal(path: Path, *, label_columns: Sequence[str] = (), **options: str | bool) -> str:
    with pytest.raises(InputError, match=r"\A[^\n]+[.?]\Z") as caught:
        sets(path, label_columns=label_columns, **options)
    return str(caught.value)


# The forms


def test_a_separator_splits_a_cell_and_what_is_empty_or_said_twice_is_no_label(write: Write) -> None:
    path = write("a.csv", "text,label\na,billing;refund\nb,\nc, refund ;; billing;refund\nd,;\n")
    assert sets(path, label_separator=";") == [BOTH, {}, BOTH, {}]


def test_a_separator_may_have_several_signs(write: Write) -> None:
    assert sets(write("a.csv", "text,label\na,x y || z\n"), label_separator="||") == [{"x y": 1, "z": 1}]
    assert sets(write("a.csv", "text,label\na,x  y\n"), label_separator=" ") == [{"x": 1, "y": 1}]


def test_lists_of_json_lines_need_no_option(write: Write) -> None:
    rows = '{"text": "a", "label": ["billing", " refund "]}\n{"text": "b", "label": []}\n{"text": "c", "label": null}\n'
    assert sets(write("a.jsonl", rows + '{"text": "d"}\n')) == [BOTH, {}, {}, {}]


def test_the_first_rows_may_have_no_value_where_later_ones_have_a_list(write: Write) -> None:
    rows = '{"text": "a", "label": null}\n' * 20 + '{"text": "b", "label": ["x"]}\n'
    assert sets(write("a.jsonl", rows)) == [*([{}] * 20), {"x": 1}]


def test_a_map_of_json_holds_probabilities(write: Write) -> None:
    assert sets(write("a.jsonl", '{"text": "a", "label": {"x": 0.25, "y": true, "z": 0}}\n')) == [{"x": 0.25, "y": 1}]


def test_parquet_has_lists_maps_and_records(tmp_path: Path) -> None:
    texts = ["a", "b", "c"]
    path = parquet(tmp_path / "lists.parquet", {"text": texts, "label": [["billing", "refund"], [], None]})
    assert sets(path) == [BOTH, {}, {}]
    pairs = pyarrow.array([[("x", 0.5)], [], None], pyarrow.map_(pyarrow.string(), pyarrow.float64()))
    assert sets(parquet(tmp_path / "maps.parquet", {"text": texts, "label": pairs})) == [{"x": 0.5}, {}, {}]
    records = [{"x": 0.5, "y": None}, {"x": 0.0, "y": 1.0}, None]
    assert sets(parquet(tmp_path / "r.parquet", {"text": texts, "label": records})) == [{"x": 0.5}, {"y": 1}, {}]


def test_cells_of_csv_may_hold_lists_and_maps_of_json(write: Write) -> None:
    path = write("a.csv", 'text,label\na,"[""billing"", ""refund""]"\nb,\nc,[]\nd,"{""x"": 0.5}"\n')
    assert sets(path, label_separator="json") == [BOTH, {}, {}, {"x": 0.5}]


def test_lines_of_fasttext_may_have_several_labels_or_none(write: Write) -> None:
    path = write("a.txt", "nothing\n__label__billing __label__refund my card\n__label__refund again\n")
    assert sets(path) == [{}, BOTH, {"refund": 1}]


def test_a_column_a_label_holds_truth_values_or_probabilities(write: Write) -> None:
    path = write("a.csv", "text,tag_x,tag_y,other\na,1,0,9\nb,yes,0.25,9\nc,,TRUE,9\nd,no,False,9\ne,1.0,,9\n")
    found = read_label_sets(path, targets=TargetOptions(label_columns=("tag_*",)))
    assert found.labels == [{"x": 1}, {"x": 1, "y": 0.25}, {"y": 1}, {}, {"x": 1}]
    assert (found.label_columns, found.label_column, found.names()) == (("x", "y"), "tag_*", ["x", "y"])


def test_a_column_of_a_label_is_known_whether_a_row_has_it_or_not(write: Write) -> None:
    path = write("a.csv", "text,t_x,t_y,t_\na,1,0,9\nb,0,,9\n")
    found = read_label_sets(path, targets=TargetOptions(label_columns=("t_*",)))
    assert (found.names(), found.label_columns) == (["x", "y"], ("x", "y"))


def test_columns_of_labels_keep_the_types_of_parquet_and_json(write: Write, tmp_path: Path) -> None:
    columns = {"text": ["a", "b"], "x_tag": [1.0, None], "y_tag": [True, False], "z_tag": [0, 1]}
    assert sets(parquet(tmp_path / "a.parquet", columns), label_columns=["*_tag"]) == [{"x": 1, "y": 1}, {"z": 1}]
    shares = pyarrow.array([Decimal("0.25"), None], pyarrow.decimal128(3, 2))
    assert sets(parquet(tmp_path / "a.parquet", {"text": ["a", "b"], "x": shares}), label_columns=["x"]) == [
        {"x": 0.25},
        {},
    ]
    rows = '{"text": "a", "x": 0.5, "y": false}\n{"text": "b", "y": true}\n'
    assert sets(write("a.jsonl", rows), label_columns=["x", "y"]) == [{"x": 0.5}, {"y": 1}]


def test_one_label_a_row_stays_one_label(write: Write) -> None:
    for path in (
        write("a.csv", "text,label\na,x;y\nb,z\n"),
        write("a.jsonl", '{"text": "a", "label": "x;y"}\n{"text": "b", "label": "z"}\n'),
    ):
        found = read_labelled(path, targets=TargetOptions())
        assert isinstance(found, Labelled)
        assert found.labels == ["x;y", "z"]


def test_one_label_a_row_can_be_read_as_sets_of_one_or_none(write: Write) -> None:
    assert sets(write("a.csv", "text,label\na,x;y\nb,\nc,5\n"), several=True) == [{"x;y": 1}, {}, {"5": 1}]
    assert sets(write("a.txt", "__label__x a\n__label__y b\n"), several=True) == [{"x": 1}, {"y": 1}]


def test_where_one_label_is_asked_for_lists_are_refused(write: Write) -> None:
    path = write("a.jsonl", '{"text": "a", "label": ["x", "y"]}\n')
    for chosen in (None, TargetOptions(several=False)):
        with pytest.raises(InputError, match="line 1: 2 labels, 'x' and 'y'; each row needs exactly one, so keep one"):
            read_labelled(path, targets=chosen) if chosen else read_labelled(path)


def test_several_files_of_several_formats_are_read_together(write: Write) -> None:
    paths = [write("a.csv", "text,label\na,x;y\n"), write("b.jsonl", '{"text": "b", "label": "y"}\n')]
    found = read_label_sets(paths, targets=TargetOptions(label_separator=";"))
    assert found.labels == [{"x": 1, "y": 1}, {"y": 1}]


def test_rows_are_chosen_with_their_sets_and_weights(write: Write) -> None:
    path = write("a.csv", "text,label,w\na,x,1\nb,y,2\nc,,3\n")
    found = read_label_sets(path, targets=TargetOptions(label_separator=";", weight_column="w")).only([0, 2])
    assert isinstance(found, LabelledSets)
    assert (found.texts, found.labels, found.weights) == (["a", "c"], [{"x": 1}, {}], [1, 3])


def test_rows_are_streamed_with_their_targets_and_weights(write: Write) -> None:
    path = write("a.csv", "text,label,w\na,x,0.5\nb,y,2\n")
    with open_targets([path], targets=TargetOptions(weight_column="w")) as table:
        assert [(row.text, row.label, row.weight) for row in table.rows] == [("a", "x", 0.5), ("b", "y", 2)]


NAMES = st.text(string.ascii_letters + "äß漢 -/,|", min_size=1).map(str.strip).filter(bool)
SETS = st.lists(st.lists(NAMES, unique=True), min_size=1)


@given(rows=SETS)
def test_what_is_written_in_one_form_is_read_as_in_any_other(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    wanted = [dict.fromkeys(names, 1.0) for names in rows]

    def table(cells: list[str]) -> Path:
        text = io.StringIO()
        csv.writer(text).writerows([("text", "label"), *(("a", cell) for cell in cells)])
        (folder / "rows.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
        return folder / "rows.csv"

    assert sets(table([";".join(names) for names in rows]), label_separator=";") == wanted
    assert sets(table([json.dumps(names) for names in rows]), label_separator="json") == wanted
    lines = "".join(json.dumps({"text": "a", "label": names}) + "\n" for names in rows)
    (folder / "rows.jsonl").write_text(lines, encoding="utf-8")
    assert sets(folder / "rows.jsonl") == wanted
    assert sets(parquet(folder / "rows.parquet", {"text": ["a"] * len(rows), "label": rows}), several=True) == wanted


# What is usual


def usually(path: Path, *, asked: TargetOptions, **usual: object) -> list[LabelSet]:
    trained = TargetOptions.from_json(json.loads(json.dumps(TargetOptions(**usual).to_json())))  # type: ignore[arg-type]
    return read_label_sets(path, targets=asked, usual_targets=trained).labels


def test_labels_are_read_as_they_usually_are_unless_something_is_asked_for(write: Write) -> None:
    path = write("a.csv", "text,label,t_x,t_y\na,x|y;z,1,0\n")
    nothing = TargetOptions()
    assert usually(path, asked=nothing, label_separator=";") == [{"x|y": 1, "z": 1}]
    assert usually(path, asked=nothing, label_columns=("t_*",)) == [{"x": 1}]
    assert usually(path, asked=TargetOptions(label_separator="|"), label_separator=";") == [{"x": 1, "y;z": 1}]
    assert usually(path, asked=TargetOptions(label_separator="|"), label_columns=("t_*",)) == [{"x": 1, "y;z": 1}]
    assert usually(path, asked=TargetOptions(label_columns=("t_*",)), label_separator=";") == [{"x": 1}]


def test_a_file_in_another_form_than_the_usual_is_read_all_the_same(write: Write) -> None:
    lists = write("a.jsonl", '{"text": "a", "label": ["x;y", "z"]}\n')
    lines = write("a.txt", "__label__x;y __label__z a\n")
    for usual in ({"label_separator": ";"}, {"label_columns": ("t_*",)}):
        for path in (lists, lines):
            assert usually(path, asked=TargetOptions(), **usual) == [{"x;y": 1, "z": 1}]


def test_a_column_that_is_asked_for_is_read_whatever_columns_are_usual(write: Write) -> None:
    path = write("a.jsonl", '{"text": "a", "tags": ["y"], "t_x": 1}\n')
    usual = TargetOptions(label_columns=("t_*",))
    assert read_label_sets(path, [], "tags", targets=TargetOptions(), usual_targets=usual).labels == [{"y": 1}]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "x", "y", "z"])), min_size=1, max_size=20))
def test_where_each_label_has_a_row_a_text_has_the_labels_of_all_of_its_rows(rows: list[tuple[str, str]]) -> None:
    table = pyarrow.Table.from_pylist([{"text": f"text {text}", "label": label} for text, label in rows])
    found = read_labelled(MemoryTable(table), targets=TargetOptions(merge_rows=True))
    texts = list(dict.fromkeys(f"text {text}" for text, _ in rows))
    assert list(found.texts) == texts
    assert found.labels == [{label: 1.0 for text, label in rows if label and f"text {text}" == one} for one in texts]
    texts_said = "1 text" if len(texts) == 1 else f"{len(texts):,} texts"
    said = f"{len(rows):,} rows are {texts_said}, each with the labels of all of its rows."
    assert (said in found.notes) == (len(texts) < len(rows))


def test_whatever_stands_beside_a_text_its_rows_are_one_with_what_stands_beside_the_first(write: Write) -> None:
    path = write("a.csv", "text,label,price\na,x,1\nb,y,1\na,z,2\n")
    found = read_labelled(path, targets=TargetOptions(merge_rows=True), more=["price"])
    assert found.labels == [{"x": 1.0, "z": 1.0}, {"y": 1.0}]
    assert found.more == {"price": ["1", "1"]}


def test_labels_in_columns_of_their_own_are_called_as_the_model_calls_them(write: Write) -> None:
    path = write("a.csv", "text,tag_billing,tag_refunds\na,1,0\nb,0,0.5\n")
    usual = Usual(names=LabelNames.of_labels(["Billing", "Refunds"], "", {}, several=True))
    found = read_label_sets(path, targets=TargetOptions(label_columns=("tag_*",)), usual=usual)
    assert found.labels == [{"Billing": 1.0}, {"Refunds": 0.5}]
    assert found.label_columns == ("Billing", "Refunds")


@given(st.permutations([0.2, 0.9, 0.5]))
def test_rows_of_one_text_have_the_highest_probability_of_a_label_in_any_order(shares: list[float]) -> None:
    found: dict[str, float] = {}
    for share in shares:
        label_sets.add(found, {"a": share})
    assert found == {"a": 0.9}


def test_rows_are_merged_with_other_ways_of_writing_labels_and_never_with_weights(write: Write) -> None:
    path = write("a.csv", "text,label,tag_x,tag_y\na,p;q,1,0\nb,,0,0\na,r,0,0.5\n")
    assert sets(path, label_separator=";", merge_rows=True) == [{"p": 1, "q": 1, "r": 1}, {}]
    assert sets(path, label_columns=["tag_*"], merge_rows=True) == [{"x": 1, "y": 0.5}, {}]
    for options in ({"weight_column": "tag_x"}, {"several": False}):
        with pytest.raises(ConfigError, match="--merge-rows"):
            TargetOptions(merge_rows=True, **options)


def test_how_rows_are_merged_is_kept_with_how_labels_are_written() -> None:
    for options in (TargetOptions(merge_rows=True, several=True), TargetOptions(label_separator=";", several=True)):
        assert TargetOptions.from_json(json.loads(json.dumps(options.to_json()))) == options
    assert "merge_rows" not in TargetOptions(label_separator=";").to_json()


@pytest.mark.parametrize(
    "found",
    [None, [], {"label_separator": 5}, {"label_columns": "t_*"}, {"label_columns": [1]}, {"merge_rows": "yes"}],
)
def test_what_is_no_way_of_writing_labels_is_refused(found: object) -> None:
    with pytest.raises(ConfigError, match="nothing that this version reads"):
        TargetOptions.from_json(found)


# What is refused


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ('"x"', "are a string, where other rows have a list; write lists in all rows, [] for no label"),
        ("5", "are a number, where other rows have a list"),
        ('["x", 5]', "hold a number in their list; labels in a list are strings"),
        ('["x", null]', "hold null in their list"),
        ('["x", ["y"]]', "hold a list in their list"),
        ('["x", " "]', "hold an empty string; write [] for a row without labels"),
        ('["x", "\\ud83d"]', "hold one that holds \\ud83d, half a character"),
        ('{"x": 1.2}', "say of 'x': '1.2' is not a probability; write a number from 0 to 1"),
        ('{"x": NaN}', "say of 'x': 'nan' is not a probability"),
        ('{"x": -0.1}', "say of 'x': '-0.1' is not a probability"),
        ('{"x": [1]}', "say of 'x': a list is not a probability"),
        ('{"x": 1, " x": 1}', "hold 'x' twice"),
        ('{"": 1}', "hold one that is empty"),
    ],
)
def test_a_label_that_is_none_among_lists_is_told_with_its_row_and_column(write: Write, label: str, words: str) -> None:
    path = write("a.jsonl", f'{{"text": "a", "tags": ["x"]}}\n{{"text": "b", "tags": {label}}}\n')
    with pytest.raises(InputError) as caught:
        read_labelled(path, [], "tags", targets=TargetOptions())
    assert str(caught.value).startswith(f"{path}, line 2: the labels in column 'tags' {words}")
    skipped = BadRows(skip=True)
    assert read_labelled(path, [], "tags", targets=TargetOptions(), bad=skipped).labels == [{"x": 1}]
    assert skipped.count == 1


def test_a_list_among_single_labels_is_refused(write: Write) -> None:
    path = write("a.jsonl", '{"text": "a", "label": "x"}\n' * 1000 + '{"text": "b", "label": ["x", "y"]}\n')
    message = refusal(path)
    assert f"{path}, line 1001: 2 labels, 'x' and 'y', where earlier rows have one label each" in message
    assert message.endswith("add --task several if rows may have several.")
    assert "line 1001: the labels in column 'label' are a list, where" in refusal(path, several=True)


def test_an_empty_cell_among_single_labels_is_refused_unless_rows_may_have_none(write: Write) -> None:
    path = write("a.csv", "text,label\na,x\nb, \n")
    assert refusal(path) == (
        f"{path}, line 3: the label in column 'label' is empty; fill it in or remove the row, or leave it out "
        "with --on-error skip, or add --task several if a row may have none."
    )
    assert sets(path, several=True) == [{"x": 1}, {}]


def test_a_row_that_ends_the_work_tells_how_many_are_like_it(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["a,x", "b,", "c,", "d,y", "e,"]
    path = write("a.csv", "\n".join(["text,label", *rows]))
    assert "line 3: the label in column 'label' is empty" in refusal(path)
    assert "or leave out all 3 such rows with --on-error skip" in refusal(path)
    monkeypatch.setattr(labelled, "LOOKED_AT", 1)
    worse = write("b.csv", "\n".join(["text,label", *rows, "f,x,z", "g,"]))
    assert "or leave out all such rows, at least 3, with --on-error skip" in refusal(worse)
    monkeypatch.setattr(labelled, "COUNTED", 2)
    assert "or leave out all such rows, at least 2, with --on-error skip" in refusal(path)


def test_many_lines_of_fasttext_with_one_label_are_no_promise_for_the_next(write: Write) -> None:
    path = write("a.txt", "__label__x a\n" * 1000 + "__label__x __label__y b\n")
    assert "line 1001: 2 labels, 'x' and 'y', where earlier rows have one" in refusal(path)
    assert sets(path, several=True)[-1] == {"x": 1, "y": 1}


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("x;y", 'are not JSON; write a list such as ["billing", "refund"]'),
        ("5", "are a number and no list"),
        ('"[[""x""]]"', "hold a list in their list"),
    ],
)
def test_a_cell_that_holds_no_json_list_is_refused(write: Write, cell: str, words: str) -> None:
    assert f"line 2: the labels in column 'label' {words}" in refusal(
        write("a.csv", f"text,label\na,{cell}\n"), label_separator="json"
    )


def test_columns_that_share_a_name_hold_the_labels_of_a_row(write: Write) -> None:
    paths = [
        write("a.csv", "text,Labels,Labels\na,billing,refund\nb,refund,\nc,,\nd,x,x\n"),
        write("b.csv", "text,Labels\ne,billing\n"),
        write("c.csv", "Labels,text,Labels,Labels\nx,f,billing,7\n"),
    ]
    with open_targets(paths, label_column="Labels", targets=TargetOptions()) as table:
        found = [(row.text, row.label) for row in table.rows]
    last = {"x": 1.0, "billing": 1.0, "7": 1.0}
    assert [text for text, _ in found] == [*"abcdef"]
    assert [label for _, label in found] == [BOTH, {"refund": 1.0}, {}, {"x": 1.0}, {"billing": 1.0}, last]
    with open_targets(paths[:1], label_column="Labels 1", targets=TargetOptions(), bad=BadRows(skip=True)) as table:
        assert [row.label for row in table.rows] == ["billing", "refund", "x"]


def test_numbered_columns_are_no_list_unless_they_are_asked_for(write: Write) -> None:
    path = write("a.csv", "text,label 1,label 2\na,billing,refund\n")
    assert "Did you mean 'label', which has the labels of all 2?" in refusal(path)
    with open_targets([path], label_column="label", targets=TargetOptions()) as table:
        assert [row.label for row in table.rows] == [BOTH]
        assert "2 columns are read as one, 'label': the labels of a row." in table.notes


def test_a_separator_for_lists_is_refused(write: Write) -> None:
    path = write("a.jsonl", '{"text": "a", "label": ["x"]}\n')
    assert "are a list, which has no separator; leave --label-separator out" in refusal(path, label_separator=";")


def test_columns_of_labels_hold_marks_as_databases_and_people_write_them(write: Write) -> None:
    path = write("a.csv", "text,tag_x,tag_y\na,t,f\nb,x,\nc,X,yes\n")
    assert [sorted(one) for one in sets(path, label_columns=["tag_*"])] == [["x"], ["x"], ["x", "y"]]


@pytest.mark.parametrize("said", ["1.2", "-1", "nan", "inf", "maybe", "2"])
def test_a_column_of_a_label_with_another_value_is_told_with_row_and_column(write: Write, said: str) -> None:
    message = refusal(write("a.csv", f"text,tag_x,tag_y\na,1,0\nb,0,{said}\n"), label_columns=["tag_*"])
    assert f"line 3: column 'tag_y': '{said}' is " in message
    assert "probability" in message


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("-2", "is '-2'; write a number of 0 or more"),
        ("nan", "is 'nan'"),
        ("inf", "is 'inf'"),
        ("heavy", "is 'heavy'"),
        ("", "is empty; write a number of 0 or more, 1 for a row that counts as any other"),
    ],
)
def test_a_weight_that_is_none_is_told_with_row_and_column(write: Write, said: str, words: str) -> None:
    path = write("a.csv", f"text,label,w\na,x,0\nb,y,{said}\n")
    with pytest.raises(InputError) as caught:
        read_labelled(path, targets=TargetOptions(weight_column="w"))
    assert str(caught.value).startswith(f"{path}, line 3: the weight in column 'w' {words}")


def test_weights_of_json_are_numbers(write: Write) -> None:
    path = write("a.jsonl", '{"text": "a", "label": "x", "w": 2}\n{"text": "b", "label": "y", "w": true}\n')
    with pytest.raises(InputError, match="the weight in column 'w' is a truth value; write a number of 0 or more"):
        read_labelled(path, targets=TargetOptions(weight_column="w"))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("is_*", "has no column that --label-columns is_* names; it has 'text', 'tag_x', 'tag_w'."),
        ("*", "--label-columns * names 'text' of"),
        ("t*", "the column of the text; choose a pattern that excludes it."),
        ("tag_*", "the column of the weight; choose"),
    ],
)
def test_a_pattern_that_fits_no_column_or_a_wrong_one_is_refused(write: Write, pattern: str, words: str) -> None:
    path = write("a.csv", "text,tag_x,tag_w\na,1,1\n")
    assert words in refusal(path, label_columns=[pattern], weight_column="tag_w")


def test_two_columns_of_one_label_are_refused(write: Write) -> None:
    path = write("a.csv", "text,tag_x,x_tag\na,1,1\n")
    message = refusal(path, label_columns=["tag_*", "*_tag"])
    assert message == f"{path}: the columns 'tag_x' and 'x_tag' are the same label, 'x'; leave one of them out."


def test_every_file_needs_the_same_columns_of_labels(write: Write) -> None:
    paths = [write("a.csv", "text,t_x,t_y\na,1,1\n"), write("b.csv", "text,t_y\na,1\n")]
    for these in (paths, paths[::-1]):
        with pytest.raises(InputError, match=r"b.csv has no column 't_x', which is a label in .*a.csv; add it"):
            read_label_sets(these, targets=TargetOptions(label_columns=("t_*",)))


def test_a_line_of_json_with_a_further_column_of_a_label_is_refused_where_it_comes_late(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("a.jsonl", '{"text": "a", "t_x": 1}\n{"text": "b", "t_y": 1}\n')
    assert sets(path, label_columns=["t_*"]) == [{"x": 1}, {"y": 1}]
    monkeypatch.setattr(rows_of_files, "OBJECTS", 1)
    assert "line 2: the column 't_y' is one of t_*, which the first rows lack; write all columns" in refusal(
        path, label_columns=["t_*"]
    )


def test_labels_are_bounded_in_number(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "MOST_SEVERAL", 3)
    path = write("a.csv", "text,label\na,1;2\na,2;3\na,3;4\n")
    assert "line 4: there are now more than 3 different labels, the maximum" in refusal(path, label_separator=";")
    path = write("b.csv", "text,t_1,t_2,t_3,t_4\na,1,1,1,1\n")
    assert refusal(path, label_columns=["t_*"]) == f"{path} has 4 label columns; the maximum is 3."


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label_separator": ";", "label_columns": ("t_*",)}, "use only one of them"),
        ({"label_separator": ";", "several": False}, "leave one of them out"),
        ({"label_columns": ("t_*",), "several": False}, "leave one of them out"),
        ({"label_separator": ""}, "A label separator is one or more characters"),
        ({"label_separator": "\n"}, "A label separator is one or more characters"),
        ({"label_columns": ("*_*",)}, "A pattern of label columns contains one"),
        ({"label_columns": ("",)}, "A pattern of label columns contains one"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        TargetOptions(**options)  # type: ignore[arg-type]


def test_columns_that_cannot_be_two_things_are_refused(write: Write) -> None:
    path = write("a.csv", "text,label,t_x\na,x,1\n")
    with pytest.raises(ConfigError, match="--label-column names the column of all labels"):
        read_labelled(path, [], "label", targets=TargetOptions(label_columns=("t_*",)))
    with pytest.raises(InputError, match="'label' cannot be both label and weight"):
        read_labelled(path, targets=TargetOptions(weight_column="label"))
    with pytest.raises(InputError, match="has no column 'w'"):
        read_labelled(path, targets=TargetOptions(weight_column="w"))
