"""The check of labelled rows: what it counts, what it finds, and what `textcls check` and `textcls train` say of it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.command_line import run, succeed
from textcls.cli import main
from textcls.data import open_labelled
from textcls.evaluation.data_quality.duplicates import near
from textcls.evaluation.data_quality.finding import Finding
from textcls.evaluation.data_quality.findings import find
from textcls.evaluation.data_quality.report import report
from textcls.evaluation.data_quality.scripts import shares
from textcls.evaluation.data_quality.survey import Survey

Rows = Sequence[tuple[str, str]]


def write(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    return path


def survey(path: Path, rows: Rows) -> Survey:
    with open_labelled([write(path, rows)]) as table:
        return Survey().extend(table.rows)


def findings(tmp_path: Path, rows: Rows, valid: Rows | None = None) -> dict[str, Finding]:
    judges = survey(tmp_path / "valid.jsonl", valid) if valid is not None else None
    return {finding.kind: finding for finding in find(survey(tmp_path / "rows.jsonl", rows), judges)}


GOOD = [(f"{word} number {word} {other}", label) for word in "abcdef" for other, label in (("good", "x"), ("bad", "y"))]


def test_nothing_is_found_in_rows_without_fault(tmp_path: Path) -> None:
    assert findings(tmp_path, GOOD, [("another text", "x")]) == {}


def test_what_training_refuses_is_found_beforehand(tmp_path: Path) -> None:
    found = findings(tmp_path, [("one text", "x"), ("another text", "x")])
    assert str(found["one-label"]) == "All rows have the label 'x'; training needs at least two labels."
    found = findings(tmp_path, [("", "x"), (" ", "y")])
    assert "train will refuse" in found["no-words"].message


def test_texts_longer_than_a_model_reads_are_found(tmp_path: Path) -> None:
    found = findings(tmp_path, [*GOOD, ("word " * 2049, "x"), ("word " * 2048, "y")])
    assert found["long-texts"].count == 1
    assert found["long-texts"].rows == (f"{tmp_path / 'rows.jsonl'}, line 13",)


def test_empty_texts_are_found_with_their_rows(tmp_path: Path) -> None:
    found = findings(tmp_path, [*GOOD, ("", "x"), (" \n", "y")])
    assert set(found) == {"empty-text"}
    assert str(found["empty-text"]) == (
        f"2 texts are empty; fill in or remove the rows. See {tmp_path / 'rows.jsonl'}, lines 13, 14."
    )


def test_copies_and_near_copies_are_told_apart_and_the_first_of_a_kind_is_none(tmp_path: Path) -> None:
    copies = [("Hello, World!", "x"), ("hello world", "x"), ("Hello, World!", "x"), ("HELLO-WORLD", "x")]
    found = findings(tmp_path, [*GOOD, *copies])
    assert set(found) == {"copies", "near-copies"}
    assert found["copies"].rows == (f"{tmp_path / 'rows.jsonl'}, line 15",)
    assert [row.rpartition(" ")[2] for row in found["near-copies"].rows] == ["14", "16"]
    assert "identical except for case, spaces and punctuation" in found["near-copies"].message


@given(st.text(st.characters(max_codepoint=127)))
def test_near_copies_are_the_same_whether_a_sign_beyond_ascii_stands_in_them_or_not(text: str) -> None:
    assume(any(sign.isalnum() for sign in text))
    assert near(text) == near(text + "\u2026") == near(text.upper())


def test_texts_of_nothing_but_signs_are_no_near_copies_of_each_other(tmp_path: Path) -> None:
    assert findings(tmp_path, [*GOOD, (":-)", "x"), (":-(", "y")]) == {}


def test_a_text_without_tokens_is_empty_whatever_it_holds(tmp_path: Path) -> None:
    found = findings(tmp_path, [*GOOD, ("\0\0", "x"), ("\u2003\t", "y")])
    assert {kind: finding.count for kind, finding in found.items()} == {"empty-text": 2}


def test_copies_with_different_labels_are_found(tmp_path: Path) -> None:
    found = findings(tmp_path, [*GOOD, ("same", "x"), ("same", "y"), ("same", "x")])
    assert found["conflicting-copies"].count == 1
    message = found["conflicting-copies"].message
    assert "the first with 'x' and 'y'; decide on one label for each." in message
    # One of 15 rows has another label than the others of its text.
    assert "right on more than 93.3% of all rows." in message
    assert [row.rpartition(" ")[2] for row in found["conflicting-copies"].rows] == ["13", "14", "15"]


def test_labels_that_differ_by_case_or_space_are_found(tmp_path: Path) -> None:
    found = findings(tmp_path, [*GOOD, ("one", "Late  Parcel"), ("two", "late parcel"), ("three", "late parcel")])
    message = found["alike-labels"].message
    assert (
        "'Late  Parcel' (1) and 'late parcel' (2) differ only by case, space, _, -, umlauts, leading zeros or .0;"
        in message
    )
    found = findings(tmp_path, [*GOOD, ("one", "late_parcel"), ("two", "late-parcel"), ("three", "LateParcel")])
    assert found["alike-labels"].count == 3
    german = findings(tmp_path, [*GOOD, ("one", "Kündigung"), ("two", "Kuendigung"), ("three", "KÜNDIGUNG")])
    assert german["alike-labels"].count == 3
    assert "alike-labels" not in findings(tmp_path, [*GOOD, ("one", "-"), ("two", "_"), ("three", "c"), ("four", "c+")])


def test_labels_that_look_the_same_are_told_by_what_they_are_made_of(tmp_path: Path) -> None:
    seen = ["B\u00fcro", "Bu\u0308ro", "B\u00fcro\u200b"]
    found = findings(tmp_path, [*GOOD, *(("a b", label) for label in seen)])
    message = found["alike-labels"].message
    assert (
        "'B\\xfcro' (1) and 'Bu\\u0308ro' (1) and 'B\\xfcro\\u200b' (1) differ only by signs that nobody sees;"
        in message
    )
    assert "as --merge-labels does" in message


def test_labels_that_programs_write_where_there_is_none_are_found(tmp_path: Path) -> None:
    found = findings(tmp_path, [*GOOD, ("one", "#N/A"), ("two", "NaN"), ("three", "none"), ("four", r"\N")])
    assert (
        "'#N/A' (1), 'NaN' (1), '\\\\N' (1): what programs write where there is no label" in found["no-label"].message
    )
    assert found["no-label"].count == 3


def test_levels_of_a_tree_are_looked_at_as_labels_are(tmp_path: Path) -> None:
    rows = [(f"row {i} of {name}", name) for i in range(5) for name in ("Food > Tea", "food > Rye", "Food > n/a")]
    found = findings(tmp_path, rows)
    assert "The levels 'Food' (10) and 'food' (5) look like spellings of one" in found["alike-labels"].message
    assert "'Food > n/a' (5): what programs write where there is no label" in found["no-label"].message
    assert "alike-labels" not in findings(tmp_path, [row for row in rows if "food" not in row[1]])


def test_one_row_beyond_reach_among_many_is_not_rounded_away(tmp_path: Path) -> None:
    rows = [(f"text {i}", "xy"[i % 2]) for i in range(3000)]
    message = findings(tmp_path, [*rows, ("same", "x"), ("same", "y")])["conflicting-copies"].message
    assert "right on more than 99.97% of all rows." in message


def test_numbers_as_labels_are_alike_by_their_value_and_not_by_their_sign(tmp_path: Path) -> None:
    found = findings(tmp_path, [*GOOD, ("one", "1"), ("two", "1.0"), ("three", "-1"), ("four", "1234567")])
    assert found["alike-labels"].count == 2
    assert "'1' (1) and '1.0' (1)" in found["alike-labels"].message


def test_what_programs_write_where_there_is_no_text_is_found(tmp_path: Path) -> None:
    found = findings(tmp_path, [*GOOD, ("nan", "x"), (" NULL ", "y"), ("none of it works", "x")])
    assert [row.rpartition(" ")[2] for row in found["no-text"].rows] == ["13", "14"]
    assert str(found["no-text"]).startswith("2 texts are placeholders for missing text, such as nan or null")


def test_markup_is_found_and_signs_that_people_write_are_none(tmp_path: Path) -> None:
    found = findings(tmp_path, [*GOOD, ("good<br />bad", "x"), ("AT&amp;T", "y"), ('<a href="x">here</a>', "x")])
    assert found["markup"].count == 3
    people = [("<3 you", "x"), ("a < b > c", "y"), ("<name>, hello", "x"), ("Q&A; more", "y")]
    assert "markup" not in findings(tmp_path, [*GOOD, *people])


def test_labels_with_one_example_are_found(tmp_path: Path) -> None:
    found = findings(tmp_path, [*GOOD, ("one", "rare"), ("two", "scarce")])
    assert set(found) == {"single-example"}
    assert "2 labels have a single row: 'rare', 'scarce'; add examples" in found["single-example"].message
    assert [row.rpartition(" ")[2] for row in found["single-example"].rows] == ["13", "14"]


def test_rows_that_stand_among_the_validation_rows_too_are_found(tmp_path: Path) -> None:
    found = findings(tmp_path, GOOD, [(GOOD[0][0], "x"), (GOOD[1][0].upper() + "!", "y"), ("new", "x")])
    assert set(found) == {"valid-copies", "valid-near-copies"}
    assert found["valid-copies"].rows == (f"{tmp_path / 'valid.jsonl'}, line 1",)
    assert found["valid-near-copies"].rows == (f"{tmp_path / 'valid.jsonl'}, line 2",)


def test_labels_of_validation_rows_that_no_training_row_has_are_found(tmp_path: Path) -> None:
    found = findings(tmp_path, GOOD, [("new", "z")])
    assert found["unseen-label"].rows == (f"{tmp_path / 'valid.jsonl'}, line 1",)


@pytest.mark.parametrize("text", ["{}", "ID-{}", "user_{}@example", "2024-01-{}T10:00"])
def test_a_column_of_numbers_or_keys_is_suspicious(tmp_path: Path, text: str) -> None:
    rows = [(text.format(i), "xy"[i % 2]) for i in range(30)]
    found = findings(tmp_path, rows)
    if "@" in text:
        assert found == {}
    else:
        assert "is this the right text column?" in found["codes-as-texts"].message


@pytest.mark.parametrize("text", ["\u7b2c{}\u7ae0\u8d77\u70b9", "level {}", "caf\u00e9{}"])
def test_short_texts_with_numbers_are_not_suspicious(tmp_path: Path, text: str) -> None:
    assert findings(tmp_path, [(text.format(i), "xy"[i % 2]) for i in range(30)]) == {}


def test_a_constant_text_column_is_suspicious(tmp_path: Path) -> None:
    assert "constant-text" in findings(tmp_path, [("n/a", "x"), ("n/a", "y")])


def test_a_label_for_nearly_every_row_is_suspicious(tmp_path: Path) -> None:
    found = findings(tmp_path, [(f"some text {word}", word) for word in "abcdefghijkl"])
    assert "12 rows have 12 labels; is this the right label column?" in found["many-labels"].message


def test_scripts_are_reported_by_their_share_of_the_letters() -> None:
    assert shares({"a": 2, "\u00e9": 1, "\u0416": 1, "\u6f22": 1, "\u3042": 1, "1": 9, " ": 9, "\U0001f621": 9}) == {
        "Latin": 0.5,
        "Cyrillic": pytest.approx(1 / 6),
        "Han": pytest.approx(1 / 6),
        "Hiragana": pytest.approx(1 / 6),
    }
    assert shares({"1": 3}) == {}


def test_lengths_are_reported_in_tokens(tmp_path: Path) -> None:
    found = report(survey(tmp_path / "rows.jsonl", [("a " * n, "xy"[n % 2]) for n in range(1, 102)]))
    assert found.tokens == {0.0: 1, 0.05: 6, 0.25: 26, 0.5: 51, 0.75: 76, 0.95: 96, 1.0: 101}


# The command


def test_check_prints_counts_lengths_scripts_and_findings(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [*GOOD, ("", "x")])
    result = run("check", path)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "13 rows, 2 labels",
        "tokens of a text: shortest 0, 5% 4, 25% 4, median 4, 75% 4, 95% 4, longest 4",
        "scripts: Latin 100.0%",
    ]
    assert ["x", "7", "53.8%"] in [line.split() for line in lines]
    assert lines[-1] == f"! 1 text is empty; fill in or remove the row. See {path}, line 13."
    assert "No problems found." in run("check", write(path, GOOD)).stdout


def test_check_prints_one_json_object(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [*GOOD, ("", "x")])
    result = run("check", path, "--valid", path, "--json")
    found = json.loads(result.stdout)
    assert (found["rows"], found["labels"], found["scripts"]) == (13, {"x": 7, "y": 6}, {"Latin": 1.0})
    assert found["tokens"]["0.5"] == 4
    assert [finding["kind"] for finding in found["findings"]] == ["empty-text", "valid-copies"]
    assert found["findings"][0]["rows"] == [f"{path}, line 13"]


def test_colours_are_left_out_where_nobody_wants_them(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [*GOOD, ("", "x")])
    for wanted in ({}, {"NO_COLOR": "1"}):
        result = CliRunner(env={"FORCE_COLOR": "1", "TERM": "xterm", **wanted}).invoke(main, ["check", str(path)])
        assert ("\x1b[33m" in result.stdout) == (not wanted)


def test_check_reads_standard_input_and_says_what_it_guessed(tmp_path: Path) -> None:
    result = run("check", "-", given="message;class\nmy card;x\nmy parcel;y\n")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "Note: standard input is read with semicolons as delimiters.",
        "Note: standard input has no column 'text'; 'message' is read as the text.",
        "Note: standard input has no column 'label'; 'class' is read as the label.",
    ]
    assert run("check", "-", "--quiet", given="message;class\nmy card;x\n").stderr == ""


def test_train_warns_of_what_it_finds_before_it_trains_and_quietly_does_not(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [*GOOD, ("", "x")])
    for options in ([], ["--quiet"]):
        result = run("train", path, "--epochs", "1", "--dim", "2", *options)
        assert result.exit_code == 0
        warned = [line for line in result.stderr.splitlines() if line.startswith("Warning: ")]
        assert warned == (
            [] if options else [f"Warning: 1 text is empty; fill in or remove the row. See {path}, line 13."]
        )
    assert result.stderr == ""


def test_of_very_many_labels_the_most_frequent_and_the_rarest_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    lines = [f"text {i} {row},label{i:02}" for i in range(60) for row in range(60 - i)]
    path.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    output = succeed("check", path)
    assert [name for name in (f"label{i:02}" for i in range(60)) if f"\n{name} " in output] == [
        *(f"label{i:02}" for i in range(10)),
        *(f"label{i:02}" for i in range(50, 60)),
    ]
    assert "(40 more: --json has all)" in output
    assert len(json.loads(succeed("check", path, "--json"))["labels"]) == 60


def test_it_is_told_how_many_labels_there_are_but_for_case_and_spaces(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\na,Billing\nb,billing\nc,late  parcel\nd,Late parcel\ne,other\n", encoding="utf-8")
    assert "5 rows, 5 labels (3 that differ by more than case and spaces)\n" in succeed("check", path)


def test_rare_labels_with_a_slip_of_the_fingers_are_found(tmp_path: Path) -> None:
    many = [(f"text {i}", "technical") for i in range(40)]
    found = findings(tmp_path, [*GOOD, *many, ("one", "technicla"), ("two", "tecnical"), ("three", "technical 2")])
    message = found["misspelt-labels"].message
    assert message.startswith("Labels that look misspelt: 'technicla' (1) like 'technical' (40), 'tecnical' (1) like")
    assert found["misspelt-labels"].count == 2
    # Opposites and branches are not slips.
    for name in ("untechnical", "technical > pro", "mechanicals"):
        assert "misspelt-labels" not in findings(tmp_path, [*GOOD, *many, ("one", name)])
    # What has half as many rows is a label.
    others = [(f"more {i}", "technicals") for i in range(20)]
    assert "misspelt-labels" not in findings(tmp_path, [*GOOD, *many, *others])
