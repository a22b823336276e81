"""`textcls evaluate` with a model that may give several labels a text: the numbers of the API, thresholds, refusals."""

import json
import shutil
from pathlib import Path

import pytest

import textcls
from tests.cli.several import Rows, several_rows
from tests.command_line import fail, read_rows, run, succeed, write_rows
from textcls import Classifier, ConfigError, InputError
from textcls.evaluation.label_set_evaluation import LabelSetEvaluation
from textcls.model.artifact import METADATA_KEY, ModelInfo


@pytest.fixture
def rows(sample_path: Path) -> Rows:
    """Labelled rows with one label, two or none, one of them of a label that the model does not know."""
    return [*several_rows(read_rows(sample_path)), ("a rumour", ["gossip"])]


@pytest.fixture
def heldout(rows: Rows, tmp_path: Path) -> Path:
    """The rows as CSV with a separator."""
    return write_rows(tmp_path / "heldout.csv", [("text", "label"), *((text, ";".join(label)) for text, label in rows)])


@pytest.fixture
def lines(rows: Rows, tmp_path: Path) -> Path:
    """The rows as JSON lines with lists."""
    path = tmp_path / "heldout.jsonl"
    path.write_text("".join(json.dumps({"text": text, "label": labels}) + "\n" for text, labels in rows))
    return path


@pytest.fixture
def model(several_labels_path: Path, tmp_path: Path) -> Path:
    """A copy of the small model, which may be written to."""
    return Path(shutil.copy(several_labels_path, tmp_path / "tickets.onnx"))


SEPARATED = ("--label-separator", ";")


@pytest.mark.parametrize(
    "options", [{}, {"threshold": 0.4}, {"target_precision": 0.7}, {"target_recall": 0.8}], ids=str
)
def test_the_command_prints_what_the_function_returns(
    model: Path, several_labels: Classifier, rows: Rows, heldout: Path, lines: Path, options: dict[str, float]
) -> None:
    given = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    found = textcls.evaluate(several_labels, rows, **options)
    assert isinstance(found, LabelSetEvaluation)
    expected = json.loads(json.dumps(found.as_json()))
    for data in ([heldout, *SEPARATED], [lines]):
        printed = json.loads(succeed("evaluate", model, *data, "--json", *given))
        assert printed.pop("stored", False) is False
        assert printed == expected


def test_its_figures_are_those_of_what_the_model_assigns(
    several_labels: Classifier, rows: Rows, model: Path, lines: Path
) -> None:
    found = json.loads(succeed("evaluate", model, lines, "--json"))
    answers = several_labels.predict([text for text, _ in rows])
    pairs = [(set(answer.assigned), set(labels)) for answer, (_, labels) in zip(answers, rows, strict=True)]
    right = sum(len(assigned & labels) for assigned, labels in pairs)
    assert found["micro_f1"] == pytest.approx(2 * right / sum(len(a) + len(b) for a, b in pairs))
    assert found["exact"] == pytest.approx(sum(assigned == labels for assigned, labels in pairs) / len(rows))
    assert found["unknown_labels"] == ["gossip"]
    known = [label["threshold"] for label in found["labels"]][: len(several_labels.labels)]
    assert known == list(several_labels.info.thresholds or ())


def test_what_it_prints_names_scores_labels_and_what_is_mixed_up(model: Path, lines: Path) -> None:
    found = json.loads(succeed("evaluate", model, lines, "--json"))
    output = succeed("evaluate", model, lines)
    assert f"{found['rows']} rows   micro-F1 {found['micro_f1']:.2%}   macro-F1 {found['macro_f1']:.2%}" in output
    assert f"F1 a row {found['samples_f1']:.2%}   ranking loss {found['ranking_loss']:.2%}" in output
    lines_of = [line.split() for line in output.splitlines()]
    for label in found["labels"]:
        scores = [f"{label[name]:.1%}" for name in ("threshold", "precision", "recall", "f1")]
        precision = "-" if label["average_precision"] is None else f"{label['average_precision']:.1%}"
        counts = [str(label["rows"]), str(label["assigned"])]
        assert [label["label"], *scores, precision, f"{label['ece']:.3f}", *counts] in lines_of
    for pair in found["mixed_up"][:3]:
        assert [pair["has"], pair["assigned"], str(pair["rows"])] in lines_of
    assert "The model does not know 'gossip'" in output


@pytest.mark.parametrize(("cells", "sign"), [("{};{}", "';'"), ("{}|{}", "'|'"), ('["{}", "{}"]', "json")])
def test_labels_that_are_joined_otherwise_are_told_with_the_option_that_reads_them(
    model: Path, tmp_path: Path, cells: str, sign: str
) -> None:
    joined = cells.format("billing", "shipping")
    said = f"These are known labels, several in a cell: read them with --label-separator {sign}."
    some = write_rows(tmp_path / "some.csv", [("text", "label"), ("my card", "billing"), ("my parcel", joined)])
    assert said in succeed("evaluate", model, some, "--task", "several")
    all_joined = write_rows(tmp_path / "all.csv", [("text", "label"), ("my parcel", joined)])
    assert said in fail(3, "evaluate", model, all_joined, "--task", "several")


def test_thresholds_that_were_found_are_stored_and_assign_from_then_on(
    model: Path, several_labels_path: Path, lines: Path
) -> None:
    found = json.loads(succeed("evaluate", model, lines, "--json", "--target-recall", "0.9", "--store"))
    assert (found["stored"], found["thresholds"]["measure"], found["thresholds"]["share"]) == (True, "recall", 0.9)
    labels = found["labels"][:7]
    assert all(label["recall"] >= 0.9 for label in labels if label["label"] not in found["thresholds"]["few_rows"])
    stored, before = (Classifier.load(path).info for path in (model, several_labels_path))
    assert list(stored.thresholds or ()) == [label["threshold"] for label in labels]
    assert stored.to_json() | {"thresholds": before.thresholds} == before.to_json()
    assert METADATA_KEY in stored.to_metadata()
    again = json.loads(succeed("evaluate", model, lines, "--json"))
    assert again["labels"] == found["labels"]


def test_few_rows_and_what_no_threshold_reaches_are_said(model: Path, tmp_path: Path) -> None:
    data = tmp_path / "few.jsonl"
    data.write_text(json.dumps({"text": "refund", "label": ["billing"]}) + "\n")
    output = succeed("evaluate", model, data, "--target-precision", "0.9")
    assert "Under 20 rows have 'account'" in output
    assert "No threshold reaches it for 'account'" in output
    assert "assigned from a probability of 90% on." in output
    assert "The thresholds were chosen on these rows for a precision of 90% of each label: check them" in output


def test_labels_are_read_as_they_were_written_in_the_training(model: Path, heldout: Path, lines: Path) -> None:
    from tests.model_metadata import metadata_of, with_metadata

    metadata = metadata_of(model)
    metadata["training"]["labels_written"] = {"label_separator": ";", "label_columns": []}
    model.write_bytes(with_metadata(model, metadata))
    expected = succeed("evaluate", model, lines, "--json")
    assert succeed("evaluate", model, heldout, "--json") == expected
    other = write_rows(heldout.with_name("bar.csv"), [("text", "label"), ("refund", "returns|billing")])
    found = json.loads(succeed("evaluate", model, other, "--label-separator", "|", "--json"))
    assert (found["rows"], found["unknown_labels"]) == (1, [])


# Refusals


def test_rows_of_one_label_are_refused_unless_they_are_meant(model: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "one.csv", [("text", "label"), ("refund", "returns"), ("b", "billing")])
    assert fail(3, "evaluate", model, data) == (
        f"Error: {data}, line 2 has one label, but the model assigns several; add --label-separator if a cell holds "
        "several, or --task several if each row has one or none.\n"
    )
    assert json.loads(succeed("evaluate", model, data, "--task", "several", "--json"))["rows"] == 2


def test_a_model_of_one_label_refuses_rows_with_several(
    model_path: Path, classifier: Classifier, heldout: Path, lines: Path
) -> None:
    said = fail(2, "evaluate", model_path, heldout, *SEPARATED)
    assert said == f"Error: {model_path} gives each text one label; evaluate it on rows with one label each.\n"
    assert "each row needs exactly one" in fail(3, "evaluate", model_path, lines)
    plots = heldout.with_name("plots of nothing")
    target = ("--target-recall", "0.9", "--plots", plots)
    assert f"and {model_path} gives one" in fail(2, "evaluate", model_path, heldout, *target)
    assert not plots.exists()
    with pytest.raises(InputError, match=r"^Row 0 has labels in a list, and this model gives one label per text\.$"):
        textcls.evaluate(classifier, [("refund", ["returns"])])
    with pytest.raises(
        ConfigError, match=r"^A target recall is for models with several labels per text; this one gives"
    ):
        textcls.evaluate(classifier, [("refund", "returns")], target_recall=0.5)


def test_python_refuses_one_string_in_the_place_of_labels(several_labels: Classifier) -> None:
    with pytest.raises(InputError, match=r"^Row 1 has the string 'returns' for a label, .*; write \['returns'\]\.$"):
        textcls.evaluate(several_labels, [("a", []), ("refund", "returns")])
    with pytest.raises(InputError, match=r"^The labels of row 0 hold a number in their list"):
        textcls.evaluate(several_labels, [("a", [3])])  # type: ignore[list-item]
    assert textcls.evaluate(several_labels, [("a", {"returns": 0.75, "billing": 0.25})]).report.labels[1].rows == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--target-precision 0.9 --target-recall 0.9", "both choose the thresholds; use only one of them."),
        ("--target-recall 0.9 --threshold 0.5", "--target-recall chooses a threshold and --threshold sets one"),
        (
            "--store",
            "--store needs a threshold to save: add --target-precision, --threshold or, with several labels",
        ),
        ("--task single", "and --task single asks for one; leave it out."),
    ],
)
def test_options_that_do_not_go_together_are_refused(model: Path, lines: Path, options: str, said: str) -> None:
    assert said in fail(2, "evaluate", model, lines, *options.split())


def test_nothing_is_stored_in_a_model_of_one_label_and_none_that_is_no_probability(
    model: Path, model_path: Path, tmp_path: Path
) -> None:
    from textcls.model.model_file.thresholds import store_thresholds

    one = Path(shutil.copy(model_path, tmp_path / "one.onnx"))
    with pytest.raises(ConfigError, match="has one label a text, and 7 thresholds were given"):
        store_thresholds(one, [0.5] * 7)
    with pytest.raises(ConfigError, match="has 7 labels a text may have, and 2 thresholds were given"):
        store_thresholds(model, [0.5] * 2)
    with pytest.raises(ConfigError, match=r"threshold must be a number from 0 to 1, not 1\.5"):
        store_thresholds(model, [1.5] * 7)
    assert one.read_bytes() == model_path.read_bytes()


def test_what_a_model_says_of_one_label_has_no_thresholds_of_labels(classifier: Classifier) -> None:
    assert {"scale", "shift", "thresholds"}.isdisjoint(classifier.info.to_json())
    assert ModelInfo.from_metadata(classifier.info.to_metadata(), classifier.path) == classifier.info
    assert run("inspect", classifier.path, "--json").exit_code == 0


def test_a_model_of_rows_that_were_merged_reads_others_so_too(lines: Path, tmp_path: Path) -> None:
    labelled = [json.loads(line) for line in lines.read_text().splitlines()]
    rows = [(row["text"], label) for row in labelled for label in row["label"] or [""]]
    path = write_rows(tmp_path / "rows.csv", [("text", "label"), *rows])
    how = ("--vectors", "none", "--epochs", "2", "--output", tmp_path / "m.onnx")
    said = run("train", path, "--merge-rows", *how)
    assert f"{len(rows):,} rows are {len(labelled):,} texts" in said.stderr
    assert json.loads(succeed("evaluate", tmp_path / "m.onnx", path, "--json"))["rows"] == len(labelled)
    assert f"{len(labelled)} rows" in succeed("drift", tmp_path / "m.onnx", path)
    assert f"{len(rows):,} rows are {len(labelled):,} texts" in run("evaluate", tmp_path / "m.onnx", path).stderr
    # A column that is read as well changes nothing; where nothing is labelled each row counts.
    numbered = [(*row, str(i % 2)) for i, row in enumerate(rows)]
    by = write_rows(tmp_path / "by.csv", [("text", "label", "n"), *numbered])
    report = ("report", tmp_path / "m.onnx", by, "--by", "n", "--output", tmp_path / "r.json")
    assert f"{len(labelled):,} rows ->" in succeed(*report)
    bare = write_rows(tmp_path / "bare.csv", [("text",), *((text,) for text, _ in rows)])
    assert f"{len(rows)} rows" in succeed("drift", tmp_path / "m.onnx", bare)
    # The lists of other rows are read, too.
    assert f"{len(labelled):,} rows with labels" in succeed("drift", tmp_path / "m.onnx", lines)
    for refused in (("--write", "w.csv"), ("--labels", "--suspects", "w.csv"), ("--column", "text")):
        assert "--merge-rows makes one row of" in fail(2, "check", path, "--merge-rows", *refused)
    advice = "If each label of a text has its own row, use --merge-rows."
    for several in ([], ["--task", "several"]):
        assert advice in " ".join(succeed("check", path, "--on-error", "skip", *several).split())
    assert advice not in " ".join(succeed("check", path, "--merge-rows").split())
