"""What is found out about labels where a text may have several: cells that hold several, and what is odd with them."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest

from tests.command_line import run
from textcls.data import Row, TargetOptions, read_labelled
from textcls.data.places import Places
from textcls.evaluation.data_quality.finding import Finding
from textcls.evaluation.data_quality.findings import find
from textcls.evaluation.data_quality.joint_labels import joint_labels
from textcls.evaluation.data_quality.survey import Survey

TOPICS = ["arts", "economy", "politics", "sport"]


def write(path: Path, cells: Sequence[str], columns: Mapping[str, Sequence[object]] | None = None) -> Path:
    """Write a text with different words for each cell."""
    more = columns or {}
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["text", "label", *more])
        table.writerows(
            [
                [f"words of text {'x' * i}", cell, *of]
                for i, (cell, *of) in enumerate(zip(cells, *more.values(), strict=True))
            ]
        )
    return path


def survey(rows: Sequence[Sequence[str]], texts: Sequence[str] | None = None) -> Survey:
    found = Survey(places=Places())
    for i, names in enumerate(rows):
        found.add(texts[i] if texts else f"words of text {'x' * i}", dict.fromkeys(names, 1.0))
        found.places.append(Row(i + 1, {}, "rows.csv"))
    return found


def findings(rows: Sequence[Sequence[str]], texts: Sequence[str] | None = None) -> dict[str, Finding]:
    return {finding.kind: finding for finding in find(survey(rows, texts))}


def combined(labels: Sequence[str], rows: int, separator: str) -> list[str]:
    """Cells with one to three of the labels, in any order."""
    random = Random(1)
    return [separator.join(random.sample(labels, random.choice([1, 1, 2, 3]))) for _ in range(rows)]


# Cells that hold several


@pytest.mark.parametrize("separator", [";", "; ", ",", ", ", "|", " / "])
def test_cells_with_several_labels_are_told_from_one_label_with_the_option_that_reads_them(
    tmp_path: Path, separator: str
) -> None:
    path = write(tmp_path / "rows.csv", combined(TOPICS, 60, separator))
    said = run("check", path).stdout
    cells = len(set(combined(TOPICS, 60, separator)))
    sign = separator.strip()
    message = (
        f"! The label column looks like it holds several labels per cell, separated by '{sign}' ({cells} different "
        f"cells, 4 labels): use --label-separator '{sign}'."
    )
    assert message in said.splitlines()
    assert "single row" not in said
    assert "looks like it holds" not in run("check", path, "--label-separator", sign).stdout


def test_train_says_so_as_well(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", combined(TOPICS, 60, ";"))
    said = run("train", path, "-o", tmp_path / "m.onnx", "--epochs", "1", "--dim", "2").stderr
    assert "Warning: The label column looks like it holds several labels per cell, separated by ';'" in said


def test_train_tells_what_is_odd_with_several_labels_a_row(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", [*["x;y", "x", "y", ""] * 15, "z;x", "z"])
    options = ["--label-separator", ";", "--epochs", "1", "--dim", "2"]
    warned = [
        line for line in run("train", path, "-o", tmp_path / "m.onnx", *options).stderr.splitlines() if "Warn" in line
    ]
    few = "1 label has under 5 rows: 'z' (2); add examples: so few rows teach little and cannot be measured."
    assert warned == [f"Warning: {few} See {path}, line 62."]


def test_a_wrong_separator_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", combined(TOPICS, 60, "|"))
    for options in (["--label-separator", ";"], ["--task", "several"]):
        said = run("check", path, *options).stdout
        assert "! Some labels look like several in one, separated by '|' (" in said
        assert "4 parts): is --label-separator '|' meant?" in said


def test_lists_in_cells_of_csv_are_told(tmp_path: Path) -> None:
    cells = [json.dumps(cell.split(";")) for cell in combined(TOPICS, 60, ";")]
    path = write(tmp_path / "rows.csv", cells)
    assert "4 labels): use --label-separator json." in run("check", path).stdout
    assert "60 rows, 4 labels, " in run("check", path, "--label-separator", "json").stdout


def test_some_rows_of_many_labels_are_enough() -> None:
    labels = [f"tag number {i}" for i in range(90)]
    found = joint_labels(set(combined(labels, 500, ";")))
    assert found is not None
    assert (found.separator, found.labels) == (";", 90)


@pytest.mark.parametrize("sign", [";", "; ", "|"])
def test_one_cell_with_labels_that_stand_alone_elsewhere_is_enough(sign: str) -> None:
    found = joint_labels(["billing", "damage", f"billing{sign}damage"])
    assert found is not None
    assert (found.separator, found.labels) == (sign.strip(), 2)
    assert joint_labels(["billing", f"billing{sign}loss"]) is None


@pytest.mark.parametrize("sign", [";", "|"])
def test_a_tag_that_is_added_to_labels_and_never_stands_alone_is_a_label(sign: str) -> None:
    found = joint_labels(["billing", "returns", f"billing{sign}urgent", f"returns{sign}urgent"])
    assert found is not None
    assert (found.separator, found.labels) == (sign, 3)
    assert (
        joint_labels(["de", "fr", *(f"{country}{sign}{topic}" for country in ("de", "fr") for topic in TOPICS)]) is None
    )


def test_a_few_cells_with_two_labels_among_many_with_one_are_enough() -> None:
    found = joint_labels(["legal", "it", "sales", "support", *"abcdefgh", "legal/it", "it/sales", "sales/legal"])
    assert found is not None
    assert (found.separator, found.labels) == ("/", 12)


@pytest.mark.parametrize(
    "labels",
    [
        ["sci.space", "sci.med", "rec.autos", "talk.politics.guns"],
        ["sci/space", "sci/med", "rec/autos", "rec/sport/hockey", "rec/sport/baseball"],
        ["Wear & tear", "Wear, tear", "Tear", "Wear"],
        ["yes", "no", "yes/no", "maybe", "maybe/no"],
        ["food/good", "food/bad", "price/good", "price/bad", "place/good", "place/bad"],
        [*"abcde", *(f"{country}/{topic}" for country in "abcde" for topic in TOPICS)],
        ["en/de", "de/en", "en/fr", "fr/en"],
        ["this", "that", "this/that", "that/this", "other"],
        ["one, two, three, four", "two, one, three, four", "four, three"],
        ["net/web", "app/net", "box/app", "cpu/disk", "net", "web", "app"],
        ["Sci/Tech", "World", "Sports", "Business"],
        [
            *("Payday loan", "Payday loan, title loan, or personal loan", "Credit card", "Credit card, prepaid card"),
            *("Payday loan, title loan, personal loan, or advance loan", "Money transfer, virtual currency"),
        ],
        ["activate_my_card", "card_payment_fee_charged", "Refund_not_showing_up", "top_up_by_bank_transfer_charge"],
        ["体育", "财经", "房产", "家居", "教育", "科技", "时尚", "时政", "游戏", "娱乐"],
        ["[x]", "[y]", "[z]"],
    ],
    ids=lambda labels: labels[0],
)
def test_names_of_single_labels_are_left_alone(labels: list[str]) -> None:
    assert joint_labels(labels) is None


# What is odd with label sets


def test_label_sets_are_counted_by_label_with_the_rows_that_have_none(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", ["x;y", "x", "", "y;x"])
    result = run("check", path, "--label-separator", ";")
    assert result.stdout.startswith("4 rows, 2 labels, 1.25 labels a row, 1 row without a label\n")
    assert ["x", "3", "75.0%"] in [line.split() for line in result.stdout.splitlines()]
    found = json.loads(run("check", path, "--label-separator", ";", "--json").stdout)
    assert (found["labels"], found["labels_a_row"], found["rows_without_label"]) == ({"x": 3, "y": 2}, 1.25, 1)


def test_one_label_a_row_has_no_figures_of_label_sets(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", ["x", "y"] * 5)
    assert run("check", path).stdout.startswith("10 rows, 2 labels\n")
    assert "labels_a_row" not in json.loads(run("check", path, "--json").stdout)


def test_a_label_counts_where_it_is_as_likely_as_not(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    shares = [{"x": 0.5, "y": 0.4}, {"x": 0.4}, {"x": 1.0, "y": 0.1}]
    path.write_text("".join(json.dumps({"text": f"text {'i' * i}", "label": s}) + "\n" for i, s in enumerate(shares)))
    found = json.loads(run("check", path, "--json").stdout)
    assert (found["labels"], found["rows_without_label"]) == ({"x": 2, "y": 0}, 1)
    assert "1 label has no row: 'y'; add examples, or leave it out." in [f["message"] for f in found["findings"]]


def test_a_column_of_a_label_without_a_row_is_found(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", ["-"] * 12, {"t_x": [1, 0] * 6, "t_y": [0, 1] * 6, "t_z": [0] * 12})
    assert "1 label has no row: 'z'" in run("check", path, "--label-columns", "t_*").stdout
    rows = read_labelled(path, targets=TargetOptions(label_columns=("t_*",)))
    assert "no-example" in {finding.kind for finding in find(Survey.of(rows))}


def test_nothing_is_found_in_label_sets_without_fault() -> None:
    rows = [["x"], ["y"], ["x", "y"], [], ["y", "z"], ["z"]] * 5
    assert findings(rows) == {}


def test_rows_without_any_label_are_found() -> None:
    assert str(findings([[], []])["no-labels"]) == "No row has a label; is this the right label column?"


def test_labels_with_few_rows_are_found_with_their_numbers() -> None:
    rows = [["x", "y"], ["x"], ["y"]] * 5 + [["z"], ["z"], ["z", "w"], ["z"], ["x", "v"], ["y", "v"]]
    found = findings(rows)
    assert set(found) == {"single-example", "few-examples"}
    assert found["few-examples"].message.startswith("2 labels have under 5 rows: 'z' (4), 'v' (2); add examples")
    assert found["few-examples"].rows == ("rows.csv, line 16", "rows.csv, line 20")
    assert found["single-example"].rows == ("rows.csv, line 18",)


def test_the_same_text_with_different_label_sets_is_found() -> None:
    rows = [["x", "y"], ["x"], ["y"]] * 5
    texts = [f"some {'i' * i}" for i in range(12)] + ["same", "other", "same"]
    found = findings(rows, texts)["conflicting-copies"]
    assert "the first with ['x', 'y'] and ['y']; decide on the labels of each." in found.message
    assert found.rows == ("rows.csv, line 13", "rows.csv, line 15")
    order = [*rows[:12], ["x", "y"], ["z"] * 5, ["y", "x"]]
    assert "conflicting-copies" not in findings(order, texts)


def test_labels_that_always_come_together_are_found() -> None:
    rows = [["x", "y"], ["x", "y", "z"], ["z"], []] * 5
    found = findings(rows)
    assert set(found) == {"labels-together"}
    assert found["labels-together"].message == (
        "The labels 'x' and 'y' (10 rows) always occur together; merge them if they mean the same."
    )
    assert findings([*rows, ["x"]]) == {}


def test_labels_on_nearly_all_rows_or_hardly_any_are_found() -> None:
    rows = [["x", "often"], ["y", "often"]] * 400
    common = find(survey([*rows, ["x"], ["y"]]))
    assert [str(finding) for finding in common if finding.kind == "unbalanced-labels"] == [
        "1 label is on nearly every row, and so says little: 'often' (800 of 802)."
    ]
    scarce = findings([*([["x"], ["y"]] * 400), *([["x", "seldom"]] * 8)])["unbalanced-labels"]
    assert scarce.message.startswith("1 of 3 labels is on one row of 100 or fewer: 'seldom' (8); if they matter")
    assert "unbalanced-labels" not in findings([*([["x"], ["y"]] * 400), *([["x", "seldom"]] * 9)])


def test_one_label_a_row_may_be_unbalanced_too() -> None:
    def of(few: int) -> dict[str, Finding]:
        found = Survey(places=Places())
        for i in range(990 + few):
            found.add(f"words {'x' * (i % 7)}{i}", "rare" if i < few else "usual")
            found.places.append(Row(i + 1, {}, "rows.csv"))
        return {finding.kind: finding for finding in find(found)}

    assert "'usual' has 990 rows and 'rare' 10, 99 to 1 or more" in of(10)["unbalanced-labels"].message
    assert "unbalanced-labels" not in of(11)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([0] * 12, "All weights are 0, so no row counts; is this the right weight column?"),
        ([2.5] * 12, "All weights are 2.5, which has no effect; is this the right weight column?"),
        ([1] * 12, None),
        ([0, 1] * 6, None),
    ],
)
def test_weights_that_say_nothing_are_found(tmp_path: Path, weights: list[float], words: str | None) -> None:
    path = write(tmp_path / "rows.csv", ["x", "y"] * 6, {"w": weights})
    said = run("check", path, "--weight-column", "w").stdout
    assert (f"! {words}" in said.splitlines()) if words else ("weight" not in said)


def test_labels_of_validation_rows_that_no_training_row_has_are_found(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows.csv", ["x;y", "x", "y"] * 5)
    valid = write(tmp_path / "valid.csv", ["x;z", "", "y"])
    said = run("check", rows, "--valid", valid, "--label-separator", ";").stdout
    assert "! Validation rows have labels that no training row has: 'z'; add examples" in said
    assert f"correct the label. See {valid}, line 2." in said


def test_rows_that_have_been_read_are_surveyed_as_those_of_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", ["x;y", "x", "", "w;q"], {"w": [1, 2, 3, 4]})
    several = TargetOptions(label_separator=";", weight_column="w")
    found = Survey.of(read_labelled(path, targets=several))
    assert (found.lightest, found.heaviest, found.without) == (1, 4, 1)
    assert found.labels == {"x": 2, "y": 1, "w": 1, "q": 1}
    single = find(Survey.of(read_labelled(write(tmp_path / "one.csv", ["x", "y", "x"]))))
    assert [(finding.kind, finding.rows) for finding in single] == [
        ("single-example", (f"{tmp_path / 'one.csv'}, line 3",)),
        ("few-examples", (f"{tmp_path / 'one.csv'}, line 2",)),
    ]
