"""`textcls.read`: texts and labels of files, folders and tables in memory, by the rules of the command line."""

from pathlib import Path
from typing import Any

import pytest

import textcls

COLUMNS = {"body": ["a", "b, c"], "queue": ["x", "y"], "nr": [1, 2]}


def tables() -> list[Any]:
    import pandas  # type: ignore[import-untyped]
    import pyarrow

    return [pandas.DataFrame(COLUMNS), pyarrow.table(COLUMNS)]


@pytest.mark.parametrize("table", tables(), ids=lambda table: type(table).__module__)
def test_a_table_in_memory_gives_its_texts_and_labels(table: Any) -> None:
    assert textcls.read(table) == (["a", "b, c"], ["x", "y"])
    assert textcls.read(table, text_column=["body", "queue"], label_column="nr") == (["a\nx", "b, c\ny"], ["1", "2"])
    with pytest.raises(textcls.InputError, match="has no column 'nothing'"):
        textcls.read(table, label_column="nothing")


def test_what_names_no_column_and_no_way_with_errors_is_refused() -> None:
    import pandas

    with pytest.raises(textcls.ConfigError, match="Columns are named by strings, and 5 is none"):
        textcls.read(pandas.DataFrame([["a", "b"]], columns=["text", 5]), label_column=5)  # type: ignore[arg-type]
    with pytest.raises(textcls.ConfigError, match="on_error is 'fail' or 'skip', not 'skp'"):
        textcls.read(pandas.DataFrame(COLUMNS), on_error="skp")  # type: ignore[arg-type]


def test_a_table_of_polars_gives_its_texts_and_labels() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert textcls.read(polars.DataFrame(COLUMNS)) == (["a", "b, c"], ["x", "y"])


def test_a_dataset_of_hugging_face_gives_the_names_of_its_classes() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["x", "y"])})
    dataset = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features)
    assert textcls.read(dataset.select([1, 0])) == (["b", "a"], ["x", "y"])


def test_files_are_read_alone_and_together(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\na,x\n")
    (tmp_path / "b.jsonl").write_text('{"text": "b, c", "label": "y"}\n')
    files = [tmp_path / "a.csv", str(tmp_path / "b.jsonl")]
    assert textcls.read(files) == textcls.read(tmp_path) == (["a", "b, c"], ["x", "y"])


def test_several_labels_come_as_such() -> None:
    import pyarrow

    found = textcls.read(pyarrow.table({"text": ["a", "b"], "label": [["x", "y"], []]}))
    assert [sorted(labels) for labels in found.labels] == [["x", "y"], []]


def test_rows_that_cannot_be_used_end_it_or_are_skipped_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("text,label\na,x\nb,\nc,R\u00fcckgabe\n".encode("cp1252"))
    with pytest.raises(textcls.InputError, match="line 3: the label in column 'label' is empty"):
        textcls.read(tmp_path / "a.csv", encoding="cp1252")
    with pytest.warns(UserWarning, match="Skipped 1 row that cannot be used"):
        found = textcls.read(tmp_path / "a.csv", encoding="cp1252", on_error="skip")
    assert found == (["a", "c"], ["x", "R\u00fcckgabe"])


@pytest.mark.parametrize("given", [{"text": ["a"]}, 5, None])
def test_what_is_no_table_is_told(given: Any) -> None:
    with pytest.raises(
        textcls.InputError, match=r"^A \w+ is not a table; pass one of pandas, polars, pyarrow or datasets"
    ):
        textcls.read(given)


def test_what_was_read_trains(tmp_path: Path) -> None:
    import pandas

    frame = pandas.DataFrame({"text": ["good day", "bad night"] * 20, "label": ["x", "y"] * 20})
    classifier = textcls.train(*textcls.read(frame), tmp_path / "a.onnx", epochs=1, size="small", vectors="none")
    assert classifier.labels == ("x", "y")


def test_a_column_of_values_of_several_types_holds_strings_as_in_a_file(tmp_path: Path) -> None:
    import pandas

    table = pandas.DataFrame({"text": list("abcd"), "label": ["x", 1, None, True], "odd": [1, "one", 2.5, 1j]})
    with pytest.warns(UserWarning, match="row 3: the label in column 'label' is empty"):
        assert textcls.read(table, on_error="skip") == (["a", "b", "d"], ["x", "1", "True"])
    assert textcls.read(table, label_column="odd").labels == ["1", "one", "2.5", "1j"]
    with pytest.raises(textcls.InputError, match="have no Arrow type"):
        textcls.read(table.assign(label=["x", ["x", "y"], "y", 1]))
    twice = pandas.concat([table, table[["label"]]], axis=1)
    with pytest.raises(textcls.InputError, match="Duplicate column names"):
        textcls.read(twice)


def test_no_file_at_all_is_refused() -> None:
    with pytest.raises(textcls.InputError, match="There is nothing to read: name at least one file"):
        textcls.read([])


def test_messages_name_arguments_and_no_options() -> None:
    import pandas

    table = pandas.DataFrame({"text": ["a", "b"], "label": ["x", None]})
    with pytest.raises(textcls.InputError, match=r"leave it out with on_error='skip'\.$"):
        textcls.read(table)
    with pytest.raises(textcls.InputError, match=r"Choose with text_column\."):
        textcls.read(table.rename(columns={"text": "mail"}))


def test_a_column_and_a_plan_of_a_table_are_told_to_be_no_table() -> None:
    import pandas

    with pytest.raises(textcls.InputError, match="A Series is not a table; pass one of pandas"):
        textcls.read(pandas.Series(["a"], dtype="string[pyarrow]"))

    class LazyFrame:
        def collect(self) -> None: ...

    with pytest.raises(textcls.InputError, match=r"not a table; pass one of pandas.* as \.collect\(\) returns it\.$"):
        textcls.read(LazyFrame())
