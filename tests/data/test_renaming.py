"""Labels under other names: by a file, and one way to write those that differ by case and spaces."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command_line import fail, run, succeed, write_rows
from textcls import Classifier, ConfigError, InputError
from textcls.data import Labelled, LabelledSets
from textcls.data.renaming import Renaming, read_map, spelt_alike


def rows(*labels: str) -> Labelled:
    return Labelled([f"text {i}" for i in range(len(labels))], [*labels])


def test_the_most_frequent_way_to_write_a_label_is_kept_and_the_first_of_equals() -> None:
    assert spelt_alike(["Billing", "billing", "BILLING", "billing"]) == {"Billing": "billing", "BILLING": "billing"}
    assert spelt_alike(["a  b", "A b"]) == {"A b": "a  b"}
    # Not what `_` and `-` tell apart: these may be two things.
    assert spelt_alike(["a_b", "a b", "ab"]) == {}


@given(st.lists(st.sampled_from(["a", "A", " a", "b", "B b", "b  b"]), min_size=1))
def test_renamed_labels_are_spelt_in_one_way_and_stay_so(labels: list[str]) -> None:
    renaming = Renaming({}, merge=True)
    renaming.learn(rows(*labels))
    found = renaming.of(rows(*labels)).labels
    assert spelt_alike(found) == {}
    assert [" ".join(name.lower().split()) for name in found] == [" ".join(name.lower().split()) for name in labels]


def test_a_map_comes_first_and_what_it_names_in_vain_is_told() -> None:
    renaming = Renaming({"refund": "BILLING", "none": "x"}, merge=True)
    given = rows("billing", "billing", "refund", "Shipping")
    said = renaming.learn(given)
    assert renaming.of(given).labels == ["billing", "billing", "billing", "Shipping"]
    assert said == [
        "No row has the label 'none', which is to be renamed.",
        "The label 'refund' is read as 'billing'.",
    ]


def test_without_merging_only_the_map_counts() -> None:
    renaming = Renaming({"b": "a"}, merge=False)
    assert renaming.learn(rows("a", "A", "b")) == ["The label 'b' is read as 'a'."]
    assert renaming.of(rows("a", "A", "b")).labels == ["a", "A", "a"]


def test_of_two_labels_of_a_text_that_become_one_the_larger_probability_counts() -> None:
    renaming = Renaming({"late": "delay"}, merge=False)
    given = LabelledSets(["x", "y"], [{"late": 0.4, "delay": 0.7}, {"late": 1.0}])
    renaming.learn(given)
    assert renaming.of(given).labels == [{"delay": 0.7}, {"delay": 1.0}]


def test_each_new_name_is_told_and_with_merging_it_is_that_of_all_spellings() -> None:
    given = rows("billing", "BILLING", "Billing ", "other", "Other")
    alone = Renaming({"billing": "money"}, merge=False)
    assert alone.learn(given) == ["The label 'billing' is read as 'money'."]
    assert alone.of(given).labels == ["money", "BILLING", "Billing ", "other", "Other"]
    both = Renaming({"biLLing": "money"}, merge=True)
    assert [line.split("'")[1::2] for line in both.learn(given)] == [
        ["BILLING", "money"],
        ["Billing ", "money"],
        ["Other", "other"],
        ["billing", "money"],
    ]
    assert both.of(given).labels == ["money"] * 3 + ["other"] * 2


def test_labels_that_are_columns_are_renamed_there() -> None:
    given = LabelledSets(["x"], [{"late": 1.0}], label_columns=("late",))
    with pytest.raises(ConfigError, match="rename the columns"):
        Renaming({}, merge=True).learn(given)


def test_a_training_reads_rows_and_validation_rows_under_the_new_names(tmp_path: Path) -> None:
    lines = [
        f"card charged twice {i},{name}\nparcel {i} lost,{other}\nmoney back {i},refund\n"
        for i in range(12)
        for name, other in (("Billing", "shipping"), ("billing", "Shipping "))
    ]
    data, valid, names, model = (tmp_path / name for name in ("rows.csv", "valid.csv", "names.csv", "m.onnx"))
    data.write_text("text,label\n" + "".join(lines), encoding="utf-8")
    valid.write_text("text,label\nmy card,BILLING\nparcel,Shipping\nmoney,refund\n", encoding="utf-8")
    names.write_text("label,new_label\nrefund,Billing\nBILLING,billing\n", encoding="utf-8")
    how = ("--label-map", names, "--merge-labels", "--epochs", "1", "--vectors", "none")
    succeed("train", data, "--valid", valid, "--output", model, *how)
    assert set(Classifier.load(model).labels) == {"billing", "shipping"}
    # The model remembers: rows that still have the old names are read by them.
    told = run("evaluate", model, valid, "--json")
    assert "'refund' as 'billing'" in told.stderr
    assert json.loads(told.stdout)["rows"] == 3
    assert {one["label"] for one in json.loads(told.stdout)["labels"]} == {"billing", "shipping"}
    valid.write_text("text,label\nmy card,REFUND\nparcel,Shipping\n", encoding="utf-8")
    assert "'REFUND' as 'billing'" in run("drift", model, valid).stderr


def test_a_new_name_that_no_row_has_in_the_end_is_not_remembered(tmp_path: Path) -> None:
    rows = [
        (f"{text} {i}", label) for i in range(9) for text, label in (("card", "refund"), ("box", "box"), ("x", "x"))
    ]
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), *rows])
    names = write_rows(tmp_path / "map.csv", [("label", "new_label"), ("refund", "billing"), ("x", "other")])
    tree = write_rows(tmp_path / "tree.csv", [("child", "parent"), ("billing", "money"), ("box", "goods")])
    how = ("--label-map", names, "--label-tree", tree, "--on-error", "skip", "--epochs", "1", "--vectors", "none")
    succeed("train", data, *how, "-o", tmp_path / "m.onnx")
    assert Classifier.load(tmp_path / "m.onnx").info.training["labels_renamed"] == {"refund": "money > billing"}
    assert "'refund' as 'money > billing'" in run("evaluate", tmp_path / "m.onnx", data).stderr


def test_a_model_of_several_labels_remembers_too(tmp_path: Path) -> None:
    rows = [(f"{text} {i}", label) for i in range(9) for text, label in (("card", "refund;a"), ("box", "box"))]
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), *rows])
    names = write_rows(tmp_path / "map.csv", [("label", "new_label"), ("refund", "billing")])
    how = ("--label-map", names, "--label-separator", ";", "--epochs", "1", "--vectors", "none")
    succeed("train", data, *how, "-o", tmp_path / "m.onnx")
    for command in ("evaluate", "drift"):
        assert "'refund' as 'billing'" in run(command, tmp_path / "m.onnx", data).stderr


def test_a_map_has_labels_as_files_of_rows_have_them(tmp_path: Path) -> None:
    path = tmp_path / "names.jsonl"
    path.write_text('{"label": 0, "new_label": "zero"}\n{"label": false, "new_label": 1}\n', encoding="utf-8")
    assert read_map(path) == {"0": "zero", "False": "1"}
    for row, said in (
        ('{"label": "a", "new_label": "b"}\n{"label": "b"}', "line 2: the label in column 'new_label' is empty."),
        ('{"label": "a", "new_label": ["b", "c"]}', "line 1: 2 labels, 'b' and 'c'."),
    ):
        path.write_text(row, encoding="utf-8")
        with pytest.raises(InputError) as error:
            read_map(path)
        assert said in str(error.value)


def test_a_new_label_is_one_label(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("label,new_label\na,b;c\n", encoding="utf-8")
    assert read_map(path) == {"a": "b;c"}
    with pytest.raises(InputError, match="line 2: 'b;c' holds ';', which separates labels"):
        read_map(path, ";")


def test_labels_of_a_state_are_not_merged_by_those_of_new_rows(sample_path: Path, tmp_path: Path) -> None:
    said = fail(2, "train", sample_path, "--from", tmp_path, "--merge-labels", "--output", tmp_path / "m.onnx")
    assert "--from brings more; train on all files together." in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("label,new_label\n", "maps no label; fill it in, or leave it out."),
        ("label,new\na,b\n", "has no column 'new_label': a map of labels has 'label' and 'new_label'."),
        ("label,new_label\na,\n", "line 2: the label in column 'new_label' is empty."),
        ("label,new_label\na,b\na,c\n", "line 3: 'a' is mapped to 'b' above, and to 'c' here."),
    ],
)
def test_a_map_that_is_none_is_refused(content: str, said: str, sample_path: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text(content, encoding="utf-8")
    assert said in fail(3, "train", sample_path, "--label-map", names, "--output", tmp_path / "m.onnx")


def test_each_node_of_a_path_is_spelt_as_most_rows_have_it() -> None:
    labels = ["Food > x"] * 10 + ["Food > y"] * 5 + ["FOOD > y"] * 8 + ["FOOD > Y"] * 2 + ["Traffic"] * 3
    assert spelt_alike(labels) == {"FOOD > y": "Food > y", "FOOD > Y": "Food > y"}
    # Whole names that nobody has are made of nodes that most have.
    assert spelt_alike(["A > b", "A > c", "a > B", "a > B"]) == {"A > b": "A > B", "a > B": "A > B"}


def test_a_path_with_odd_spaces_is_read_as_the_others() -> None:
    for odd in ("A\u00a0> b", "a\t> B", "A >  b"):
        assert spelt_alike(["A > b"] * 10 + [odd]) == {odd: "A > b"}


def test_of_spellings_that_are_as_frequent_one_that_can_be_typed_is_taken() -> None:
    assert spelt_alike(["A\u200b", "A", "b"]) == {"A\u200b": "A"}
    assert spelt_alike(["A\u200b"] * 5 + ["A"]) == {"A\u200b": "A"}
    assert spelt_alike(["b", "B"]) == {"B": "b"}
