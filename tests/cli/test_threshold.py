"""The model's own threshold: found by `evaluate --target-precision`, stored, and kept by predict, server and Python."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import textcls.cli.evaluate as evaluation
from tests.command_line import fail, read_rows, run, succeed, write_rows
from tests.service.server import service, serving
from textcls import ArtifactError, Classifier, ConfigError
from textcls.evaluation.selective_prediction import at
from textcls.model.artifact import METADATA_KEY
from textcls.model.model_file.thresholds import store_threshold


@pytest.fixture
def model(model_path: Path, tmp_path: Path) -> Path:
    """A copy of the small model, which may be written to."""
    return Path(shutil.copy(model_path, tmp_path / "tickets.onnx"))


@pytest.fixture
def heldout(sample_path: Path, tmp_path: Path) -> Path:
    """Rows of which the small model has seen some, so that it answers many right."""
    rows = [list(row.values()) for row in read_rows(sample_path)[100:220]]
    return write_rows(tmp_path / "heldout.csv", [("text", "label"), *rows, ("a", "gossip")])


def test_the_coverage_of_evaluate_is_the_share_that_predict_and_the_server_accept(
    model: Path, heldout: Path, tmp_path: Path
) -> None:
    said = succeed("evaluate", model, heldout, "--target-precision", "0.7", "--store", "--json")
    found = json.loads(said)["abstaining"]
    assert (found["rows"], found["chosen"], found["reached"], found["stored"]) == (121, True, True, True)
    assert 0 < found["accepted"] < 121
    assert found["precision"] >= 0.7
    assert found["precision_at_least"] < found["precision"]
    assert found["coverage"] == found["accepted"] / 121

    again = json.loads(succeed("evaluate", model, heldout, "--json"))["abstaining"]
    assert again == found | {"chosen": False, "stored": False}

    succeed("predict", model, heldout, "--output", tmp_path / "answers.csv")
    decisions = [row["decision"] for row in read_rows(tmp_path / "answers.csv")]
    assert decisions.count("accept") == found["accepted"]

    classifier = Classifier.load(model)
    texts = [row["text"] for row in read_rows(heldout)]
    with serving(service(classifier)) as client:
        # One by one: what else is in a batch must not decide.
        answers = [client.post("/v1/classify", json={"inputs": text}).json() for text in texts]
    served = [answer["results"][0]["decision"] for answer in answers]
    assert served == decisions == [answer.decision for answer in classifier.predict(texts)]


def test_storing_a_threshold_changes_nothing_else_in_the_file(model: Path, model_path: Path) -> None:
    store_threshold(model, 0.625)
    before, after = onnx.load(model_path), onnx.load(model)
    (old,), (new,) = before.metadata_props, after.metadata_props
    assert json.loads(new.value) == json.loads(old.value) | {"threshold": 0.625}
    new.value = old.value
    assert after.SerializeToString(deterministic=True) == model_path.read_bytes()
    assert new.key == METADATA_KEY
    store_threshold(model, None)
    assert model.read_bytes() == model_path.read_bytes()


def test_a_stored_threshold_is_shown_and_kept(model: Path) -> None:
    store_threshold(model, 0.625)
    assert "0.625" in succeed("inspect", model)
    prediction = Classifier.load(model).predict("")
    assert (prediction.threshold, prediction.decision) == (0.625, "abstain")


def test_a_link_to_a_model_stays_a_link(model: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.onnx"
    link.symlink_to(model)
    store_threshold(link, 0.5)
    assert link.is_symlink()
    assert Classifier.load(model).info.threshold == 0.5


def test_what_cannot_be_stored_is_refused_and_the_file_stays(model: Path, tmp_path: Path) -> None:
    before = model.read_bytes()
    with pytest.raises(ConfigError, match="threshold must be a number from 0 to 1"):
        store_threshold(model, 1.5)
    with pytest.raises(ConfigError, match="threshold must be a number from 0 to 1"):
        store_threshold(model, True)
    with pytest.raises(ArtifactError, match="There is no model file"):
        store_threshold(tmp_path / "no.onnx", 0.5)
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(ArtifactError, match="is not an ONNX file, or it is damaged"):
        store_threshold(tmp_path / "bad.onnx", 0.5)
    assert model.read_bytes() == before


def test_evaluate_says_how_many_rows_are_answered_and_how_well(model: Path, heldout: Path) -> None:
    assert "coverage" not in succeed("evaluate", model, heldout)
    output = succeed("evaluate", model, heldout, "--target-precision", "0.7")
    assert "The threshold was chosen on these rows for a precision of 70.00%" in output
    assert Classifier.load(model).info.threshold is None
    output = succeed("evaluate", model, heldout, "--target-precision", "0.7", "--store")
    assert output.splitlines()[-1] == f"Saved in {model}, which now abstains below it."
    own = succeed("evaluate", model, heldout).splitlines()[-1]
    assert own in output.splitlines()
    threshold = Classifier.load(model).info.threshold
    assert own.startswith(f"At threshold {threshold:g} it answers ")
    assert "of 121 rows: coverage " in own
    assert "(with 95% confidence at least " in own


def test_a_precision_that_cannot_be_reached_is_reported_with_the_best_that_can(model: Path, tmp_path: Path) -> None:
    rows = [("my card was charged twice", "technical"), ("where is my parcel", "sales")]
    data = write_rows(tmp_path / "odd.csv", [("text", "label"), *rows])
    before = model.read_bytes()
    result = run("evaluate", model, data, "--target-precision", "0.5", "--store")
    assert result.exit_code == 3
    assert result.stderr == (
        "Error: No threshold reaches a precision of 50.00% on these rows; the best is 0.00%, at threshold 0, which "
        "answers 2 of 2 rows; nothing was saved.\n"
    )
    assert "2 rows   accuracy 0.00%" in result.stdout
    result = run("evaluate", model, data, "--target-precision", "0.5", "--json")
    assert json.loads(result.stdout)["abstaining"]["reached"] is False
    assert model.read_bytes() == before


def test_a_target_of_nothing_takes_the_threshold_away(model: Path, heldout: Path) -> None:
    store_threshold(model, 0.999)
    succeed("evaluate", model, heldout, "--target-precision", "0", "--store")
    answers = Classifier.load(model).predict([row["text"] for row in read_rows(heldout)])
    assert {answer.decision for answer in answers} == {"accept"}


def test_storing_needs_a_target(model: Path, heldout: Path) -> None:
    assert "--store needs a threshold to save" in fail(2, "evaluate", model, heldout, "--store")


def test_a_threshold_of_ones_own_is_evaluated_and_stored(model: Path, heldout: Path) -> None:
    one = json.loads(succeed("evaluate", model, heldout, "--threshold", "0.6", "--json"))["abstaining"]
    assert (one["threshold"], one["chosen"], one["stored"]) == (0.6, False, False)
    assert 0 < one["accepted"] < one["rows"]
    assert Classifier.load(model).info.threshold is None
    succeed("evaluate", model, heldout, "--threshold", "0.6", "--store")
    assert Classifier.load(model).info.threshold == 0.6
    refused = run("evaluate", model, heldout, "--threshold", "0.6", "--target-precision", "0.9")
    assert (refused.exit_code, "use only one of them" in refused.stderr) == (2, True)


def test_a_threshold_goes_into_no_other_model_than_the_one_it_was_chosen_for(
    model: Path, heldout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: Any = vars(evaluation)["evaluate_labels"]

    def and_replaced(*given: object, **options: object) -> object:
        store_threshold(model, 0.25)
        return judged(*given, **options)

    monkeypatch.setattr(evaluation, "evaluate_labels", and_replaced)
    result = run("evaluate", model, heldout, "--threshold", "0.6", "--store")
    assert result.exit_code == 4
    assert (
        f"{model} was replaced since it was read, and its content would be lost: give the command again"
        in result.stderr
    )
    assert Classifier.load(model).info.threshold == 0.25


def test_a_version_of_a_registry_never_changes(model: Path, heldout: Path, tmp_path: Path) -> None:
    succeed("publish", model, tmp_path / "registry")
    version = tmp_path / "registry" / "1" / "model.onnx"
    before = version.read_bytes()
    said = fail(4, "evaluate", version, heldout, "--threshold", "0.6", "--store")
    assert "is a version of a registry, which never changes" in said
    with pytest.raises(ArtifactError, match="never changes"):
        store_threshold(version, 0.5)
    assert version.read_bytes() == before


def test_a_model_that_answers_nothing_has_no_precision(model: Path, tmp_path: Path) -> None:
    store_threshold(model, 1.0)
    data = write_rows(tmp_path / "one.csv", [("text", "label"), ("", "billing")])
    assert "it answers 0 of 1 rows: coverage 0.00%, so there is no precision." in succeed("evaluate", model, data)


def test_the_rule_of_evaluate_is_that_of_the_classifier_to_the_last_bit(model: Path) -> None:
    classifier = Classifier.load(model)
    texts = ["my card", "where is my parcel", "", "refund please"]
    confidence = np.array([answer.probabilities.max() for answer in classifier.predict(texts)])
    for score in confidence:
        for threshold in (float(score), float(np.nextafter(score, np.float32(1))), float(score) + 1e-12):
            decisions = [answer.decision for answer in classifier.predict(texts, threshold=threshold)]
            found = at(threshold, confidence, np.ones(4, np.bool_))
            assert found.accepted == decisions.count("accept")
