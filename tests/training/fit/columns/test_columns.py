"""What columns beside the text add: curves and tables by hand, and which columns held-out rows keep."""

import numpy as np
import pytest

from textcls.data.column_kinds import columns_of, described
from textcls.model.columns import Column
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.fit.columns import regression
from textcls_training.fit.columns.design import Design
from textcls_training.fit.columns.gains import LEAST_ROWS
from textcls_training.fit.columns.regression import Rows, fit
from textcls_training.fit.columns.selection import errors_of, fit_columns
from textcls_training.fit.selection import SelectionResult, select
from textcls_training.fit.validation import LabelSetValidation, LabelValidation
from textcls_training.models.columns import Curves

LABELS = ["no", "yes"]


def test_a_ramp_rises_from_0_to_1_between_its_knots_and_counts_from_its_mean() -> None:
    curves = Curves(
        np.array([[10, 20]], np.float32),
        np.array([[10, 5]], np.float32),
        np.array([[0.25, 0.5]], np.float32),
        np.zeros((1, 3, 0), np.float32),
    )
    found = curves.ramps(np.array([[0], [15], [20], [22.5], [99], [np.nan]], np.float32))
    expected = [[-0.25, -0.5, 0], [0.25, -0.5, 0], [0.75, -0.5, 0], [0.75, 0, 0], [0.75, 0.5, 0], [0, 0, 1]]
    np.testing.assert_allclose(found[0], np.array(expected))


def test_a_curve_is_a_line_between_the_quantiles_and_flat_beyond() -> None:
    cells = [[str(i)] for i in range(81)]
    design = Design.of([Column("price", "number")], cells)
    rise_FC = np.array([[float(i)] for i in range(1, 9)] + [[7.0]])
    terms = design.terms(rise_FC, np.zeros(1))
    at = terms.added([["-5"], ["0"], ["5"], ["10"], ["15"], ["80"], ["99"], [""]])[:, 0, 0]
    steps = np.array([0, 0, 0.5, 1, 2, 36, 36])
    np.testing.assert_allclose(at[:-1] - at[1], steps, atol=1e-5)
    assert at[-1] == 7
    # In the mean over the rows a curve adds nothing.
    np.testing.assert_allclose(terms.added(cells).mean(0), 0, atol=1e-5)


def test_a_table_adds_nothing_in_the_mean_and_nothing_for_a_value_that_is_not_in_it() -> None:
    cells = [["a"]] * 6 + [["b"]] * 2
    design = Design.of([Column("product", "category")], cells)
    assert list(design.row) == [(0, "a"), (0, "b")]
    terms = design.terms(np.array([[1.0], [5.0]]), np.array([0.5]))
    np.testing.assert_allclose(terms.added([["a"], ["b"], ["c"], [""]])[:, 0, 0], [-1, 3, 0, 0])
    np.testing.assert_allclose(terms.bias_C, [0.5 + 2])


@pytest.mark.parametrize("several", [False, True])
def test_the_regression_is_at_its_minimum(several: bool) -> None:
    draw = np.random.default_rng(1)
    design = Design.of([Column("a", "number"), Column("b", "category")], _cells(draw, 60))
    target = (draw.random((60, 2)) < 0.5) if several else np.eye(2)[draw.integers(0, 2, 60)]
    rows = Rows(draw.normal(size=(60, 2)), design.features, target.astype(float), several)
    found = fit(rows, 2.0)

    def loss(weight_FC: np.ndarray) -> float:
        logits = found._replace(weight_FC=weight_FC).logits(rows.text_RC, rows.features)
        return float(rows.losses(logits).sum() + (weight_FC**2).sum())

    least = loss(found.weight_FC)
    for _ in range(20):
        assert loss(found.weight_FC + draw.normal(0, 0.05, found.weight_FC.shape)) > least - 1e-4


@pytest.mark.parametrize("several", [False, True])
def test_a_column_that_tells_is_kept_and_noise_is_left_out(several: bool) -> None:
    draw = np.random.default_rng(7)
    label_R = draw.integers(0, 2, 600)
    told = np.where(draw.random(600) < 0.7, label_R, draw.integers(0, 2, 600))
    cells = [[str(draw.normal()), str(draw.normal()), f"{which}"] for which in told]
    columns = (Column("noise", "number"), Column("more noise", "number"), Column("telling", "category"))
    found = fit_columns(columns, cells, _selected(label_R, draw, several=several))
    assert [gain.kept for gain in found.gains] == [False, False, True]
    assert found.terms is not None
    assert [column.name for column in found.terms.columns] == ["telling"]
    before = _selected(label_R, np.random.default_rng(7), several=several)
    assert _loss(found.selected) < _loss(before) - 0.1


def test_columns_of_noise_alone_leave_the_text_as_it_is() -> None:
    draw = np.random.default_rng(3)
    selected = _selected(draw.integers(0, 2, 400), draw)
    cells = [[f"{draw.integers(0, 9)}"] for _ in range(400)]
    found = fit_columns([Column("noise", "category")], cells, selected)
    assert found.terms is None
    assert found.selected is selected
    assert not found.gains[0].kept


def test_fits_that_are_ended_early_know_nothing_of_the_rows_that_judge_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regression, "CELLS_OF_ALL_ITERATIONS", 0)
    draw = np.random.default_rng(5)
    label_R = draw.integers(0, 30, 900)
    logits_RC = (3 * np.eye(30)[label_R] + draw.normal(0, 1, (900, 30))).astype(np.float32)
    cells = [[f"{label // 5 if draw.random() < 0.7 else 9}", f"{draw.integers(0, 200)}"] for label in label_R]
    columns = [Column("telling", "category"), Column("noise", "category")]
    found = fit_columns(columns, cells, select(LabelValidation(label_R), [logits_RC[None]]))
    assert [gain.kept for gain in found.gains] == [True, False]


def test_few_rows_fit_nothing() -> None:
    draw = np.random.default_rng(3)
    label_R = draw.integers(0, 2, LEAST_ROWS - 1)
    found = fit_columns([Column("label", "category")], [[f"{i}"] for i in label_R], _selected(label_R, draw))
    assert found.terms is None


def _cells(draw: np.random.Generator, rows: int) -> list[list[str]]:
    return [["" if draw.random() < 0.1 else str(draw.normal()), f"{draw.integers(0, 3)}"] for _ in range(rows)]


def _selected(label_R: np.ndarray, draw: np.random.Generator, *, several: bool = False) -> SelectionResult:
    """Let rows choose whose texts say little of the labels."""
    logits_RC = (np.eye(2)[label_R] + draw.normal(0, 2, (len(label_R), 2))).astype(np.float32)
    if several:
        matrix = LabelMatrix.of([{LABELS[i]: 1.0} for i in label_R], LABELS)
        return select(LabelSetValidation(matrix), [logits_RC[None]])
    return select(LabelValidation(label_R), [logits_RC[None]])


def _loss(selected: SelectionResult) -> float:
    return float(selected.validation.losses(selected.calibration.probabilities(selected.logits)).mean())


def test_of_many_columns_each_has_to_help_by_more_so_that_noise_is_kept_as_rarely_as_of_one() -> None:
    errors = [errors_of(columns) for columns in (1, 10, 60)]
    assert errors == pytest.approx([2.0, 2.84, 3.36], abs=0.01)
    normal_DC = np.random.default_rng(5).normal(size=(20_000, 60))
    assert (normal_DC.max(1) > errors[-1]).mean() == pytest.approx((normal_DC[:, 0] > 2).mean(), abs=0.005)


def test_a_value_of_one_row_is_not_kept() -> None:
    design = Design.of([Column("product", "category")], [["a"], ["a"], ["somebody"]])
    assert list(design.row) == [(0, "a")]
    (column,) = columns_of({"product": None}, {"product": ["a", "A ", "somebody"]}, [])
    assert column.values == ("a",)
    assert described(Column("id", "category")) == "id (category, no value twice)"
