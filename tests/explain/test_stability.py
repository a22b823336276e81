"""How sure a reason is: intervals from several models, by hand, on the command line, and beside a training."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from tests.command_line import fail, read_rows, run, succeed, write_rows
from tests.explanations import made_up
from textcls import Classifier, Prediction
from textcls.display.html.explanation import prediction_fragment
from textcls.display.remarks import spread_line
from textcls.display.terminal.explanation import whisker
from textcls.display.token_table import token_table
from textcls.explain import stability
from textcls.explain.stability import load_others, with_spread
from textcls_training.pipeline import training as pipeline

TEXT = "my card was charged twice"


def answer(*added: float) -> Prediction:
    """An answer of a model of two labels, in which each token adds so much to the first."""
    explanation = made_up("aa bb. cc", [(value, 0.0) for value in added], ("for", "against"))
    return Prediction(explanation.labels, explanation.probability_values, "accept", False, explanation)


@pytest.mark.parametrize("models", [2, 6, 11, 12, 40])
def test_a_further_model_lies_in_the_interval_95_times_of_100(models: int) -> None:
    value_MT = np.random.default_rng().normal(3.0, 2.0, (models + 1, 20_000)).astype(np.float32)
    low_T, high_T = stability._interval(value_MT[:-1])
    assert np.mean((low_T <= value_MT[-1]) & (value_MT[-1] <= high_T)) == pytest.approx(0.95, abs=0.01)
    half_T = t.ppf(0.975, models - 1) * value_MT[:-1].std(0, ddof=1) * np.sqrt(1 + 1 / models)
    assert (high_T - low_T) / 2 == pytest.approx(half_T, rel=2e-3, abs=1e-4)


def test_the_interval_of_a_token_is_that_of_its_values_in_all_models() -> None:
    first, second, third = answer(2.0, 0.5, 0.0, -1.0), answer(1.0, -0.5, 0.0, -2.0), answer(-3.0, 0.7, 0.0, -1.5)
    assert first.explanation is not None
    found = with_spread(first.explanation.attribution("for"), first, [second, third])
    spread = found.spread
    assert spread is not None
    # By hand: means of 0, 7/30, 0 and -1.5, standard deviations of 7 ** 0.5, 0.643, 0 and 0.5, times 4.303 and 1.155.
    assert spread.low.tolist() == pytest.approx([-13.146, -2.961, 0.0, -3.984], abs=2e-3)
    assert spread.high.tolist() == pytest.approx([13.146, 3.427, 0.0, 0.984], abs=2e-3)
    assert spread.sure.tolist() == [False, False, False, False]
    assert (spread.models, spread.agreed) == (3, 1)
    scores = [float(one.probabilities[0]) for one in (first, second, third)]
    assert (spread.lowest_score, spread.highest_score) == (min(scores), max(scores))
    assert "1 answer alike" in spread_line("for", spread)
    assert "4 of 4 intervals contain zero" in spread_line("for", spread)
    assert with_spread(first.explanation.attribution(), first, []).spread is None


def test_intervals_of_units_are_those_of_their_sums_and_not_sums_of_intervals() -> None:
    first, second = answer(1.0, 1.0, 1.0, 3.0), answer(2.0, -2.0, 1.0, 4.0)
    assert first.explanation is not None
    found = with_spread(first.explanation.grouped("sentence").attribution("for"), first, [second], "sentence")
    assert found.spread is not None
    # Sums of 3 and 1 in the first sentence, of 3 and 4 in the second; half the width is 12.706 * 1.225 * s.
    assert ((found.spread.low + found.spread.high) / 2).tolist() == pytest.approx([2.0, 3.5])
    assert (found.spread.high - found.spread.low)[0] == pytest.approx(2 * (found.spread.high - found.spread.low)[1])


def test_a_whisker_reaches_from_end_to_end_of_the_interval_and_shows_which_hold_zero() -> None:
    first, second = answer(2.0, 1.0, 0.0, -1.9), answer(1.9, -1.0, 0.0, -2.0)
    assert first.explanation is not None
    attribution = with_spread(first.explanation.attribution("for"), first, [second])
    table = token_table(first.explanation, attribution, range(4))
    drawn = [whisker(row, table.strongest).plain for row in table.rows]
    # The second token's interval, -22 to 22, is as wide as the line; those of the first and last are 0.8 to 3.1 wide.
    assert drawn[0] == " " * 10 + "\u2500\u25cf" + " " * 9
    assert drawn[1] == "\u2500" * 10 + "\u25cf" + "\u2500" * 10
    assert drawn[3] == " " * 9 + "\u25cf\u2500" + " " * 10
    page = prediction_fragment(first, others=[second])
    assert page.count("<b title=") == 4
    assert page.count("its interval contains zero") == 2
    assert "<b title=" not in prediction_fragment(first)


def test_the_command_tells_ranges_over_the_models_of_a_folder(model_path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "others"
    folder.mkdir()
    (folder / "1.onnx").write_bytes(model_path.read_bytes())
    output = succeed("explain", model_path, TEXT, "--stability", folder)
    assert "Over 2 models: 2 answer alike" in output
    assert output.splitlines()[4].split()[:6] == ["token", "attention", "evidence", "low", "high", "95%"]
    found = json.loads(succeed("explain", model_path, TEXT, "--stability", folder, "--json"))
    told = found["evidence"]["stability"]
    assert told["low"] == told["high"] == found["evidence"]["tokens"]
    assert told["models"] == told["agreed"] == 2
    assert "stability" not in json.loads(succeed("explain", model_path, TEXT, "--json"))["evidence"]


def test_models_of_other_rows_are_refused(model_path: Path, several_labels_path: Path, tmp_path: Path) -> None:
    assert "holds no model" in fail(3, "explain", model_path, TEXT, "--stability", tmp_path)
    assert "other labels" in fail(2, "explain", model_path, TEXT, "--stability", several_labels_path)


def test_resamples_of_other_rows_are_refused(model_path: Path, tmp_path: Path, sample_path: Path) -> None:
    how = ("--epochs", "1", "--vectors", "none", "--quiet")
    half = [(row["text"], row["label"]) for row in read_rows(sample_path)[::2]]
    rows = write_rows(tmp_path / "half.csv", [("text", "label"), *half])
    succeed("train", sample_path, "-o", tmp_path / "all.onnx", *how)
    succeed("train", rows, "-o", tmp_path / "half.onnx", *how)
    assert "Over 2 models" in succeed(
        "explain", tmp_path / "all.onnx", "my card", "--stability", tmp_path / "half.onnx"
    )
    left = tmp_path / "all.resamples"
    left.mkdir()
    for name in ("1.onnx", "2.onnx"):  # the one that is explained counts once
        (left / name).write_bytes((tmp_path / ("all.onnx" if name == "1.onnx" else "half.onnx")).read_bytes())
    said = fail(2, "explain", tmp_path / "all.onnx", "my card", "--stability", left)
    assert "2.onnx was made of other rows than" in said
    left.rename(tmp_path / "others")
    assert "Over 2 models" in succeed("explain", tmp_path / "all.onnx", "my card", "--stability", tmp_path / "others")


def test_training_leaves_models_of_resampled_rows_beside_the_model(tmp_path: Path, sample_path: Path) -> None:
    rows = read_rows(sample_path)[:150]
    table = write_rows(tmp_path / "rows.csv", [("text", "label"), *((row["text"], row["label"]) for row in rows)])
    quick = ("--epochs", "1", "--vectors", "none", "--quiet", "--resamples", "2")
    succeed("train", table, "--output", tmp_path / "m.onnx", *quick)
    folder = tmp_path / "m.resamples"
    assert sorted(path.name for path in folder.iterdir()) == ["1.onnx", "2.onnx"]
    first = Classifier.load(tmp_path / "m.onnx")
    others = load_others(folder, first)
    values = [model.explain(TEXT).contributions for model in (first, *others)]
    assert not np.array_equal(values[1], values[2])
    stale = tmp_path / "again.resamples" / "3.onnx"
    stale.parent.mkdir()
    stale.write_bytes(b"of an earlier training")
    succeed("train", table, "--output", tmp_path / "again.onnx", *quick)
    assert not stale.exists()
    assert (tmp_path / "again.resamples" / "2.onnx").read_bytes() == (folder / "2.onnx").read_bytes()
    (tmp_path / "file.resamples").touch()
    told = fail(6, "train", table, "--output", tmp_path / "file.onnx", *quick)
    assert "file.resamples is not a folder, and --resamples makes one of that name; remove it first." in told
    assert not (tmp_path / "file.onnx").exists()
    text = tmp_path / "more.csv"
    text.write_text("text\nhello\n", encoding="utf-8")
    assert "leave one out" in fail(2, "train", table, "--resamples", "2", "--unlabelled", text)


def test_an_interruption_leaves_no_resamples_of_an_earlier_training(
    tmp_path: Path, sample_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = read_rows(sample_path)[:150]
    table = write_rows(tmp_path / "rows.csv", [("text", "label"), *((row["text"], row["label"]) for row in rows)])
    folder = tmp_path / "m.resamples"
    folder.mkdir()
    for name in ("1.onnx", "2.onnx", "3.onnx", "mine.onnx"):
        (folder / name).write_bytes(b"of an earlier training")
    fitted = 0

    def interrupted(*given: Any, **how: Any) -> Any:
        nonlocal fitted
        fitted += 1
        if fitted == 2:
            raise KeyboardInterrupt
        return train(*given, **how)

    train = pipeline.train
    monkeypatch.setattr(pipeline, "train", interrupted)
    told = ("--epochs", "1", "--vectors", "none", "--quiet", "--resamples", "3")
    assert run("train", table, "--output", tmp_path / "m.onnx", *told).exit_code == 130
    assert fitted == 2
    assert [path.name for path in folder.iterdir()] == ["mine.onnx"]
