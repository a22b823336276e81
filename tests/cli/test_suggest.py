"""`textcls suggest`: the rows to label next, as a file."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.command_line import fail, read_rows, succeed, write_rows
from textcls.labelling.suggest import at_random

TEXTS = ["my card was charged twice", "where is my parcel", "Where is my parcel?", "refund my card", "a new lamp"]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "texts.csv", [["id", "text"], *([str(i), text] for i, text in enumerate(TEXTS))])


def test_the_rows_keep_their_columns_and_get_what_the_model_thinks(
    model_path: Path, texts: Path, tmp_path: Path
) -> None:
    output = tmp_path / "next.csv"
    said = succeed("suggest", model_path, texts, "-n", "3", "-o", output)
    assert said.startswith("3 rows of 5 -> ")
    rows = read_rows(output)
    assert list(rows[0]) == ["id", "text", "suggested_label", "score", "doubt"]
    assert all(TEXTS[int(row["id"])] == row["text"] for row in rows)
    assert float(rows[0]["doubt"]) == max(float(row["doubt"]) for row in rows)


def test_without_a_model_the_rows_to_begin_with_are_chosen_and_near_copies_are_left_out(
    texts: Path, tmp_path: Path
) -> None:
    output = tmp_path / "first.jsonl"
    succeed("suggest", texts, "-o", output)
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert sorted(row["id"] for row in rows) == ["0", "1", "3", "4"]
    again = json.loads(succeed("suggest", texts, "--json"))
    assert [row["text"] for row in again["rows"]] == [row["text"] for row in rows]


def test_what_is_labelled_already_is_left_out_with_its_near_copies(
    model_path: Path, texts: Path, tmp_path: Path
) -> None:
    labelled = tmp_path / "labels.jsonl"
    labelled.write_text('{"text": "WHERE is my parcel", "label": "shipping"}\n', encoding="utf-8")
    found = json.loads(succeed("suggest", model_path, texts, "--labelled", labelled, "--json"))
    assert sorted(row["row"] for row in found["rows"]) == [1, 4, 5]
    everything = write_rows(tmp_path / "all.csv", [["text"], *([text] for text in TEXTS)])
    assert "all its texts are labelled already" in fail(3, "suggest", texts, "--labelled", everything)


def test_people_see_where_each_row_stands(model_path: Path, texts: Path) -> None:
    said = succeed("suggest", model_path, texts, "-n", "1")
    assert f"{texts}, line" in said
    assert "answer" in said


def test_what_makes_no_sense_is_refused(model_path: Path, texts: Path, tmp_path: Path) -> None:
    assert "name the texts to choose from as well" in fail(2, "suggest", model_path)
    assert "Give a model and one file" in fail(2, "suggest", model_path, texts, texts)
    assert "also the input" in fail(3, "suggest", texts, "-o", texts)
    assert "There is no file" in fail(3, "suggest", tmp_path / "none.csv")


def test_formulas_in_the_chosen_rows_are_escaped_on_request(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "texts.csv", [("text", "note"), *((f"text number {i}", "=1+1") for i in range(9))])
    succeed("suggest", data, "-n", "3", "-o", tmp_path / "next.csv", "--escape-formulas")
    assert {row["note"] for row in read_rows(tmp_path / "next.csv")} == {"'=1+1"}


@pytest.mark.parametrize(("name", "said"), [("next", "does not say a format"), ("next.jsonl", "has no formulas")])
def test_a_table_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path, name: str, said: str) -> None:
    missing = tmp_path / "none.csv"
    for command in (("suggest", missing, "-o"), ("check", missing, "--labels", "--suspects")):
        assert said in fail(2, *command, tmp_path / name, "--escape-formulas")


def test_rows_at_random_are_any_copies_included_and_fewer_are_the_first_of_more(
    model_path: Path, texts: Path, tmp_path: Path
) -> None:
    drawn = [
        [row["row"] for row in json.loads(succeed("suggest", texts, "--at-random", "-n", str(count), "--json"))["rows"]]
        for count in (1, 3, 5, 50)
    ]
    assert sorted(drawn[-1]) == [1, 2, 3, 4, 5]
    assert all(few == drawn[-1][: len(few)] for few in drawn)
    output = tmp_path / "sample.csv"
    assert "textcls evaluate tells how good" in succeed("suggest", model_path, texts, "--at-random", "-o", output)
    assert [*read_rows(output)[0]] == ["id", "text"]
    assert "give one of them" in fail(2, "suggest", texts, "--at-random", "--labelled", texts)


def test_rows_at_random_come_from_all_over_a_file() -> None:
    tenths = Counter(one.row // 2_000 for one in at_random(["x"] * 20_000, 10_000))
    # Their standard deviation is 21.
    assert all(900 < tenths[tenth] < 1_100 for tenth in range(10))
