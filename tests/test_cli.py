"""The command line: what each command prints and writes, its exit codes, and that it gives the numbers of the API."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style

import textcls
import textcls_training.run
from textcls import Classifier, Explanation, InputError, Prediction
from textcls.cli import COMMANDS, main, render
from textcls.evidence import EvidenceCounter
from textcls_training import cli as training_cli
from textcls_training.choices import MIXINGS
from textcls_training.config import TrainConfig, resolve
from textcls_training.mixing import MIXERS
from textcls_training.model import ModelConfig
from textcls_training.run import Source

TEXTS = (
    "My card was charged TWICE!!",
    "",
    "where is my parcel, ordered \u201c3 weeks\u201d ago \U0001f621",
    "two\nlines, one comma",
    "\u6ce8\u6587\u306e\u30ad\u30e3\u30f3\u30bb\u30eb",
    "the lamp keeps flickering " * 30,
    "No puedo iniciar sesi\u00f3n",
)
SCRIPT = Path(sys.prefix) / "bin" / "textcls"
ROWS = 120


def run(*args: str | Path) -> Result:
    """Call the command line in this process, at a width at which nothing wraps."""
    return CliRunner().invoke(main, [str(arg) for arg in args], env={"COLUMNS": "200"}, catch_exceptions=False)


def succeed(*args: str | Path) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def fail(code: int, *args: str | Path) -> str:
    """The one line on standard error with which a call is refused; standard output stays empty."""
    result = run(*args)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def write_rows(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def explained(prediction: Prediction) -> Explanation:
    assert prediction.explanation is not None
    return prediction.explanation


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table whose columns stand in an odd order, with rows of all lengths."""
    rows = [(f"id{i}", text, f"note {i}, 'quoted'") for i, text in enumerate(TEXTS)]
    return write_rows(tmp_path / "new.csv", [("id", "text", "note"), *rows])


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        ("train", "argument 'DATA...'"),
        ("explain m.onnx", "argument 'TEXT'"),
        ("web m.onnx", "option '-o' / '--output'"),
    ],
)
def test_what_is_missing_is_named(words: str, missing: str, model_path: Path) -> None:
    words = words.replace("m.onnx", str(model_path))
    result = run(*words.split())
    assert result.exit_code == 2
    assert f"Missing {missing}" in result.stderr


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "textcls", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("textcls, version ")


# train


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, sample_path: Path) -> tuple[str, Path]:
    """What training on some rows of the sample printed, and the model it wrote."""
    folder = tmp_path_factory.mktemp("trained")
    rows = [list(row.values()) for row in read_rows(sample_path)[:ROWS]]
    data = write_rows(folder / "tickets.csv", [("text", "label"), *rows])
    result = run("train", data, "--output", folder / "tickets.onnx", "--dim", "8", "--epochs", "2", "--seed", "3")
    assert result.exit_code == 0, result.output
    return result.stderr + result.stdout, folder / "tickets.onnx"


def test_train_prints_plain_progress_lines_when_not_in_a_terminal(trained: tuple[str, Path]) -> None:
    output, _ = trained
    number = r"\d+\.\d{3}"
    assert re.search(rf"^choosing.*: epoch 1, loss {number}, validation \d+\.\d\d%$", output, re.MULTILINE)
    assert re.search(r"^choosing.*: \d+ rows over all epochs$", output, re.MULTILINE)
    assert "\x1b" not in output
    assert "\r" not in output


def test_train_sums_up_what_it_found_and_names_the_next_command(trained: tuple[str, Path]) -> None:
    output, model = trained
    lines = output.splitlines()
    assert f"Trained on {ROWS} rows, 7 labels, 2 epochs." in lines
    assert re.search(
        r"^\w.*: \d+ rows   accuracy [\d.]+%   macro-F1 [\d.]+%   cross-entropy [\d.]+ \(perplexity [\d.]+\)"
        r"   ECE [\d.]+ \(before calibration [\d.]+\)$",
        output,
        re.MULTILINE,
    )
    head = next(i for i, line in enumerate(lines) if line.split() == ["label", "precision", "recall", "F1", "rows"])
    table = [line.split() for line in lines[head + 1 : head + 8]]
    assert [row[0] for row in table] == list(Classifier.load(model).labels)
    held_out = re.search(r"(\d+) rows   accuracy", output)
    assert held_out is not None
    assert sum(int(row[-1]) for row in table) == int(held_out[1])
    size = f"{model.stat().st_size / 1e6:.2f} MB"
    assert lines[-1] == f"{model}, {size}. Next: textcls evaluate {model} heldout.csv"


def test_train_writes_one_file_that_answers_and_nothing_else(trained: tuple[str, Path]) -> None:
    _, model = trained
    assert {path.name for path in model.parent.iterdir()} == {"tickets.csv", "tickets.onnx"}
    report = json.loads(succeed("evaluate", model, model.parent / "tickets.csv", "--json"))
    assert report["rows"] == ROWS
    assert report["accuracy"] > 0.9
    info = Classifier.load(model).info
    assert (info.training["rows"], info.training["seed"], info.training["epochs"]) == (ROWS, 3, 2)
    assert info.model["dim"] == 8


def test_train_prints_its_report_as_json_and_the_seconds_of_its_steps(tmp_path: Path, sample_path: Path) -> None:
    data = write_rows(tmp_path / "t.csv", [("text", "label"), *(list(r.values()) for r in read_rows(sample_path)[:60])])
    result = run("train", data, "--dim", "2", "--epochs", "1", "--ngrams", "none", "--json", "--verbose")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    report = json.loads(result.stdout)
    assert (report["output"], report["rows"], report["epochs"]) == (str(tmp_path / "t.onnx"), 60, 1)
    assert report["held_out"]["rows"] == report["held_out_rows"]
    assert report["file_bytes"] == (tmp_path / "t.onnx").stat().st_size
    assert report["interrupted"] is False
    steps = ["reading", "checking", "loading", "preparing", "training", "saving"]
    assert list(report["seconds"]) == steps
    told = ", ".join(rf"{step} \d+\.\d" for step in steps)
    assert re.search(rf"^Seconds: {told}, \d+\.\d in all\.$", result.stderr, re.MULTILINE)


class StoppedError(InputError):
    """Raised in the place of training, once its arguments are known."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What training was called with, without training."""
    found: dict[str, Any] = {}

    def train(source: Source, output: Path, config: TrainConfig, *, valid: Source | None, **others: object) -> None:
        found.update(source=source, output=output, config=config, valid=valid)
        raise StoppedError("stopped.")

    monkeypatch.setattr(textcls_training.run, "train", train)
    return found


def test_train_without_options_leaves_everything_to_the_defaults(tmp_path: Path, asked: dict[str, Any]) -> None:
    data = write_rows(tmp_path / "tickets.csv", [("text", "label"), ("a", "x"), ("b", "y")])
    fail(3, "train", data, "--quiet")
    assert asked["output"] == tmp_path / "tickets.onnx"
    assert asked["source"] == Source(texts=["a", "b"], labels=["x", "y"])
    assert resolve(asked["config"], ["a", "b"], 2, 2) == resolve(TrainConfig(), ["a", "b"], 2, 2)
    assert asked["valid"] is None


def test_every_option_of_train_reaches_the_training(tmp_path: Path, asked: dict[str, Any]) -> None:
    data = write_rows(tmp_path / "tickets.csv", [("title", "body", "queue"), ("a", "b", "x"), ("c", "d", "y")])
    valid = write_rows(tmp_path / "valid.csv", [("title", "body", "queue"), ("e", "f", "x")])
    options = "--text-column title --text-column body --label-column queue --mixing gmlp --attention softmax"
    options += " --values mixed --ngrams 2,4 --no-bigrams --dim 5 --epochs 7 --max-tokens 11"
    options += " --class-weight balanced --size tiny --seed 13 --device cpu"
    fail(3, "train", data, "--output", tmp_path / "out.onnx", "--valid", valid, "--quiet", *options.split())
    columns: dict[str, Any] = {"text_columns": ("title", "body"), "label_column": "queue"}
    assert asked["output"] == tmp_path / "out.onnx"
    assert asked["source"] == Source(texts=["a\nb", "c\nd"], labels=["x", "y"], **columns)
    assert asked["valid"] == Source(texts=["e\nf"], labels=["x"], **columns)
    config = asked["config"]
    model, features = config.model, resolve(config, ["a"], 1, 2).features
    assert (model.mixing, model.attention, model.values, model.dim) == ("gmlp", "softmax", "mixed", 5)
    assert (features.ngram_sizes, features.bigrams) == ((2, 4), False)
    assert (config.epochs, config.max_tokens, config.class_weight) == (7, 11, "balanced")
    assert config.size == "tiny"
    assert (config.seed, config.device) == (13, "cpu")


def test_the_choices_and_defaults_of_train_are_those_of_its_configuration() -> None:
    model, config = ModelConfig(), TrainConfig()
    assert tuple(MIXERS) == MIXINGS
    defaults = {option.name: option.default for option in training_cli.train.params}
    for name in ("mixing", "attention", "embedding", "values"):
        assert defaults[name] == getattr(model, name)
    for name in ("bigrams", "max_tokens", "class_weight", "rationale_weight", "size", "seed", "device"):
        assert defaults[name] == getattr(config, name)


@pytest.mark.parametrize("call", ["--help", "no.csv", "rows.csv --text-column txet"])
def test_train_says_what_is_wrong_before_it_imports_pytorch(tmp_path: Path, call: str) -> None:
    write_rows(tmp_path / "rows.csv", [("text", "label"), ("a", "x")])
    code = """
import sys
from textcls.cli import main
try:
    main()
finally:
    heavy = {"torch", "numba", "scipy", "sklearn", "onnx"} & {name.partition(".")[0] for name in sys.modules}
    print(sorted(heavy), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "train", *call.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == (0 if call == "--help" else 3)
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize("call", ["--help", "ablate --help", "explain-benchmark --help", ""])
def test_help_and_completion_do_not_wait_for_pytorch(tmp_path: Path, call: str) -> None:
    code = """
import sys
from textcls.cli import main
try:
    main(prog_name="textcls")
finally:
    slow = {"torch", "numba", "scipy", "sklearn", "onnx", "matplotlib"}
    print(sorted(slow & {name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""
    completing = {"_TEXTCLS_COMPLETE": "bash_complete", "COMP_WORDS": "textcls ", "COMP_CWORD": "1"}
    environment = os.environ | ({} if call else completing)
    done = subprocess.run(
        [sys.executable, "-c", code, *call.split()], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "explain-benchmark" in done.stdout or "ablate" in done.stdout
    assert done.stderr.splitlines()[-1] == "[]"


def test_train_reads_several_files_and_standard_input(
    tmp_path: Path, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_rows(tmp_path / "tickets.csv", [("text", "label"), ("a", "x")])
    (tmp_path / "more.txt").write_text("__label__y b\n")
    monkeypatch.chdir(tmp_path)
    arguments = ["train", str(data), "more.txt", "-", "--quiet"]
    result = CliRunner().invoke(main, arguments, input='{"text": "c", "label": "x"}\n')
    assert result.exit_code == 3
    assert (asked["source"].texts, asked["source"].labels) == (["a", "b", "c"], ["x", "y", "x"])
    assert asked["output"] == tmp_path / "tickets.onnx"


def test_the_model_is_named_after_the_data_without_gz(tmp_path: Path, asked: dict[str, Any]) -> None:
    (tmp_path / "tickets.csv.gz").write_bytes(gzip.compress(b"text,label\na,x\nb,y\n"))
    fail(3, "train", tmp_path / "tickets.csv.gz", "--quiet")
    assert asked["output"] == tmp_path / "tickets.onnx"


def test_rows_that_cannot_be_trained_on_are_skipped_if_that_is_asked_for(tmp_path: Path, asked: dict[str, Any]) -> None:
    data, valid = tmp_path / "a.txt", tmp_path / "b.txt"
    data.write_text("__label__x a\n__label__x __label__y b\n__label__y c\n")
    valid.write_text("__label__z d\n__label__y e\n")
    message = fail(3, "train", data, "--valid", valid)
    assert f"{data}, line 2: 2 labels, 'x' and 'y'" in message
    result = run("train", data, "--valid", valid, "--on-error", "skip", "--quiet")
    assert (asked["source"].texts, asked["valid"].texts) == (["a", "c"], ["e"])
    skipped = result.stderr.splitlines()[0]
    assert skipped.startswith("Note: Skipped 2 rows that cannot be used: ")
    assert f"{valid}, line 1: validation rows have the label 'z', which no training row has" in skipped


def test_train_needs_two_labels(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "one.csv", [("text", "label"), ("a", "x"), ("b", "x")])
    assert "have only the label 'x'; a classifier needs at least two." in fail(3, "train", data, "--quiet")
    assert list(tmp_path.iterdir()) == [data]


def test_train_refuses_a_validation_label_that_no_training_row_has(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "a.csv", [("text", "label"), ("a", "x"), ("b", "y")])
    valid = write_rows(tmp_path / "b.csv", [("text", "label"), ("a", "z")])
    assert "validation rows have the label 'z'" in fail(3, "train", data, "--valid", valid)
    assert sorted(tmp_path.iterdir()) == [data, valid]


def test_train_says_before_training_that_the_output_folder_is_missing(tmp_path: Path, sample_path: Path) -> None:
    message = fail(6, "train", sample_path, "--output", tmp_path / "no" / "out.onnx")
    assert f"{tmp_path / 'no'} does not exist" in message
    assert list(tmp_path.iterdir()) == []


def test_train_never_writes_over_its_own_rows(tmp_path: Path, sample_path: Path) -> None:
    rows = [list(row.values()) for row in read_rows(sample_path)[:40]]
    data = write_rows(tmp_path / "tickets.csv", [("text", "label"), *rows])
    valid = write_rows(tmp_path / "valid.csv", [("text", "label"), *rows])
    before = data.read_bytes()
    for output in (data, valid):
        result = run("train", data, "--valid", valid, "--output", output, "--epochs", "1", "--dim", "2")
        assert (result.exit_code, data.read_bytes(), valid.read_bytes()) == (3, before, before)
        assert str(output) in result.stderr


def test_train_says_that_there_is_no_gpu(tmp_path: Path, sample_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    message = fail(6, "train", sample_path, "--output", tmp_path / "out.onnx", "--device", "cuda")
    assert "cuda" in message.lower()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ngrams", ["3-5", "three"])
def test_sizes_of_n_grams_that_cannot_be_are_a_wrong_call(tmp_path: Path, ngrams: str) -> None:
    result = run("train", write_rows(tmp_path / "a.csv", [("text", "label")]), "--ngrams", ngrams)
    assert result.exit_code == 2
    assert repr(ngrams) in result.stderr


def test_train_takes_as_little_as_two_rows_of_which_one_has_no_tokens(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "two.csv", [("text", "label"), ("good", "x"), (" ", "y")])
    output = succeed("train", data, "--epochs", "1", "--dim", "2")
    assert "Trained on 2 rows, 2 labels" in output
    assert "Not calibrated" in output
    assert Classifier.load(tmp_path / "two.onnx").labels == ("x", "y")


# evaluate


@pytest.fixture
def heldout(tmp_path: Path, sample_path: Path) -> Path:
    """Twenty labelled rows, two of a label that the small model does not know."""
    rows = [list(row.values()) for row in read_rows(sample_path)[-18:]]
    return write_rows(tmp_path / "heldout.csv", [("text", "label"), *rows, ("a", "gossip"), ("b", "gossip")])


def test_evaluate_prints_one_json_object_with_the_numbers_of_the_api(
    model_path: Path, classifier: Classifier, heldout: Path
) -> None:
    output = succeed("evaluate", model_path, heldout, "--json")
    assert output.count("\n") == 1
    report = json.loads(output)
    assert set(report) == {
        "rows", "accuracy", "macro_f1", "ece", "cross_entropy", "perplexity", "labels", "confusion",
    }  # fmt: skip
    assert (report["cross_entropy"], report["perplexity"]) == (None, None)  # of an unknown label it is infinite
    rows = read_rows(heldout)
    right = [a.label == r["label"] for a, r in zip(classifier.predict([r["text"] for r in rows]), rows, strict=True)]
    assert report["rows"] == 20
    assert report["accuracy"] == pytest.approx(sum(right) / 20)
    assert 0 <= report["ece"] <= 1
    assert 0 < report["macro_f1"] < 1
    assert [label["label"] for label in report["labels"]] == [*classifier.labels, "gossip"]
    assert np.sum(report["confusion"]) == 20


def test_evaluate_prints_scores_a_table_of_labels_and_the_confusions(model_path: Path, heldout: Path) -> None:
    report = json.loads(succeed("evaluate", model_path, heldout, "--json"))
    output = succeed("evaluate", model_path, heldout)
    assert f"20 rows   accuracy {report['accuracy']:.2%}   macro-F1 {report['macro_f1']:.2%}" in output
    assert f"ECE {report['ece']:.3f}" in output
    for label in report["labels"]:
        shown = [label["label"], *(f"{label[name]:.3f}" for name in ("precision", "recall", "f1")), str(label["rows"])]
        assert shown in [line.split() for line in output.splitlines()]
    assert "right \\ answered" in output
    assert "The model does not know 'gossip': those rows count as errors." in output


def test_evaluate_reads_several_files_guesses_columns_and_skips_bad_rows(
    model_path: Path, heldout: Path, tmp_path: Path
) -> None:
    (tmp_path / "more.jsonl").write_text('{"text": "refund", "label": "returns"}\n{"text": "parcel"}\n[]\n')
    assert "line 2: the label in column 'label' is empty" in fail(3, "evaluate", model_path, tmp_path / "more.jsonl")
    result = run("evaluate", model_path, heldout, tmp_path / "more.jsonl", "--json", "--on-error", "skip")
    assert json.loads(result.stdout)["rows"] == 21
    assert result.stderr.startswith("Note: Skipped 2 rows that cannot be used: ")
    data = write_rows(tmp_path / "other.csv", [("message", "intent"), ("refund", "returns")])
    result = run("evaluate", model_path, data, "--json")
    assert json.loads(result.stdout)["rows"] == 1
    assert result.stderr.splitlines() == [
        f"Note: {data} has no column 'text'; 'message' is read as the text.",
        f"Note: {data} has no column 'label'; 'intent' is read as the label.",
    ]


def test_evaluate_reads_the_columns_it_is_told(model_path: Path, classifier: Classifier, tmp_path: Path) -> None:
    joined = classifier.predict("refund\nparcel").label
    data = write_rows(tmp_path / "data.csv", [("a", "b", "queue"), ("refund", "parcel", joined)])
    columns = ("--text-column", "a", "--text-column", "b", "--label-column", "queue")
    assert json.loads(succeed("evaluate", model_path, data, "--json", *columns))["accuracy"] == 1


# predict


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
    monkeypatch.setattr("textcls.bulk.ROWS", 4)
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


def test_predict_joins_the_columns_it_is_told(model_path: Path, classifier: Classifier, tmp_path: Path) -> None:
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
        assert "is the input; choose another name." in fail(3, "predict", model_path, table, "--output", output)
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
    assert f"already has a column {taken!r}; rename it" in message
    assert list(tmp_path.iterdir()) == [data]


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
    monkeypatch.setattr("textcls.bulk.ROWS", 2)
    data = tmp_path / "new.csv"
    data.write_text("id,text\n1,a\n2,b\n3,c\n4\n5,e\n")
    output = tmp_path / "out.csv"
    if old is not None:
        output.write_text(old)
    assert f"{data}, line 5: 1 fields where the header has 2" in fail(3, "predict", model_path, data, "-o", output)
    assert (output.read_text() if output.exists() else None) == old
    assert {path.name for path in tmp_path.iterdir()} <= {"new.csv", "out.csv"}


def test_predict_names_a_missing_input_even_if_the_output_is_there(model_path: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    output.write_text("old answers")
    message = fail(3, "predict", model_path, tmp_path / "no.csv", "--output", output)
    assert f"There is no file {tmp_path / 'no.csv'}." in message
    assert output.read_text() == "old answers"


# explain


def test_explain_shows_the_text_its_labels_and_each_token(model_path: Path, classifier: Classifier) -> None:
    output = succeed("explain", model_path, TEXTS[0])
    answer = classifier.predict(TEXTS[0], explain=True)
    first, second, third = answer.top(3)
    lines = output.splitlines()
    assert lines[0] == TEXTS[0]
    assert lines[2].split("   ") == [f"{s.label} {s.score:.1%}" for s in (first, second, third)]
    rows = [line.replace(" (unknown)", "").split() for line in lines[4:]]
    assert rows[0] == ["token", "attention", "evidence", first.label, second.label]
    explanation = explained(answer)
    count = len(explanation.tokens)
    for row, token, evidence in zip(rows[1 : 1 + count], explanation.tokens, explanation.evidence(), strict=True):
        added = [f"{token.contributions[s.label]:+.3f}" for s in (first, second)]
        assert row == [token.text, f"{token.attention:.3f}", f"{evidence:+.3f}", *added]
    view = explanation.view()
    bias, logit = rows[1 + count : 3 + count]
    assert bias == ["(bias)", f"{view.bias:+.3f}", *(f"{explanation.bias[s.label]:+.3f}" for s in (first, second))]
    logits = [f"{explanation.logits[s.label]:+.3f}" for s in (first, second)]
    assert logit == ["=", "logit", f"{view.total:+.3f}", *logits]
    assert lines[-1].startswith("Checked: bias + tokens = logit, ")
    assert "\x1b" not in output


def test_explain_says_that_a_text_was_cut(model_path: Path) -> None:
    assert "longer than the model reads" in succeed("explain", model_path, TEXTS[5])
    assert "longer than the model reads" not in succeed("explain", model_path, TEXTS[0])


def test_explain_prints_one_json_object_that_adds_up(model_path: Path, classifier: Classifier) -> None:
    output = succeed("explain", model_path, TEXTS[2], "--json")
    assert output.count("\n") == 1
    found = json.loads(output)
    answer = classifier.predict(TEXTS[2], explain=True)
    assert (found["label"], found["score"]) == (answer.label, pytest.approx(answer.score, abs=1e-6))
    assert [TEXTS[2][token["start"] : token["end"]] for token in found["tokens"]] == [
        token.text for token in explained(answer).tokens
    ]
    for label, logit in explained(answer).logits.items():
        parts = found["bias"][label] + sum(token["contributions"][label] for token in found["tokens"])
        assert parts == pytest.approx(logit, abs=1e-4)


def test_explain_takes_an_empty_text(model_path: Path) -> None:
    assert "(bias)" in succeed("explain", model_path, "")
    assert json.loads(succeed("explain", model_path, "", "--json"))["tokens"] == []


def made_up(text: str, *added: float) -> Explanation:
    """An explanation in which the tokens of `text` added so much to label x, and the opposite to label y."""
    parts = np.array([[value, -value] for value in added], np.float32)
    zero = np.zeros(2, np.float32)
    return Explanation(
        text,
        ("x", "y"),
        zero,
        parts[0],
        parts.sum(0),
        np.full(len(added), 1 / len(added), np.float32),
        parts,
        np.ones(len(added), np.bool_),
    )


def colours(explanation: Explanation, label: str) -> dict[str, str]:
    """The coloured parts of the text, as drawn."""
    text = render.coloured_text(explanation, explanation.view(label))
    return {text.plain[span.start : span.end]: str(span.style) for span in text.spans}


def test_tokens_are_coloured_by_sign_and_strength_for_the_label() -> None:
    explanation = made_up("good fair weak bad worst", 2.0, 0.9, 0.1, -0.5, -1.5)
    assert colours(explanation, "x") == {"good": "bold green", "fair": "green", "bad": "red", "worst": "bold red"}
    assert colours(explanation, "y") == {"good": "bold red", "fair": "red", "bad": "green", "worst": "bold green"}
    assert all(Style.parse(style) for style in colours(explanation, "x").values())


def test_words_that_are_unknown_are_underlined_in_the_text_and_marked_in_the_table() -> None:
    explanation = replace(made_up("good fair bad", 2.0, 0.05, -1.0), known_output=np.array([True, False, False]))
    spans = render.coloured_text(explanation, explanation.view()).spans
    assert [(span.start, span.end) for span in spans if span.style == "underline"] == [(5, 9), (10, 13)]
    with (console := Console(width=200, file=io.StringIO())).capture() as printed:
        console.print(render.token_table(explanation, explanation.view(), 50))
    rows = printed.get().splitlines()
    assert [row.split("  ")[0] for row in rows[1:4]] == ["good", "fair (unknown)", "bad (unknown)"]


def test_control_characters_in_a_text_do_not_move_the_colours() -> None:
    # Bell and backspace are tokens; the others are white space.
    explanation = made_up("\r\a\b\v\f good\r\nbad", 0, 0, 2.0, -1.0)
    assert len(explanation.spans) == 4
    assert colours(explanation, "x") == {"good": "bold green", "bad": "bold red"}


def test_a_text_cannot_send_commands_to_the_terminal(model_path: Path) -> None:
    output = succeed("explain", model_path, "\x1b[31mmy \x1b]0;title\x07card\x9b31m")
    assert not set("\x1b\x07\x9b") & set(output)
    assert "card" in output


def test_markup_in_a_text_is_shown_as_it_is(model_path: Path) -> None:
    assert succeed("explain", model_path, "[bold]card[/bold] :smile:").startswith("[bold]card[/bold] :smile:\n")


def token_rows(output: str) -> list[list[str]]:
    """The words of the lines below the head of the table."""
    lines = output.splitlines()
    return [line.split() for line in lines[next(i for i, line in enumerate(lines) if line.startswith("token ")) + 1 :]]


def test_explain_says_why_one_label_and_not_another(model_path: Path, classifier: Classifier) -> None:
    explanation = explained(classifier.predict(TEXTS[0], explain=True))
    label, against = explanation.labels[:2]
    output = succeed("explain", model_path, TEXTS[0], "--label", label, "--contrast", against).replace(" (unknown)", "")
    assert f"why {label} and not {against}:" in output.splitlines()
    assert ["token", "attention", "difference", label, against] in [line.split() for line in output.splitlines()]
    shown = [(row[0], row[2]) for row in token_rows(output)[: len(explanation.tokens)]]
    contrast = [f"{value:+.3f}" for value in explanation.contrast(label, against)]
    assert shown == list(zip((token.text for token in explanation.tokens), contrast, strict=True))


def test_explain_explains_another_label_than_the_winner(model_path: Path, classifier: Classifier) -> None:
    explanation = explained(classifier.predict(TEXTS[0], explain=True))
    assert explanation.runner_up is not None
    output = succeed("explain", model_path, TEXTS[0], "--label", explanation.runner_up)
    assert re.search(rf"^{explanation.runner_up}, [\d.]+%, against all others:$", output, re.MULTILINE)
    # The label itself stands first, then the one that beats it.
    heads = ["token", "attention", "evidence", explanation.runner_up, explanation.label]
    assert heads in [line.split() for line in output.splitlines()]


@pytest.mark.parametrize("option", ["--label", "--contrast"])
def test_a_label_that_does_not_exist_is_answered_with_the_nearest(model_path: Path, option: str) -> None:
    message = fail(2, "explain", model_path, "hi", option, "Biling")
    assert "There is no label 'Biling' (did you mean 'billing'?); the model's are " in message
    assert "did you mean" not in fail(2, "explain", model_path, "hi", option, "qqqq")


def test_a_label_is_not_held_against_itself(model_path: Path) -> None:
    message = fail(2, "explain", model_path, "hi", "--label", "billing", "--contrast", "billing")
    assert "'billing' cannot be held against itself; name another label." in message


def test_explain_lists_the_strongest_tokens_in_reading_order_and_says_what_they_carry(
    model_path: Path, classifier: Classifier
) -> None:
    output = succeed("explain", model_path, TEXTS[0], "--top", "2")
    explanation = explained(classifier.predict(TEXTS[0], explain=True))
    strongest = sorted(explanation.top(2), key=lambda token: token.start)
    assert [row[0] for row in token_rows(output)[:2]] == [token.text for token in strongest]
    assert f"({len(explanation.tokens) - 2} others)" in output
    assert f"The 2 tokens shown carry {explanation.covered(2):.1%} of the evidence." in output.splitlines()


def test_the_numbers_of_the_table_add_up_whatever_is_left_out(model_path: Path) -> None:
    lines = succeed("explain", model_path, "refund my parcel please now", "--top", "2").splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("token"))
    parts = [re.findall(r"[+-]\d+\.\d{3}", line) for line in lines[head + 1 : head + 5]]
    total = re.findall(r"[+-]\d+\.\d{3}", lines[head + 5])
    for column in range(3):
        assert sum(float(part[column]) for part in parts) == pytest.approx(float(total[column]), abs=0.003)


def test_explain_says_why_it_abstains(model_path: Path, classifier: Classifier) -> None:
    score = classifier.predict("hello there").score
    output = succeed("explain", model_path, "hello there", "--threshold", "1")
    assert f"It abstains: the best score, {score:.1%}, is below the threshold of 100.0%." in output
    assert "abstains" not in succeed("explain", model_path, "hello there")


def test_explain_lists_the_words_that_are_unknown_to_the_model(model_path: Path, classifier: Classifier) -> None:
    text = "My zqxv was zqxw"
    output = succeed("explain", model_path, text, "--threshold", "1")
    share = 1 - classifier.explain(text).known_share
    listed = f"Unknown to the model: zqxv, zqxw (2 of 4 tokens, {share:.1%} of the evidence)."
    assert listed in output.splitlines()
    assert "Of its 4 tokens, 2 are unknown to the model." in output
    assert [row[0] for row in token_rows(output) if "(unknown)" in row] == ["zqxv", "zqxw"]
    found = json.loads(succeed("explain", model_path, text, "--json"))
    assert [token["known"] for token in found["tokens"]] == [True, False, True, False]
    assert "nknown" not in succeed("explain", model_path, "my card")


def part_rows(output: str) -> list[list[str]]:
    """The cells of the lines of the table of parts, less its head."""
    lines = output.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("part "))
    behind = next(i for i, line in enumerate(lines) if i > first and not line.strip())
    return [re.split(r"  +", line.strip()) for line in lines[first + 1 : behind]]


@pytest.mark.parametrize("text", ["My card zqxvarge was charged TWICE!!", "refund", "", "zqxv"])
def test_explain_lists_parts_that_add_up_to_the_tokens(model_path: Path, classifier: Classifier, text: str) -> None:
    output = succeed("explain", model_path, text, "--parts", "--top", "5")
    view = classifier.explain(text).view()
    *rows, total = part_rows(output)
    assert total == ["= tokens", f"{view.values.sum() + 0.0:+.3f}"]
    values = [float(row[-1]) for row in rows]
    assert sum(values) == pytest.approx(float(total[-1]), abs=0.005)
    parts = classifier.parts(text)
    if len(parts) > 5:
        assert rows[-1][0] == f"({len(parts) - 5} others)"
        rows.pop()
    shown = [abs(float(row[-1])) for row in rows]
    assert shown == sorted(shown, reverse=True)
    assert {row[1] for row in rows} <= {"word", "pair", "piece"}
    assert re.search(r"^Checked: bias \+ tokens = logit, .*; parts = tokens, (exactly|to \de-0[678])\.$", output, re.M)
    found = json.loads(succeed("explain", model_path, text, "--parts", "--json"))["parts"]
    assert found == [json.loads(json.dumps(part.as_json(text))) for part in parts]
    assert "parts" not in json.loads(succeed("explain", model_path, text, "--json"))


def test_a_pair_with_the_edge_of_a_text_shows_the_edge(model_path: Path, classifier: Classifier) -> None:
    edges = [part.edge for part in classifier.parts("The lamp?") if part.kind == "pair"]
    assert edges == ["start", None, "end"]
    names = [row[0] for row in part_rows(succeed("explain", model_path, "The lamp?", "--parts"))]
    assert {"\u27e8start\u27e9 The", "The lamp", "? \u27e8end\u27e9"} <= set(names)


def test_parts_of_a_contrast_are_those_of_the_difference(model_path: Path, classifier: Classifier) -> None:
    output = succeed("explain", model_path, TEXTS[0], "--parts", "--label", "sales", "--contrast", "returns")
    assert ["part", "kind", "difference"] in [line.split() for line in output.splitlines()]
    difference = classifier.explain(TEXTS[0]).contrast("sales", "returns").sum()
    assert part_rows(output)[-1] == ["= tokens", f"{difference:+.3f}"]


def test_a_page_has_parts_if_they_are_asked_for(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "why.html"
    for options in ([], ["--parts"]):
        succeed("explain", model_path, "my card", "--html", path, *options)
        assert ("parts = tokens" in path.read_text(encoding="utf-8")) == bool(options)


@pytest.mark.parametrize("options", [[], ["--json"], ["--html", "why.html"]])
def test_a_model_that_credits_whole_tokens_only_says_so(
    whole_tokens_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    message = fail(2, "explain", whole_tokens_path, "my card", "--parts", *options)
    assert "whole.onnx credits whole tokens only; " in message
    assert list(tmp_path.iterdir()) == []
    assert "(bias)" in succeed("explain", whole_tokens_path, "my card")


def test_explain_reads_a_text_from_standard_input(model_path: Path) -> None:
    def piped(given: bytes) -> Result:
        return CliRunner().invoke(main, ["explain", str(model_path), "-", "--json"], input=given)

    sent = json.loads(piped("my c\u00e4rd\r\n".encode()).stdout)
    assert sent == json.loads(succeed("explain", model_path, "my c\u00e4rd", "--json"))
    wrong = piped(b"one\ntw\xff")
    assert (wrong.exit_code, wrong.stdout) == (3, "")
    assert wrong.stderr == "Error: Standard input, line 2: byte 0xff is not UTF-8; send the text as UTF-8.\n"


def test_explain_writes_a_page_of_its_own(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "why.html"
    output = succeed("explain", model_path, "my <b>card</b>", "--contrast", "sales", "--html", path)
    assert re.fullmatch(rf"\w+ [\d.]+% -> {path}\n", output)
    written = path.read_text(encoding="utf-8")
    assert written.startswith("<!DOCTYPE html>")
    assert "and not <bdi>sales</bdi>" in written
    assert "<b>card</b>" not in written


def test_a_page_is_not_written_over_the_model_nor_into_a_folder_that_is_missing(
    model_path: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(model_path.read_bytes())
    fail(3, "explain", model, "hi", "--html", model)
    assert model.read_bytes() == model_path.read_bytes()
    assert "does not exist" in fail(6, "explain", model, "hi", "--html", tmp_path / "no" / "a.html")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<script>alert(1)</script>",
        "\x1b[31m\a\b",
        "half \ud83d",
        "\u0643\u062a\u0628\u062a \u202eabc",
        "\u200d\u0301",
    ],
    ids=["empty", "script", "controls", "surrogate", "right-to-left", "nothing-to-see"],
)
def test_awkward_texts_are_explained_in_every_form(model_path: Path, tmp_path: Path, text: str) -> None:
    for options in ([], ["--json"], ["--html", str(tmp_path / "a.html")]):
        output = succeed("explain", model_path, *options, "--", text)
        # JSON escapes what steers a terminal; what else is in it is data.
        assert not set("\x1b\a\b" if options == ["--json"] else "\x1b\a\b\u202e") & set(output)
        output.encode()
    (tmp_path / "a.html").read_text(encoding="utf-8")


def test_the_json_of_explain_holds_what_the_explanation_says_of_itself(
    model_path: Path, classifier: Classifier
) -> None:
    explanation = explained(classifier.predict(TEXTS[0], explain=True))
    found = json.loads(
        succeed("explain", model_path, TEXTS[0], "--json", "--contrast", "returns", "--threshold", "0.2")
    )
    assert {name: found[name] for name in explanation.as_json()} == explanation.as_json()
    assert found["evidence"] == explanation.view(None, "returns").as_json()
    assert found["threshold"] == 0.2


# inspect


def test_inspect_prints_what_a_person_wants_to_know(model_path: Path, classifier: Classifier) -> None:
    output = succeed("inspect", model_path)
    info = classifier.info
    facts = {line.split("  ")[0]: line for line in output.splitlines()}
    assert f"{model_path}, {model_path.stat().st_size / 1e6:.2f} MB, format 1" in facts["file"]
    assert ", ".join(info.labels) in facts["7 labels"]
    assert "text -> label" in facts["columns"]
    assert f"150 rows, sha256 {info.training['data_sha256'][:12]}, seed 0, 33 epochs" in facts["trained on"]
    assert f"{info.training['held_out_rows']} rows, accuracy {info.training['held_out_accuracy']}" in facts["held out"]
    assert f"{info.temperature:.3f}" in facts["temperature"]
    assert "never abstains" in facts["threshold"]
    assert "first 64 tokens of a text: words, bigrams, character n-grams of 3 and 5" in facts["reads"]
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
    counter = EvidenceCounter(classifier.labels)
    for row, answer in zip(rows, classifier.predict([row["text"] for row in rows], explain=True), strict=True):
        counter.add(explained(answer), row["label"])
    report = counter.report(3)
    assert json.loads(succeed("inspect", model_path, "--evidence", sample_path, "--top", "3", "--json")) == json.loads(
        json.dumps(report.as_json())
    )
    output = succeed("inspect", model_path, "--evidence", sample_path, "--top", "3")
    assert output.startswith(f"875 texts, {report.tokens:,} tokens, {report.right / 875:.2%} answered right.\n")
    for label in report.labels:
        assert f"{label.label}   {label.answers:,} answers" in output
        for finding in (*label.words_for, *label.pairs_against):
            assert re.search(rf"{re.escape(finding.text)} +{re.escape(f'{finding.evidence:+,.1f}')} ", output)


def test_inspect_tells_of_the_labels_asked_for(model_path: Path, table: Path) -> None:
    every = json.loads(succeed("inspect", model_path, "--evidence", table, "--json"))
    asked = ["--label", "sales", "--label", "billing"]
    found = json.loads(succeed("inspect", model_path, "--evidence", table, "--json", *asked))
    by_name = {label["label"]: label for label in every["labels"]}
    assert found["labels"] == [by_name["sales"], by_name["billing"]]
    assert found["texts"] == every["texts"]
    output = succeed("inspect", model_path, "--evidence", table, *asked)
    assert re.findall(r"^(\w+)   [\d,]+ answers$", output, re.MULTILINE) == ["sales", "billing"]
    message = fail(2, "inspect", model_path, "--evidence", table.parent / "no.csv", "--label", "Biling")
    assert "There is no label 'Biling' (did you mean 'billing'?)" in message


@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_examples_give_way_and_keep_the_word_in_sight(
    classifier: Classifier, sample_path: Path, width: int
) -> None:
    counter = EvidenceCounter(classifier.labels)
    for explanation in classifier.explain([row["text"] for row in read_rows(sample_path)[:200]]):
        counter.add(explanation)
    counter.add(classifier.explain("\u6ce8\u6587\u306e\u30ad\u30e3\u30f3\u30bb\u30eb " * 9))
    console = Console(width=200, file=(printed := io.StringIO()))
    for part in render.evidence_tables(counter.report(4), width):
        console.print(part)
    rows = [line.rstrip() for line in printed.getvalue().splitlines() if "[" in line]
    assert len(rows) > 50
    assert all("]" in row for row in rows)
    assert max(map(cell_len, rows)) <= width


def test_inspect_reads_texts_without_labels(model_path: Path, table: Path) -> None:
    output = succeed("inspect", model_path, "--evidence", table)
    assert output.startswith(f"{len(TEXTS)} texts, ")
    assert "answered right" not in output
    assert "No shortcuts" in output


def test_inspect_writes_what_a_model_goes_by_as_a_page(model_path: Path, table: Path, tmp_path: Path) -> None:
    page = tmp_path / "by.html"
    assert succeed("inspect", model_path, "--evidence", table, "--html", page) == (
        f"{len(TEXTS)} texts, 0 shortcuts -> {page}\n"
    )
    assert "<h2>What model_v1 goes by</h2>" in page.read_text(encoding="utf-8")


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
    assert f"{options[0]} needs --evidence and a file." in fail(2, "inspect", model_path, *options)


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
        f"Note: {path} is read with semicolons between its fields.",
        f"Note: Skipped 1 row that cannot be used: {path}, line 3: the label in column 'queue' is empty.",
    ]


def test_inspect_takes_rows_without_a_label_along_if_no_column_was_asked_for(model_path: Path, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "some.csv", [("text", "label"), ("my card", "billing"), ("refund", "")])
    found = json.loads(succeed("inspect", model_path, "--evidence", path, "--json"))
    assert (found["texts"], found["labelled"]) == (2, 1)


@pytest.mark.parametrize("call", ["check -", "evaluate {model} -"])
def test_standard_input_without_rows_is_told_by_its_name(model_path: Path, call: str) -> None:
    arguments = call.format(model=model_path).split()
    result = CliRunner().invoke(main, arguments, input="text,label\n")
    assert (result.exit_code, result.stderr) == (3, "Error: standard input has no rows.\n")
    result = CliRunner().invoke(main, [*arguments, "--on-error", "skip"], input="text,label\na,\n")
    assert (result.exit_code, result.stderr) == (3, "Error: standard input has no rows that can be used.\n")


def test_inspect_names_the_column_that_a_table_lacks(model_path: Path, table: Path, tmp_path: Path) -> None:
    assert "has no column 'queue'" in fail(3, "inspect", model_path, "--evidence", table, "--label-column", "queue")
    other = write_rows(tmp_path / "other.csv", [("stuff",), ("hi",)])
    assert "has no column 'text'" in fail(3, "inspect", model_path, "--evidence", other)


# All commands


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_has_an_example_to_run(command: str) -> None:
    output = succeed(command, "--help")
    assert f"Example: textcls {command} tickets." in output
    assert succeed(command, "-h") == output


def test_help_lists_every_command_with_an_example() -> None:
    output = succeed("--help")
    for command in COMMANDS:
        assert re.search(rf"^  textcls {command} tickets\.", output, re.MULTILINE)
        assert re.search(rf"^  {command} +[A-Z].*\.$", output, re.MULTILINE)


def test_version_is_that_of_the_package() -> None:
    assert succeed("--version") == f"textcls, version {textcls.__version__}\n"


def test_a_command_that_does_not_exist_is_a_wrong_call() -> None:
    result = run("classify")
    assert result.exit_code == 2
    assert "No such command 'classify'" in result.stderr
    assert "No such command 'predct'. Did you mean 'predict'?" in run("predct").stderr


@pytest.mark.parametrize(
    "call",
    ["evaluate {model} new.csv", "predict {model} new.csv -o out.csv", "explain {model} hi", "inspect {model}"],
)
@pytest.mark.parametrize("content", [None, b"no model"], ids=["missing", "damaged"])
def test_a_model_that_cannot_be_used_is_named_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, content: bytes | None
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("model.onnx").write_bytes(content)
    Path("new.csv").write_text("text,label\na,x\n")
    assert "model.onnx" in fail(4, *call.format(model="model.onnx").split())
    assert {path.name for path in tmp_path.iterdir()} <= {"model.onnx", "new.csv"}


@pytest.mark.parametrize(
    "call", ["train {data} -o out.onnx", "evaluate {model} {data}", "predict {model} {data} -o out.csv"]
)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "There is no file data.csv."),
        ("", "data.csv is empty"),
        ("first,second\na,x\n", "data.csv has no column 'text'; it has 'first', 'second'."),
        ("text,label\na,x,z\n", "data.csv, line 2: 3 fields where the header has 2"),
        ('text,label\n"a,x\n', "data.csv, line 2: a quote opens in this row and is never closed; check the quotes"),
        ('text,label\n"a"b,x\n', "data.csv, line 2: ',' expected after '\"'; check the quotes"),
        (b"text,label\na,x\nb\xe9,y\n", "data.csv, line 3: byte 0xe9 is not UTF-8; add --encoding cp1252 if 'b\u00e9'"),
        ("__label__a b\n__label__a __label__b c\n", "data.csv, line 2: 2 labels, 'a' and 'b'; one label a row"),
        (b"\x1f\x8b\x08cut", "data.csv is cut off"),
    ],
    ids=["missing", "empty", "column", "ragged", "open quote", "inner quote", "bytes", "labels", "gzip"],
)
def test_a_table_that_cannot_be_used_is_named_and_nothing_is_written(
    model_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    content: str | bytes | None,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("data.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert words in fail(3, *call.format(model=model_path, data="data.csv").split())
    assert {path.name for path in tmp_path.iterdir()} <= {"data.csv"}


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


# As a program


def program(*args: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *args], cwd=folder, capture_output=True, text=True, encoding="utf-8", env={**os.environ}, check=False
    )


def test_the_installed_program_predicts(model_path: Path, table: Path, tmp_path: Path) -> None:
    done = program("predict", model_path, "new.csv", "--output", "out.csv", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{len(TEXTS)} rows -> out.csv\n", "")
    assert [row["text"] for row in read_rows(tmp_path / "out.csv")] == list(TEXTS)


def test_the_installed_program_explains_without_colours_when_piped(model_path: Path, tmp_path: Path) -> None:
    done = program("explain", model_path, TEXTS[4], folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(TEXTS[4] + "\n")
    assert "\x1b" not in done.stdout


def test_the_installed_program_ends_with_the_code_of_the_error_and_one_line(model_path: Path, tmp_path: Path) -> None:
    done = program("predict", model_path, "no.csv", "--output", "out.csv", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "Error: There is no file no.csv.\n")
    assert list(tmp_path.iterdir()) == []


def test_the_installed_program_trains_with_its_progress_on_standard_error(tmp_path: Path) -> None:
    rows = [(f"{word} please {i}", word) for word in ("refund", "parcel") for i in range(8)]
    write_rows(tmp_path / "data.csv", [("text", "label"), *rows])
    done = program("train", "data.csv", "--dim", "2", "--epochs", "1", folder=tmp_path)
    assert done.returncode == 0
    assert {line.split(":")[0].split(" ")[0] for line in done.stderr.splitlines()} == {"choosing"}
    assert "choosing" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("data.onnx, ")
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "data.onnx"}


@pytest.mark.parametrize("path", [".", "./", ".."])
def test_a_folder_in_the_place_of_the_rows_is_said_to_be_one(path: str) -> None:
    result = run("train", path)
    assert result.exit_code == 3
    assert result.stderr.endswith("is a folder; name a file in it.\n")


def test_a_reader_that_stops_reading_ends_the_program_without_a_traceback(model_path: Path) -> None:
    line = f"{SCRIPT} inspect {model_path} --json"
    done = subprocess.run(
        ["sh", "-c", f"{line} | true; {line} > /dev/full"], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr


def test_a_text_may_begin_with_a_hyphen(model_path: Path) -> None:
    assert "euros" in succeed("explain", model_path, "-5 euros")


def test_of_a_long_text_the_strongest_tokens_are_listed(model_path: Path) -> None:
    words = " ".join(f"refund{i}" for i in range(64))
    output = succeed("explain", model_path, words)
    assert "(14 others)" in output


# One path under all


def raw_outputs(path: Path, texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    """What ONNX Runtime answers, asked text by text without this package."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = ["probabilities", "logits", "attention", "contributions", "tokens"]
    outputs = [session.run(names, {"text": np.array([text], object)}) for text in texts]
    return {name: np.array([run[i][0] for run in outputs], object) for i, name in enumerate(names)}


def test_command_line_python_and_raw_onnx_runtime_give_the_same_numbers(
    model_path: Path, classifier: Classifier, table: Path, tmp_path: Path
) -> None:
    succeed("predict", model_path, table, "--output", tmp_path / "out.csv")
    rows = read_rows(tmp_path / "out.csv")
    answers = classifier.predict(TEXTS, explain=True)
    raw = raw_outputs(model_path, TEXTS)
    for i, (text, row, answer) in enumerate(zip(TEXTS, rows, answers, strict=True)):
        printed = json.loads(succeed("explain", model_path, "--json", "--", text))
        probabilities = np.array(raw["probabilities"][i], np.float64)
        label = classifier.labels[int(probabilities.argmax())]
        assert label == answer.label == row["predicted_label"] == printed["label"]
        np.testing.assert_allclose(answer.probabilities, probabilities, atol=1e-6)
        assert float(row["score"]) == pytest.approx(probabilities.max(), abs=2e-6)
        assert printed["score"] == pytest.approx(probabilities.max(), abs=1e-6)

        tokens = explained(answer).tokens
        assert [token.text.lower() for token in tokens] == [token for token in raw["tokens"][i] if token]
        places = [(token["text"], token["start"], token["end"]) for token in printed["tokens"]]
        assert places == [(token.text, token.start, token.end) for token in tokens]
        for j, token in enumerate(tokens):
            added = np.array(raw["contributions"][i][j], np.float64)
            np.testing.assert_allclose(list(token.contributions.values()), added, atol=1e-5)
            np.testing.assert_allclose(list(printed["tokens"][j]["contributions"].values()), added, atol=1e-5)
            assert token.attention == pytest.approx(float(raw["attention"][i][j]), abs=1e-6)
