"""A model evaluated from Python: what `textcls evaluate` prints is what `textcls.evaluate` returns."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import textcls
from tests.command_line import read_rows, succeed, write_rows
from textcls import Classifier, ConfigError, InputError

Row = tuple[str, str]


@pytest.fixture
def rows(sample_path: Path) -> list[Row]:
    """Sixty labelled rows, two of a label that the small model does not know."""
    return [(row["text"], row["label"]) for row in read_rows(sample_path)[-58:]] + [("a", "gossip"), ("b", "gossip")]


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--threshold", "0.5"], {"threshold": 0.5}),
        (["--target-precision", "0.6"], {"target_precision": 0.6}),
    ],
)
def test_the_command_prints_what_the_function_returns(
    model_path: Path,
    classifier: Classifier,
    rows: list[Row],
    tmp_path: Path,
    options: list[str],
    arguments: dict[str, float],
) -> None:
    data = write_rows(tmp_path / "heldout.csv", [("text", "label"), *rows])
    printed = json.loads(succeed("evaluate", model_path, data, "--json", *options))
    found = json.loads(json.dumps(textcls.evaluate(classifier, rows, **arguments).as_json()))
    assert printed.get("abstaining", {}).pop("stored", False) is False
    assert printed == found


def test_rows_are_read_once_and_may_have_no_end_in_sight(classifier: Classifier, rows: list[Row]) -> None:
    def some() -> Iterator[Row]:
        yield from rows

    found = textcls.evaluate(classifier, some())
    assert found == textcls.evaluate(classifier, rows)
    assert found.report.rows == 60
    assert found.unknown_labels == ("gossip",)
    assert found.operating_point is None


def test_a_target_that_is_out_of_reach_gives_the_best_threshold_and_says_so(classifier: Classifier) -> None:
    wrong = next(label for label in classifier.labels if label != classifier.predict("my card").label)
    found = textcls.evaluate(classifier, [("my card", wrong)], target_precision=0.5)
    assert found.operating_point is not None
    assert (found.reached, found.operating_point.precision) == (False, 0.0)


def test_the_threshold_of_the_model_counts_unless_another_is_given(classifier: Classifier, rows: list[Row]) -> None:
    strict = Classifier.load(classifier.path)
    strict.info = replace(strict.info, threshold=0.9)
    own, other = textcls.evaluate(strict, rows), textcls.evaluate(strict, rows, threshold=0.2)
    assert own.operating_point is not None
    assert other.operating_point is not None
    assert (own.operating_point.threshold, other.operating_point.threshold) == (0.9, 0.2)
    assert own.operating_point.accepted < other.operating_point.accepted


def test_no_rows_cannot_be_evaluated_on(classifier: Classifier) -> None:
    with pytest.raises(InputError, match="There are no rows to evaluate on; a generator gives its rows once"):
        textcls.evaluate(classifier, iter([]))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("a", None), "Row 1 has no label; leave it out."),
        (("a", float("nan")), "Row 1 has no label; leave it out."),
        (("a", 3), "Row 1 has a label that is not a string but int."),
        (("a", "billing", 1.0), "Row 1 is not a pair of a text and what it should get: pass zip"),
        (5, "Row 1 is not a pair of a text and what it should get: pass zip"),
        ((None, "billing"), "Row 1 has a text that is not a string but NoneType."),
        ("ab", "Row 1 is not a pair of a text and what it should get: pass zip"),
    ],
)
def test_a_row_that_is_no_text_and_its_label_is_named(classifier: Classifier, row: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        textcls.evaluate(classifier, [("b", "billing"), row])


def test_of_several_labels_a_row_that_is_no_pair_is_named(several_labels: Classifier) -> None:
    for row in (("a", ["billing"], 1.0), "ab"):
        with pytest.raises(InputError, match=r"Row 0 is not a pair of a text and what it should get: pass zip"):
            textcls.evaluate(several_labels, [row])  # type: ignore[list-item]


def test_a_target_and_a_threshold_do_not_go_together(classifier: Classifier, rows: list[Row]) -> None:
    with pytest.raises(ConfigError, match="give one of them, not both"):
        textcls.evaluate(classifier, rows, target_precision=0.9, threshold=0.5)


@pytest.mark.parametrize("threshold", [1.5, -0.1, float("nan"), True])
def test_a_threshold_that_is_no_probability_is_refused(classifier: Classifier, threshold: float) -> None:
    with pytest.raises(ConfigError, match="threshold must be a number from 0 to 1"):
        textcls.evaluate(classifier, [("a", "b")], threshold=threshold)
