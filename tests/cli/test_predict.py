"""`textcls predict`: columns and rows kept, answers added."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import TEXTS
from tests.command_line import fail, read_rows, run, succeed, write_rows
from tests.explanations import explained
from textcls import Classifier


def test_predict_keeps_columns_and_rows_and_adds_the_answers(
    model_path: Path, classifier: Classifier, table: Path, tmp_path: Path
) -> None:
    output = tmp_path / "answers.csv"
    assert succeed("predict", model_path, table, "--output", output) == f"{len(TEXTS)} rows -> {output}\n"
    given, found = read_rows(table), read_rows(output)
    assert list(found[0]) == ["id", "text", "note", "predicted_label", "score", "decision"]
    assert [{name: row[name] for name in given[0]} for row in found] == given
    for row, answer in zip(found, classifier.predict(TEXTS), strict=True):
        assert (row["predicted_label"], row["decision"]) == (answer.label, "accept")
        assert float(row["score"]) == pytest.approx(answer.score, abs=1e-6)


def test_predict_keeps_the_order_beyond_one_chunk(
    model_path: Path, classifier: Classifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("textcls.jobs.batch.files.ROWS", 4)
    texts = ["refund " * (i % 5) + f"parcel {i}" for i in range(11)]
    data = write_rows(tmp_path / "new.csv", [("text",), *([text] for text in texts)])
    assert "11 rows" in succeed("predict", model_path, data, "-o", tmp_path / "out.csv")
    found = read_rows(tmp_path / "out.csv")
    assert [row["text"] for row in found] == texts
    assert [row["predicted_label"] for row in found] == [answer.label for answer in classifier.predict(texts)]


def test_predict_explains_the_winning_label_as_json(
    model_path: Path, classifier: Classifier, table: Path, tmp_path: Path
) -> None:
    succeed("predict", model_path, table, "--output", tmp_path / "out.csv", "--explain")
    found = read_rows(tmp_path / "out.csv")
    assert list(found[0])[-1] == "explanation"
    for row, answer in zip(found, classifier.predict(TEXTS, explain=True), strict=True):
        tokens = json.loads(row["explanation"])
        assert [text for text, _ in tokens] == [token.text for token in explained(answer).tokens]
        added = [token.contributions[answer.label] for token in explained(answer).tokens]
        assert [share for _, share in tokens] == pytest.approx(added, abs=1e-4)


def test_predict_abstains_below_the_threshold(
    model_path: Path, classifier: Classifier, table: Path, tmp_path: Path
) -> None:
    threshold = sorted(answer.score for answer in classifier.predict(TEXTS))[len(TEXTS) // 2]
    succeed("predict", model_path, table, "--output", tmp_path / "out.csv", "--threshold", str(threshold))
    decisions = [answer.decision for answer in classifier.predict(TEXTS, threshold=threshold)]
    assert set(decisions) == {"accept", "abstain"}
    assert [row["decision"] for row in read_rows(tmp_path / "out.csv")] == decisions


def test_predict_joins_the_columns_it_is_reported(model_path: Path, classifier: Classifier, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "new.csv", [("title", "body"), ("my card", "charged twice")])
    succeed("predict", model_path, data, "-o", tmp_path / "out.csv", "--text-column", "title", "--text-column", "body")
    score = float(read_rows(tmp_path / "out.csv")[0]["score"])
    assert score == pytest.approx(classifier.predict("my card\ncharged twice").score, abs=1e-6)


def test_predict_of_a_header_alone_writes_a_header_alone(model_path: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "new.csv", [("id", "text")])
    assert "0 rows" in succeed("predict", model_path, data, "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines() == ["id,text,predicted_label,score,decision"]


def test_predict_replaces_an_older_output(model_path: Path, table: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    output.write_text("older")
    succeed("predict", model_path, table, "--output", output)
    assert len(read_rows(output)) == len(TEXTS)


def test_predict_never_writes_over_its_input(model_path: Path, table: Path, tmp_path: Path) -> None:
    before = table.read_bytes()
    (tmp_path / "link.csv").symlink_to(table)
    for output in (table, tmp_path / "link.csv", tmp_path / "." / "new.csv"):
        assert "is also the input; choose another name." in fail(3, "predict", model_path, table, "--output", output)
    assert table.read_bytes() == before


def test_predict_never_writes_over_its_model(model_path: Path, table: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(model_path.read_bytes())
    assert str(model) in fail(3, "predict", model, table, "--output", model)
    assert model.read_bytes() == model_path.read_bytes()


@pytest.mark.parametrize(("taken", "options"), [("score", []), ("decision", []), ("explanation", ["--explain"])])
def test_predict_refuses_a_column_named_as_an_answer(
    model_path: Path, tmp_path: Path, taken: str, options: list[str]
) -> None:
    data = write_rows(tmp_path / "new.csv", [("text", taken), ("a", "1")])
    message = fail(3, "predict", model_path, data, "--output", tmp_path / "out.csv", *options)
    assert f"already has a column {taken!r}, where the answers go; give theirs other names, as with --prefix" in message
    assert list(tmp_path.iterdir()) == [data]
    succeed("predict", model_path, data, "--output", tmp_path / "out.csv", "--prefix", "answer_", *options)
    row = read_rows(tmp_path / "out.csv")[0]
    assert row[taken] == "1"
    assert {"answer_predicted_label", "answer_score", "answer_decision"} <= set(row)


def test_predict_keeps_a_column_called_explanation_unless_explanations_are_asked_for(
    model_path: Path, tmp_path: Path
) -> None:
    data = write_rows(tmp_path / "new.csv", [("text", "explanation"), ("a", "mine")])
    succeed("predict", model_path, data, "--output", tmp_path / "out.csv")
    assert read_rows(tmp_path / "out.csv")[0]["explanation"] == "mine"


@pytest.mark.parametrize("old", [None, "old answers"], ids=["fresh", "over-old"])
def test_predict_leaves_nothing_half_written_when_a_row_in_the_middle_is_wrong(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str | None
) -> None:
    monkeypatch.setattr("textcls.jobs.batch.files.ROWS", 2)
    data = tmp_path / "new.csv"
    data.write_text("id,text\n1,a\n2,b\n3,c\n4\n5,e\n")
    output = tmp_path / "out.csv"
    if old is not None:
        output.write_text(old)
    assert f"{data}, line 5: 1 field where the header has 2" in fail(3, "predict", model_path, data, "-o", output)
    assert (output.read_text() if output.exists() else None) == old
    assert {path.name for path in tmp_path.iterdir()} <= {"new.csv", "out.csv"}


def test_predict_names_a_missing_input_even_if_the_output_is_there(model_path: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    output.write_text("old answers")
    message = fail(3, "predict", model_path, tmp_path / "no.csv", "--output", output)
    assert f"There is no file {tmp_path / 'no.csv'}." in message
    assert output.read_text() == "old answers"


def test_an_output_folder_that_is_missing_is_named(model_path: Path, table: Path, tmp_path: Path) -> None:
    message = fail(6, "predict", model_path, table, "--output", tmp_path / "no" / "out.csv")
    assert f"{tmp_path / 'no'} does not exist" in message
    assert list(tmp_path.iterdir()) == [table]


@pytest.mark.parametrize("threshold", ["1.5", "-0.1", "nan", "high"])
def test_a_threshold_that_is_no_probability_is_a_wrong_call(
    model_path: Path, table: Path, tmp_path: Path, threshold: str
) -> None:
    result = run("predict", model_path, table, "--output", tmp_path / "out.csv", "--threshold", threshold)
    assert result.exit_code == 2
    assert threshold in result.stderr
    assert list(tmp_path.iterdir()) == [table]


def test_lines_without_a_text_are_passed_over_and_told(model_path: Path, tmp_path: Path) -> None:
    for name, content in (("a.txt", "hello\n\nfoo\n"), ("b.csv", 'text,x\nhello,1\n"",""\nfoo,2\n')):
        (tmp_path / name).write_text(content)
        told = run("predict", model_path, tmp_path / name, "-o", tmp_path / f"{name}.csv")
        assert "2 rows -> " in told.stdout, told.output
        assert "1 empty row is passed over." in told.stderr
