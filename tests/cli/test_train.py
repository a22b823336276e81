"""`textcls train`: what it prints and writes, and what reaches the training."""

import gzip
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import fail, read_rows, run, succeed, write_rows
from textcls import Classifier
from textcls_training.config.resolve import resolve
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts

ROWS = 120


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
    assert lines[-1] == f'{model}, {size}. Next: textcls explain {model} "a text of yours"'


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


def test_train_without_options_leaves_everything_to_the_defaults(tmp_path: Path, train_call: dict[str, Any]) -> None:
    data = write_rows(tmp_path / "tickets.csv", [("text", "label"), ("a", "x"), ("b", "y")])
    fail(3, "train", data, "--quiet")
    assert train_call["output"] == tmp_path / "tickets.onnx"
    assert train_call["source"] == LabelledTexts(texts=["a", "b"], labels=["x", "y"])
    assert resolve(train_call["config"], ["a", "b"], 2, 2) == resolve(TrainConfig(), ["a", "b"], 2, 2)
    assert train_call["valid"] is None


def test_every_option_of_train_reaches_the_training(tmp_path: Path, train_call: dict[str, Any]) -> None:
    data = write_rows(tmp_path / "tickets.csv", [("title", "body", "queue"), ("a", "b", "x"), ("c", "d", "y")])
    valid = write_rows(tmp_path / "valid.csv", [("title", "body", "queue"), ("e", "f", "x")])
    options = "--text-column title --text-column body --label-column queue --mixing gmlp --attention softmax"
    options += " --values mixed --ngrams 2,4 --no-bigrams --dim 5 --epochs 7 --max-tokens 11"
    options += " --class-weight balanced --size tiny --seed 13 --device cpu"
    fail(3, "train", data, "--output", tmp_path / "out.onnx", "--valid", valid, "--quiet", *options.split())
    columns: dict[str, Any] = {"text_columns": ("title", "body"), "label_column": "queue"}
    assert train_call["output"] == tmp_path / "out.onnx"
    assert train_call["source"] == LabelledTexts(texts=["a\nb", "c\nd"], labels=["x", "y"], **columns)
    assert train_call["valid"] == LabelledTexts(texts=["e\nf"], labels=["x"], **columns)
    config = train_call["config"]
    assert (config.mixing, config.attention, config.values, config.dim) == ("gmlp", "softmax", "mixed", 5)
    features = resolve(config, ["a"], 1, 2).features
    assert (features.ngram_sizes, features.bigrams) == ((2, 4), False)
    assert (config.epochs, config.max_tokens, config.class_weight) == (7, 11, "balanced")
    assert config.size == "tiny"
    assert (config.seed, config.device) == (13, "cpu")


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


def test_train_reads_several_files_and_standard_input(
    tmp_path: Path, train_call: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_rows(tmp_path / "tickets.csv", [("text", "label"), ("a", "x")])
    (tmp_path / "more.txt").write_text("__label__y b\n")
    monkeypatch.chdir(tmp_path)
    result = run("train", data, "more.txt", "-", "--quiet", given='{"text": "c", "label": "x"}\n')
    assert result.exit_code == 3
    assert (train_call["source"].texts, train_call["source"].labels) == (["a", "b", "c"], ["x", "y", "x"])
    assert train_call["output"] == tmp_path / "tickets.onnx"


def test_the_model_is_named_after_the_data_without_gz(tmp_path: Path, train_call: dict[str, Any]) -> None:
    (tmp_path / "tickets.csv.gz").write_bytes(gzip.compress(b"text,label\na,x\nb,y\n"))
    fail(3, "train", tmp_path / "tickets.csv.gz", "--quiet")
    assert train_call["output"] == tmp_path / "tickets.onnx"


def test_rows_that_cannot_be_trained_on_are_skipped_on_request(tmp_path: Path, train_call: dict[str, Any]) -> None:
    data, valid = tmp_path / "a.txt", tmp_path / "b.txt"
    data.write_text("__label__x a\n__label__x __label__y b\n__label__y c\n")
    valid.write_text("__label__z d\n__label__y e\n")
    message = fail(3, "train", data, "--valid", valid, "--task", "single")
    assert f"{data}, line 2: 2 labels, 'x' and 'y'" in message
    result = run("train", data, "--valid", valid, "--task", "single", "--on-error", "skip", "--quiet")
    assert (train_call["source"].texts, train_call["valid"].texts) == (["a", "c"], ["e"])
    skipped = result.stderr.splitlines()[0]
    assert skipped.startswith("Note: Skipped 2 rows that cannot be used: ")
    assert f"{valid}, line 1: validation rows have the label 'z', which no training row has" in skipped


def test_train_needs_two_labels(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "one.csv", [("text", "label"), ("a", "x"), ("b", "x")])
    assert "have only the label 'x'; a classifier needs at least two labels." in fail(3, "train", data, "--quiet")
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


def test_labels_that_differ_by_case_alone_are_counted_apart_from_others(tmp_path: Path) -> None:
    rows = [("text", "label")] + [(f"good {i}", label) for i, label in enumerate(("good", "Good", "bad") * 4)]
    output = succeed("train", write_rows(tmp_path / "a.csv", rows), "--epochs", "1", "--dim", "2")
    assert "Trained on 12 rows, 3 labels (2 that differ by more than case and spaces), 1 epoch." in output


def test_train_takes_as_little_as_two_rows_of_which_one_has_no_tokens(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "two.csv", [("text", "label"), ("good", "x"), (" ", "y")])
    output = succeed("train", data, "--epochs", "1", "--dim", "2")
    assert "Trained on 2 rows, 2 labels" in output
    assert "Not calibrated" in output
    assert Classifier.load(tmp_path / "two.onnx").labels == ("x", "y")


@pytest.mark.parametrize("path", [".", "./"])
def test_a_folder_without_a_table_in_the_place_of_the_rows_is_said_to_be_one(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pdf").touch()
    result = run("train", path)
    assert result.exit_code == 3
    assert result.stderr.endswith("contains no file in a known format; name one of its files, with --format.\n")


def test_labels_that_do_not_reach_a_target_on_held_out_rows_are_named(tmp_path: Path) -> None:
    drawn = random.Random(3)
    rows = []
    for i in range(200):
        a, noise = drawn.random() < 0.5, drawn.random() < 0.5
        rows.append((f"{'alpha ' * a}word {i % 7}", ";".join(["a"] * a + ["noise"] * noise)))
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), *rows])
    call = ("train", data, "--label-separator", ";", "--epochs", "3", "--vectors", "none")
    said = succeed(*call, "--target-precision", "0.95")
    assert "On held-out rows 'noise' does not reach a precision of 95%" in said
    assert "do not reach" not in succeed(*call).replace("does not reach", "do not reach")
    assert json.loads(succeed(*call, "--target-recall", "0.5", "--json"))["goal"] == {"measure": "recall", "share": 0.5}


def test_how_labels_are_written_their_weights_and_the_target_of_their_thresholds_reach_the_training(
    tmp_path: Path, train_call: dict[str, Any]
) -> None:
    data = write_rows(tmp_path / "tickets.csv", [("text", "label"), ("a", "x;y"), ("b", "")])
    weights = tmp_path / "weights.json"
    weights.write_text('{"x": 2}')
    options = ("--label-separator", ";", "--class-weight", weights, "--target-recall", "0.8", "--quiet")
    fail(3, "train", data, *options)
    source, config = train_call["source"], train_call["config"]
    assert source.label_sets == [{"x": 1.0, "y": 1.0}, {}]
    assert source.written.to_json() == {"label_separator": ";", "label_columns": []}
    assert (config.class_weight, config.target_precision, config.target_recall) == ({"x": 2.0}, None, 0.8)
    refused = run("train", data, *options, "--target-precision", "0.9")
    assert refused.exit_code == 2
    assert "--target-precision and --target-recall both choose the thresholds; use only one of them." in refused.stderr


def test_it_is_said_that_a_stored_threshold_is_lost(tmp_path: Path, sample_path: Path) -> None:
    output, options = tmp_path / "m.onnx", ("--epochs", "1", "--vectors", "none")
    assert "abstained below" not in run("train", sample_path, "-o", output, *options).stderr
    succeed("evaluate", output, sample_path, "--threshold", "0.4", "--store")
    assert (
        f"in {output} abstained below 40.0%, and this one never does"
        in run("train", sample_path, "-o", output, *options).stderr
    )


def test_a_training_that_goes_on_reads_its_files_as_the_one_before(tmp_path: Path) -> None:
    sets = [
        ("spam;urgent" if i % 3 == 0 else "spam" if i % 3 == 1 else "", f"word{i % 7} number {i}") for i in range(90)
    ]
    first = write_rows(tmp_path / "first.csv", [("tags", "body"), *sets])
    new = write_rows(tmp_path / "new.csv", [("note", "tags", "body"), *[("x", *row) for row in sets[:30]]])
    short = ("--epochs", "1", "--vectors", "none", "--quiet")
    told = ("--text-column", "body", "--label-column", "tags", "--label-separator", ";", *short)
    succeed("train", first, *told, "--output", tmp_path / "m.onnx", "--state", tmp_path / "first")
    again = ("--valid", new, "--output", tmp_path / "m.onnx", "--quiet")
    succeed("train", new, "--from", tmp_path / "first", "--state", tmp_path / "second", *again)
    model = Classifier.load(tmp_path / "m.onnx")
    assert (model.labels, model.info.text_columns, model.info.label_column) == (("spam", "urgent"), ("body",), "tags")
    assert model.info.training["labels_written"]["label_separator"] == ";"
    succeed("train", new, "--from", tmp_path / "second", *again)
    assert Classifier.load(tmp_path / "m.onnx").labels == ("spam", "urgent")


def test_training_keeps_its_state_and_goes_on_from_it_with_new_rows(tmp_path: Path, sample_path: Path) -> None:
    rows = [list(row.values()) for row in read_rows(sample_path)[:ROWS]]
    old = write_rows(tmp_path / "old.csv", [("text", "label"), *rows[:90]])
    new = write_rows(tmp_path / "new.csv", [("text", "label"), *rows[90:], ("what a day", "chat"), ("hello", "chat")])
    first, second = tmp_path / "1.state", tmp_path / "2.state"
    succeed("train", old, "--state", first, "--dim", "4", "--epochs", "1", "--ngrams", "none")
    result = run("train", new, "--from", first, "--state", second)
    assert result.exit_code == 0, result.output
    told = f"{first} holds all of its 90 rows: training again on them and 32 new ones, with the new label 'chat'."
    assert told in result.stderr.splitlines()
    info = Classifier.load(tmp_path / "new.onnx").info
    assert (info.training["rows"], info.model["dim"], "chat" in info.labels) == (122, 4, True)
    again = run("train", new, "--from", first, "--state", second, "--seed", "5")
    assert again.exit_code == 2
    assert f"The state in {second} is of another training: seed was 0 and is 5. Remove the folder" in again.stderr
    assert "no is not a folder; name the --state of a finished training." in fail(
        3, "train", new, "--from", tmp_path / "no"
    )


def test_judging_a_model_by_rows_of_its_training_says_that_these_are_no_others(
    trained: tuple[str, Path], tmp_path: Path
) -> None:
    _, path = trained
    rows = [(row["text"], row["label"]) for row in read_rows(path.with_name("tickets.csv"))]
    assert "rows that the model has learned from" in succeed("evaluate", path, path.with_name("tickets.csv"))
    assert json.loads(succeed("evaluate", path, path.with_name("tickets.csv"), "--json"))["learned"] == 1
    page = ("--output", tmp_path / "report.html")
    succeed("report", path, path.with_name("tickets.csv"), *page)
    assert "rows that the model has learned from" in (tmp_path / "report.html").read_text(encoding="utf-8")
    some = write_rows(tmp_path / "some.csv", [("text", "label"), *rows[::-2], ("something new", rows[0][1])])
    for command in (("evaluate", path), ("compare", path, path), ("drift", path)):
        assert "These are rows that " in succeed(*command, some)
    said = fail(2, "evaluate", path, some, "--target-precision", "0.5", "--store")
    assert "so a threshold that is chosen on them promises too much: choose it on others. Nothing was saved." in said
    assert Classifier.load(path).info.threshold is None
    succeed("evaluate", path, some, "--target-precision", "0", "--store")
    others = [(f"{text} {i}!", label) for i, (text, label) in enumerate(rows)]
    for given, told in ((others, "learned"), ([*rows[:60], *others[60:120]], "About 50% of these rows are some that")):
        data = write_rows(tmp_path / "others.csv", [("text", "label"), *given])
        assert (told in succeed("evaluate", path, data)) == (given is not others)
        assert (json.loads(succeed("evaluate", path, data, "--json"))["learned"] > 0) == (given is not others)


def test_texts_that_are_cut_are_told_by_all_who_read_them(tmp_path: Path) -> None:
    rows = [(f"{'some words ' * 5}{name} {i}", name) for i in range(9) for name in ("parcel", "invoice")]
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), *rows, ("a short one", "parcel")])
    model = tmp_path / "m.onnx"
    done = run("train", data, "-o", model, "--max-tokens", "10", "--epochs", "1", "--vectors", "none")
    assert "Of 18 texts, 10 tokens are read and no more: split them, or raise max_tokens." in done.stdout + done.stderr
    said = "18 texts are longer than the 10 tokens that the model reads; the rest is not read."
    for command in (
        ("evaluate",),
        ("drift",),
        ("predict", "-o", tmp_path / "o.csv"),
        ("report", "-o", tmp_path / "r.md"),
    ):
        assert said in run(command[0], model, data, *command[1:]).stderr
    exact = write_rows(tmp_path / "exact.csv", [("text", "label"), ("some words " * 5, "parcel")])
    assert "longer" not in run("evaluate", model, exact).stderr
    change = succeed("explain", model, rows[0][0], "--counterfactual")
    assert "It holds of the part that is read: the rest of the text does not move up." in change


def test_evaluating_the_rows_of_several_labels_says_so_as_well(tmp_path: Path) -> None:
    rows = [(f"{name} number {i}", f"{name};all") for i in range(20) for name in ("parcel", "invoice")]
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), *rows])
    succeed(
        "train", data, "-o", tmp_path / "m.onnx", "--label-separator", ";", "--epochs", "1", "--dim", "4", "--quiet"
    )
    assert "rows that the model has learned from" in succeed("evaluate", tmp_path / "m.onnx", data)
    stored = ("evaluate", tmp_path / "m.onnx", data, "--target-recall", "0.5", "--store")
    assert "promises too much" in fail(2, *stored)
    page = ("--output", tmp_path / "report.html")
    succeed("report", tmp_path / "m.onnx", data, *page)
    assert "rows that the model has learned from" in (tmp_path / "report.html").read_text(encoding="utf-8")
    write_rows(data, [("text", "label"), *rows[:12], *((f"{text}!", label) for text, label in rows)])
    assert "About 23% of these rows" in succeed(*stored)
    write_rows(data, [("text", "label"), *((f"{text}!", label) for text, label in rows)])
    assert "rows that the model has learned from" not in succeed("evaluate", tmp_path / "m.onnx", data)


def test_a_model_that_has_learned_nothing_is_told_of(tmp_path: Path) -> None:
    words = ["tin", "oak", "sun", "ink", "fog"]
    chance = random.Random(0)
    drawn = [(" ".join(chance.choices(words, k=3)), chance.choice("aab")) for _ in range(300)]
    said = succeed("train", write_rows(tmp_path / "d.csv", [("text", "label"), *drawn]), "--quiet", "--vectors", "none")
    assert re.search(r"no better than 'a' for every text, which is right in 6\d\.\d% of the rows", said)
    told = [(f"{text} {label * 3}", label) for text, label in drawn]
    said = succeed("train", write_rows(tmp_path / "t.csv", [("text", "label"), *told]), "--quiet", "--vectors", "none")
    assert "no better than" not in said
