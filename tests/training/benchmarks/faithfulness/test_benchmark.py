import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from faithfulness.benchmark import explain_benchmark
from faithfulness.methods import METHODS, Counted, Method
from faithfulness.results import BenchmarkResult, RationaleCounts
from tests.training.benchmarks.faithfulness.conftest import TEXTS
from textcls import Classifier
from textcls.errors import ConfigError, InputError, TextclsError
from textcls_training.data.arrays import Float64

CHEAP = "contributions,random"


def test_every_method_has_every_figure(result: BenchmarkResult) -> None:
    assert [method.name for method in result.methods] == list(METHODS)
    for method in result.methods:
        assert {group: len(figures) for group, figures in method.figures.items()} == {
            "delete": 7,
            "mask": 7,
            "plausibility": 15,
            "robustness": 4,
        }


def test_texts_without_a_token_are_counted_and_left_out(result: BenchmarkResult) -> None:
    assert (result.texts, result.skipped) == (3, 1)
    assert result.methods[0].figures["delete"]["comprehensiveness"].count == 3


def test_leave_one_out_agrees_with_itself_and_chance_does_not_with_another_model(result: BenchmarkResult) -> None:
    by_name = {method.name: method.figures for method in result.methods}
    assert by_name["leave_one_out"]["delete"]["loo_tau"].value == pytest.approx(1)
    assert by_name["contributions"]["robustness"]["other_model"].value == pytest.approx(1)
    assert by_name["random"]["robustness"]["other_model"].value != pytest.approx(1)


def test_the_contributions_cost_one_call(result: BenchmarkResult) -> None:
    assert result.methods[0].calls == 1
    assert all(method.milliseconds > 0 for method in result.methods)


def test_the_contributions_are_compared_with_every_other_method(result: BenchmarkResult) -> None:
    assert {one.other for one in result.comparisons} == set(METHODS) - {"contributions"}
    assert {one.verdict for one in result.comparisons} <= {"better", "not worse", "worse", None}


def test_what_became_of_the_rationales_is_counted(result: BenchmarkResult) -> None:
    assert result.rationales == RationaleCounts(used=2, unmarked=1, unaligned=0, unknown_label=0, inexact=0)


def test_changes_that_do_not_apply_are_counted(result: BenchmarkResult) -> None:
    assert result.changed == {"typo": 3, "synonym": 1, "duplicate": 3, "other_model": 3}


def test_the_result_is_plain_data_without_nan(result: BenchmarkResult) -> None:
    found = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert found["methods"][0]["figures"]["delete"]["sufficiency"]["count"] == 3


def test_the_same_seed_gives_the_same_figures(classifier: Classifier) -> None:
    one, other = (explain_benchmark(classifier, TEXTS, methods=["contributions", "random"]) for _ in range(2))
    assert [method.figures for method in one.methods] == [method.figures for method in other.methods]
    assert one.comparisons == other.comparisons


def test_a_failing_method_is_named_and_stops_the_measurement(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_model: Counted, _seed: int) -> Method:
        def scores(text: str, label: int) -> Float64:
            raise ZeroDivisionError("of all things")

        return scores

    monkeypatch.setitem(METHODS, "attention", broken)
    with pytest.raises(
        TextclsError, match=r"The method attention failed on a text of 5 tokens \(ZeroDivisionError: of"
    ):
        explain_benchmark(classifier, TEXTS, methods=["attention"])


def test_scores_that_are_no_numbers_are_refused(classifier: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "attention", lambda _model, _seed: lambda _text, _label: np.array([float("nan")]))
    with pytest.raises(TextclsError, match="gave no finite score for each of 5 tokens"):
        explain_benchmark(classifier, TEXTS, methods=["attention"])


def test_models_of_other_labels_cannot_be_compared(classifier: Classifier, model_path: Path) -> None:
    other = Classifier.load(model_path)
    other.info = replace(other.info, labels=tuple("abcdefg"))
    with pytest.raises(ConfigError, match="only models of the same labels"):
        explain_benchmark(classifier, TEXTS, other=other)


def test_no_token_at_all_is_an_error(classifier: Classifier) -> None:
    with pytest.raises(InputError, match="No text contains a word"):
        explain_benchmark(classifier, ["", " "])
    with pytest.raises(ConfigError, match="1 texts and 0 rationales"):
        explain_benchmark(classifier, ["a"], rationales=[])
    with pytest.raises(ConfigError, match="removals are"):
        explain_benchmark(classifier, ["a"], removals=[])
