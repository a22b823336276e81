"""The table on the device: rows read and moved, by the twin and by the kernels, against plain loops in float64."""

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from textcls_kernels.impl import Impl
from textcls_kernels.rows import Uses, move_rows, read_rows
from textcls_kernels.testing import count_launches

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="the kernels need triton: pip install 'textcls[kernels]'"
)
every_impl = pytest.mark.parametrize("impl", ["reference", pytest.param("triton", marks=needs_triton)])
WIDTHS = (1, 5, 16, 32, 100)
every_width = pytest.mark.parametrize("width", WIDTHS)
ROWS, RATE, START = 40, 0.3, 0.01

# Rows of each place.
CASES: dict[str, list[list[int]]] = {
    "no places": [],
    "no uses": [[], [], []],
    "one token": [[3]],
    "row 0 alone": [[0, 0], [0]],
    "one row used by all": [[7]] * 70,
    "one row used by all and more": [[7, 1 + i % 3] for i in range(150)],
    "a row twice in a token": [[5, 5, 2], [5], [2, 2, 2, 2, 2]],
    "row 0 among others": [[0, 4, 0], [], [4, 0], [9, 0, 4, 1, 2, 3, 5, 6, 7, 8]],
    "exactly one window": [[2] * 32, [11] * 32],
    "a window and one more": [[2] * 65],
    "a row over the edges of windows": [[1] * 60, [2] * 8, [3] * 60, [4] * 130, [6]],
    "the last row ends with a window": [[1] * 3, [2] * 61, [3] * 64],
}
every_case = pytest.mark.parametrize("case", CASES)


def uses_of(rows_X: Sequence[Sequence[int]]) -> Uses:
    row_R = torch.tensor([row for rows in rows_X for row in rows], dtype=torch.int32)
    ends = np.cumsum([0, *map(len, rows_X)])
    return Uses.of(row_R.to(DEVICE), torch.from_numpy(ends).to(DEVICE))


def table_of(width: int, rows: int = ROWS) -> tuple[torch.Tensor, ...]:
    """Weights, rows and accumulators; row 0 has a weight here, and is not zero, so that what it did would be seen."""
    generator = torch.Generator().manual_seed(width)
    weight_V = torch.rand(rows, generator=generator) + 0.1
    row_VD = torch.randn(rows, width, generator=generator)
    return tuple(tensor.to(DEVICE) for tensor in (weight_V, row_VD, torch.full((rows,), START)))


def gradient(places: int, width: int) -> torch.Tensor:
    return torch.randn(places, width, generator=torch.Generator().manual_seed(1)).to(DEVICE)


def exact(tensor: torch.Tensor) -> NDArray[np.float64]:
    array: NDArray[np.float64] = tensor.cpu().double().numpy()
    return array


def plain_read(rows_X: Sequence[Sequence[int]], weight_V: Any, row_VD: Any) -> tuple[Any, Any]:
    x_XD, q_X = np.zeros((len(rows_X), row_VD.shape[1])), np.zeros(len(rows_X))
    for x, rows in enumerate(rows_X):
        for r in rows:
            x_XD[x] += weight_V[r] * row_VD[r]
            q_X[x] += weight_V[r] ** 2
    return x_XD, q_X


def plain_move(rows_X: Sequence[Sequence[int]], weight_V: Any, row_VD: Any, sum_V: Any, grad_XD: Any) -> None:
    grad_VD = np.zeros_like(row_VD)
    for x, rows in enumerate(rows_X):
        for r in rows:
            grad_VD[r] += weight_V[r] * grad_XD[x]
    for r in {r for rows in rows_X for r in rows} - {0}:
        sum_V[r] += (grad_VD[r] ** 2).mean()
        row_VD[r] -= RATE * grad_VD[r] / np.sqrt(sum_V[r])


@every_impl
@every_width
@every_case
def test_a_place_reads_the_weighted_sum_of_its_rows(case: str, width: int, impl: Impl) -> None:
    weight_V, row_VD, _ = table_of(width)
    x_XD, q_X = read_rows(uses_of(CASES[case]), weight_V, row_VD, impl)
    wanted_XD, wanted_X = plain_read(CASES[case], exact(weight_V), exact(row_VD))
    np.testing.assert_allclose(exact(x_XD), wanted_XD, rtol=1e-5, atol=2e-5)
    np.testing.assert_allclose(exact(q_X), wanted_X, rtol=1e-5)


@every_impl
@every_width
@every_case
def test_rows_move_by_adagrad_and_row_0_never(case: str, width: int, impl: Impl) -> None:
    weight_V, row_VD, sum_V = table_of(width)
    before_VD, wanted_VD, wanted_V = exact(row_VD).copy(), exact(row_VD).copy(), exact(sum_V).copy()
    grad_XD = gradient(len(CASES[case]), width)
    plain_move(CASES[case], exact(weight_V), wanted_VD, wanted_V, exact(grad_XD))
    move_rows(uses_of(CASES[case]), weight_V, row_VD, sum_V, grad_XD, RATE, impl)
    np.testing.assert_allclose(exact(row_VD), wanted_VD, rtol=1e-5, atol=2e-5)
    np.testing.assert_allclose(exact(sum_V), wanted_V, rtol=1e-4)
    still = sorted(set(range(ROWS)) - {r for rows in CASES[case] for r in rows} | {0})
    np.testing.assert_array_equal(exact(row_VD)[still], before_VD[still])


@needs_triton
@pytest.mark.parametrize("width", [5, 32])
def test_two_runs_of_the_kernels_give_the_same_bits(width: int) -> None:
    random = np.random.default_rng(0)
    rows_X = [random.zipf(1.3, 6).clip(max=ROWS - 1).tolist() for _ in range(60)]
    found = []
    for _ in range(2):
        weight_V, row_VD, sum_V = table_of(width)
        x_XD, q_X = read_rows(uses_of(rows_X), weight_V, row_VD, "triton")
        move_rows(uses_of(rows_X), weight_V, row_VD, sum_V, x_XD, RATE, "triton")
        found.append([tensor.cpu().numpy().tobytes() for tensor in (x_XD, q_X, row_VD, sum_V)])
    assert found[0] == found[1]


@needs_triton
def test_the_sum_of_a_row_does_not_hang_on_what_else_the_batch_uses_below_a_window() -> None:
    """A row with one piece has the same bits wherever it stands among the sorted uses."""
    rows_X = [[9], [9], [9, 20]]
    more_X = [[1, 2, 3, 9], [9, 5], [9, 20]]
    found = []
    for case in (rows_X, more_X):
        weight_V, row_VD, sum_V = table_of(32)
        move_rows(uses_of(case), weight_V, row_VD, sum_V, gradient(3, 32), RATE, "triton")
        found.append(row_VD[9].cpu().numpy().tobytes())
    assert found[0] == found[1]


@needs_triton
def test_a_step_is_a_launch_to_read_and_one_to_move_and_one_more_where_there_are_several_windows() -> None:
    weight_V, row_VD, sum_V = table_of(16)
    few, many = uses_of([[1, 2]]), uses_of([[1]] * 65)
    with count_launches() as launches:
        read_rows(few, weight_V, row_VD, "triton")
        move_rows(few, weight_V, row_VD, sum_V, gradient(1, 16), RATE, "triton")
    assert launches == Counter(gather_kernel=1, adagrad_kernel=1)
    with count_launches() as launches:
        move_rows(many, weight_V, row_VD, sum_V, gradient(65, 16), RATE, "triton")
    assert launches == Counter(adagrad_kernel=1, adagrad_pieces_kernel=1)


def test_the_twin_keeps_float64() -> None:
    weight_V, row_VD, sum_V = (tensor.double() for tensor in table_of(5))
    uses = uses_of(CASES["row 0 among others"])
    x_XD, _ = read_rows(uses, weight_V, row_VD, "reference")
    wanted_XD, _ = plain_read(CASES["row 0 among others"], exact(weight_V), exact(row_VD))
    assert x_XD.dtype == torch.float64
    np.testing.assert_allclose(exact(x_XD), wanted_XD, rtol=1e-14)
    move_rows(uses, weight_V, row_VD, sum_V, x_XD, RATE, "reference")
    assert row_VD.dtype == torch.float64


def test_arguments_that_break_a_rule_are_refused_in_words_that_say_which() -> None:
    weight_V, row_VD, sum_V = table_of(5)
    uses, grad_XD = uses_of([[1, 2], [3]]), gradient(2, 5)
    with pytest.raises(ValueError, match=r"^a table is contiguous rows; expected row_VD \[V, D\] .* strides \[1, 40\]"):
        read_rows(uses, weight_V, row_VD.T.contiguous().T)
    with pytest.raises(ValueError, match=r"^weight_V belongs to the table .* expected \[40\] on .*, got \[39\] on"):
        read_rows(uses, weight_V[1:], row_VD)
    with pytest.raises(TypeError, match=r"^sum_V has the type of the rows; expected torch.float32, got torch.float64"):
        move_rows(uses, weight_V, row_VD, sum_V.double(), grad_XD, RATE)
    with pytest.raises(ValueError, match=r"^grad_XD belongs .* expected \[2, 5\] on .*, got \[1, 5\]"):
        move_rows(uses, weight_V, row_VD, sum_V, grad_XD[1:], RATE)
    with pytest.raises(TypeError, match=r"^row_R has a type of its own; expected torch.int32, got torch.int64"):
        read_rows(uses._replace(row_R=uses.row_R.long()), weight_V, row_VD)
    with pytest.raises(ValueError, match=r"^place_R stands where the table does; expected a contiguous \[3\] on"):
        read_rows(uses._replace(place_R=uses.place_R[1:]), weight_V, row_VD)


@needs_triton
def test_the_kernels_refuse_other_types_than_theirs() -> None:
    weight_V, row_VD, _ = (tensor.double() for tensor in table_of(5))
    with pytest.raises(TypeError, match=r"^the kernels of the table have one type; expected torch.float32, got"):
        read_rows(uses_of([[1]]), weight_V, row_VD, "triton")
