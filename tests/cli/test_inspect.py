"""`textcls inspect`: the facts of a model file, and what the model goes by over a file."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import TEXTS
from tests.command_line import fail, read_rows, run, succeed, write_rows
from tests.explanations import explained
from textcls import Classifier, compare_groups
from textcls.explain.global_explanation.explainer import GlobalExplainer


def test_inspect_prints_what_a_person_wants_to_know(model_path: Path, classifier: Classifier) -> None:
    output = succeed("inspect", model_path)
    info = classifier.info
    facts = {line.split("  ")[0]: line for line in output.splitlines()}
    assert f"{model_path}, {model_path.stat().st_size / 1e6:.2f} MB, format 1" in facts["file"]
    assert ", ".join(info.labels) in facts["7 labels"]
    assert "text -> label" in facts["columns"]
    assert "150 rows, 33 epochs" in facts["trained on"]
    assert (
        f"{info.training['held_out_rows']} rows, accuracy {info.training['held_out_accuracy']:.2%}" in facts["held out"]
    )
    assert f"{info.temperature:.3f}" in facts["temperature"]
    assert "never abstains" in facts["threshold"]
    assert "first 64 tokens of a text: words, bigrams, character n-grams of 3 and 5" in facts["reads"]
    assert {"data", "seed", "network", "made with"}.isdisjoint(facts)


def test_inspect_prints_on_request_how_the_model_was_made(model_path: Path, classifier: Classifier) -> None:
    facts = {line.split("  ")[0]: line for line in succeed("inspect", model_path, "--verbose").splitlines()}
    assert f"sha256 {classifier.info.training['data_sha256'][:12]}" in facts["data"]
    assert facts["seed"].split() == ["seed", "0"]
    assert "mixing none" in facts["network"]
    assert "torch" in facts["made with"]


def test_inspect_prints_one_json_object_of_the_metadata(model_path: Path, classifier: Classifier) -> None:
    output = succeed("inspect", model_path, "--json")
    assert output.count("\n") == 1
    assert json.loads(output) == json.loads(classifier.info.to_metadata()["textcls"])


def test_inspect_shows_what_speaks_for_each_label_over_a_file(
    model_path: Path, classifier: Classifier, sample_path: Path
) -> None:
    rows = read_rows(sample_path)
    explainer = GlobalExplainer(classifier.labels)
    for row, answer in zip(rows, classifier.predict([row["text"] for row in rows], explain=True), strict=True):
        explainer.add(explained(answer), row["label"])
    report = explainer.summary(3)
    printed = json.loads(succeed("inspect", model_path, "--evidence", sample_path, "--top", "3", "--json"))
    audit = printed.pop("audit")
    assert (audit["shortcuts"], audit["texts"], audit["labels_from"]) == ([], 875, "file")
    assert printed == json.loads(json.dumps({k: v for k, v in report.as_json().items() if k != "audit"}))
    output = succeed("inspect", model_path, "--evidence", sample_path, "--top", "3")
    assert output.startswith(f"875 texts, {report.tokens:,} tokens, {report.right / 875:.2%} answered right.\n")
    for label in report.labels:
        assert f"{label.label}   {label.answers:,} answers" in output
        for term in (*label.words_for, *label.pairs_against):
            assert re.search(rf"{re.escape(term.text)} +{re.escape(f'{term.evidence:+,.1f}')} ", output)


def test_inspect_tells_of_the_labels_asked_for(model_path: Path, table: Path) -> None:
    every = json.loads(succeed("inspect", model_path, "--evidence", table, "--json"))
    asked = ["--label", "sales", "--label", "billing", "--top", "10"]
    found = json.loads(succeed("inspect", model_path, "--evidence", table, "--json", *asked))
    by_name = {label["label"]: label for label in every["labels"]}
    assert found["labels"] == [by_name["sales"], by_name["billing"]]
    assert found["texts"] == every["texts"]
    output = succeed("inspect", model_path, "--evidence", table, *asked)
    assert re.findall(r"^(\w+)   [\d,]+ answers$", output, re.MULTILINE) == ["sales", "billing"]
    message = fail(2, "inspect", model_path, "--evidence", table.parent / "no.csv", "--label", "Biling")
    assert "The model has no label 'Biling' (did you mean 'billing'?)" in message


def test_inspect_reads_texts_without_labels(model_path: Path, table: Path) -> None:
    output = succeed("inspect", model_path, "--evidence", table)
    assert output.startswith(f"{len(TEXTS)} texts, ")
    assert "answered right" not in output
    assert "Shortcuts were not looked for" in output


def test_inspect_writes_what_a_model_goes_by_as_a_page(model_path: Path, table: Path, tmp_path: Path) -> None:
    page = tmp_path / "by.html"
    assert succeed("inspect", model_path, "--evidence", table, "--html", page) == (
        f"{len(TEXTS)} texts, 0 shortcuts -> {page}\n"
    )
    assert "<h2>What model_v1 relies on</h2>" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "options",
    [
        ["--html", "a.html"],
        ["--text-column", "a"],
        ["--label-column", "a"],
        ["--label", "billing"],
        ["--top", "3"],
        ["--encoding", "cp1252"],
        ["--format", "csv"],
        ["--on-error", "skip"],
        ["--no-quotes"],
        ["--delimiter", ","],
    ],
)
def test_options_of_the_evidence_need_a_file_of_texts(model_path: Path, options: list[str]) -> None:
    assert f"{options[0]} needs --evidence with a file of texts." in fail(2, "inspect", model_path, *options)


def test_inspect_reads_texts_as_the_other_commands_do(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_bytes("text;queue\ncaf\u00e9;billing\nmy card;\nrefund;returns\n".encode("cp1252"))
    how = ["--format", "csv", "--encoding", "cp1252", "--json"]
    call: list[str | Path] = ["inspect", model_path, "--evidence", path, *how]
    assert json.loads(succeed(*call))["texts"] == 3
    assert "line 3: the label in column 'queue' is empty" in fail(3, *call, "--label-column", "queue", "--quiet")
    result = run(*call, "--label-column", "queue", "--on-error", "skip")
    found = json.loads(result.stdout)
    assert (found["texts"], found["labelled"]) == (2, 2)
    assert result.stderr.splitlines() == [
        f"Note: {path} is read with semicolons as delimiters.",
        f"Note: Skipped 1 row that cannot be used: {path}, line 3: the label in column 'queue' is empty.",
    ]


def test_inspect_takes_rows_without_a_label_along_if_no_column_was_asked_for(model_path: Path, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "some.csv", [("text", "label"), ("my card", "billing"), ("refund", "")])
    found = json.loads(succeed("inspect", model_path, "--evidence", path, "--json"))
    assert (found["texts"], found["labelled"]) == (2, 1)


def test_inspect_names_the_column_that_a_table_lacks(model_path: Path, table: Path, tmp_path: Path) -> None:
    assert "has no column 'queue'" in fail(3, "inspect", model_path, "--evidence", table, "--label-column", "queue")
    other = write_rows(tmp_path / "other.csv", [("stuff",), ("hi",)])
    assert "has no column 'text'" in fail(3, "inspect", model_path, "--evidence", other)


def test_inspect_compares_two_files_as_table_numbers_json_and_page(
    model_path: Path, classifier: Classifier, sample_path: Path, tmp_path: Path
) -> None:
    rows = read_rows(sample_path)
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    write_rows(first, [("text",), *((f"refund: {row['text']}",) for row in rows[:200])])
    write_rows(second, [("text",), *((row["text"],) for row in rows[200:400])])
    asked = ("inspect", model_path, "--evidence", first, "--against", second)
    found = compare_groups(classifier, *([row["text"] for row in read_rows(path)] for path in (first, second)), top=10)
    assert json.loads(succeed(*asked, "--json")) == json.loads(json.dumps(found.as_json()))
    overview = succeed(*asked)
    assert "First: first.csv, 200 texts. Second: second.csv, 200 texts." in overview
    (billing,) = (line for line in overview.splitlines() if line.startswith("billing"))
    assert "refund" in billing
    (numbers,) = (
        line for line in succeed(*asked, "--label", "billing", "--top", "3").splitlines() if "refund  " in line
    )
    assert "100.0%" in numbers
    page = tmp_path / "page.html"
    assert succeed(*asked, "--html", page).endswith(f"-> {page}\n")
    assert "Adds more in the first" in page.read_text()


def test_inspect_compares_groups_with_texts_to_compare_and_one_thing_at_a_time(
    model_path: Path, sample_path: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("text,label\n")
    of = ("inspect", model_path, "--evidence", sample_path)
    assert "empty.csv has no rows." in fail(3, *of, "--against", empty)
    assert "--against needs --evidence" in fail(2, "inspect", model_path, "--against", empty)
    assert "--against and --exchange cannot be combined" in fail(2, *of, "--against", empty, "--exchange", empty)
    assert "only once" in fail(2, "inspect", model_path, "--evidence", "-", "--against", "-")
    assert "is also the input" in fail(3, *of, "--against", empty, "--html", empty)


def test_evidence_of_no_rows_is_refused(model_path: Path, tmp_path: Path) -> None:
    for head in (["text"], ["text", "label"]):
        empty = write_rows(tmp_path / "empty.csv", [head])
        assert "empty.csv has no rows." in fail(3, "inspect", model_path, "--evidence", empty)


def test_what_a_whole_table_cannot_have_is_refused(model_path: Path, sample_path: Path, tmp_path: Path) -> None:
    call = ("inspect", model_path, "--evidence", sample_path)
    (tmp_path / "pairs.txt").write_text("card, bill\n")
    for option in (("--html", tmp_path / "x.html"), ("--json",), ("--label", "billing"), ("--top", "3")):
        assert "leave --" in fail(2, *call, "--lexicon", tmp_path / "t.csv", *option)
    for option in (("--label", "billing"), ("--top", "3")):
        assert "leave --" in fail(2, *call, "--exchange", tmp_path / "pairs.txt", *option)
    assert not (tmp_path / "t.csv").exists()
