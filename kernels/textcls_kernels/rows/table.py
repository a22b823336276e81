"""A table of rows that tokens read and training moves, on the device: two operations, the same bits on every run.

    read_rows     a place (token) gets x = sum_r c_r E_r and q = sum_r c_r^2 over its rows
    move_rows     each row that is used gets g_r = c_r sum_x dx_x, and row-wise Adagrad moves it by that:
                  s_r += mean_d g_rd^2, E_r -= rate g_r / sqrt(s_r)

Row 0 stands for nothing and never moves. Autograd does not pass through: trainers call `move_rows` with the gradient of
x. `impl` is that of `metric_attention`: the twin (`table_reference.py`) or the kernels (`_table.py`), float32 only.

Letters: X places, R uses of rows, V rows of the table, D width.
"""

from typing import NamedTuple

import torch

from textcls_kernels.impl import Impl, resolve_impl
from textcls_kernels.rows import table_reference

# One program keeps a whole row.
MAX_WIDTH = 1024


class Uses(NamedTuple):
    """Which rows each place uses: place x those from `start_X[x]` to `start_X[x + 1]`.

    Values are not checked, since that would wait for the GPU: rows that a table does not have read other memory.

    Attributes:
        row_R: rows, in the order of places, int32.
        place_R: the place of each, int32.
        start_X: where those of a place begin, and where the last end, int64 [X + 1].
    """

    row_R: torch.Tensor
    place_R: torch.Tensor
    start_X: torch.Tensor

    @classmethod
    def of(cls, row_R: torch.Tensor, start_X: torch.Tensor) -> "Uses":
        """Return the uses, with the place of each row computed from `start_X`."""
        place_X = torch.arange(len(start_X) - 1, dtype=torch.int32, device=row_R.device)
        return cls(row_R, place_X.repeat_interleave(start_X.diff(), output_size=len(row_R)), start_X)

    @property
    def places(self) -> int:
        """How many places there are, with and without rows."""
        return len(self.start_X) - 1


def read_rows(
    uses: Uses, weight_V: torch.Tensor, row_VD: torch.Tensor, impl: Impl = "auto"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the vector [X, D] and the sum of squared weights [X] of each place; 0 where there are no rows.

    Args:
        uses: which rows places use.
        weight_V: what each row counts, c.
        row_VD: the rows, E.
        impl: what computes it.

    Raises:
        ValueError: a shape or a device breaks a rule, or `impl` cannot run there.
        TypeError: a type breaks a rule.
        ModuleNotFoundError: `impl` needs Triton, which is not installed.
    """
    chosen = _checked(uses, row_VD, {"weight_V": weight_V}, impl)
    if chosen == "reference":
        return table_reference.gather(uses.row_R, uses.place_R, weight_V, row_VD, uses.places)
    from textcls_kernels.rows import _launch_table

    x_XD, norm_X = row_VD.new_empty(uses.places, row_VD.shape[1]), row_VD.new_empty(uses.places)
    if uses.places:
        _launch_table.gather(uses.row_R, uses.start_X, weight_V, row_VD, x_XD, norm_X)
    return x_XD, norm_X


def move_rows(
    uses: Uses,
    weight_V: torch.Tensor,
    row_VD: torch.Tensor,
    sum_V: torch.Tensor,
    grad_XD: torch.Tensor,
    rate: float | torch.Tensor,
    impl: Impl = "auto",
) -> None:
    """Move the rows that are used, and add to their accumulators, both in place.

    Args:
        uses: which rows places use.
        weight_V: what each row counts, c.
        row_VD: the rows, E.
        sum_V: their accumulators, s.
        grad_XD: the gradient of the vectors of places, dx.
        rate: the learning rate, a number or a scalar tensor on the table's device, of its type: a step recorded as a
            CUDA graph reads it anew each time.
        impl: what computes it.

    Raises:
        ValueError: a shape or a device breaks a rule, or `impl` cannot run there.
        TypeError: a type breaks a rule.
        ModuleNotFoundError: `impl` needs Triton, which is not installed.
    """
    chosen = _checked(uses, row_VD, {"weight_V": weight_V, "sum_V": sum_V}, impl)
    _check_shape("grad_XD", grad_XD, (uses.places, row_VD.shape[1]), row_VD)
    if isinstance(rate, torch.Tensor):
        _check_shape("rate", rate, (), row_VD)
    if not len(uses.row_R):
        return
    if chosen == "reference":
        table_reference.adagrad(uses.row_R, uses.place_R, weight_V, row_VD, sum_V, grad_XD, rate)
        return
    from textcls_kernels.rows import _launch_table

    rate = rate if isinstance(rate, torch.Tensor) else torch.full((), rate, device=row_VD.device)
    sorted_R, order_R = uses.row_R.sort(stable=True)
    _launch_table.adagrad(sorted_R, order_R, uses.place_R, weight_V, row_VD, sum_V, grad_XD.contiguous(), rate)


def _checked(uses: Uses, row_VD: torch.Tensor, by_row: dict[str, torch.Tensor], impl: Impl) -> str:
    """Check shapes, types and devices, and return the implementation."""
    if row_VD.dim() != 2 or not 1 <= row_VD.shape[1] <= MAX_WIDTH or not row_VD.is_contiguous():
        got = f"shape {list(row_VD.shape)}, strides {list(row_VD.stride())}"
        raise ValueError(f"a table is contiguous rows; expected row_VD [V, D] with 1 <= D <= {MAX_WIDTH}, got {got}")
    for name, tensor in by_row.items():
        _check_shape(name, tensor, (len(row_VD),), row_VD)
    for name, tensor, dtype, length in (
        ("row_R", uses.row_R, torch.int32, len(uses.row_R)),
        ("place_R", uses.place_R, torch.int32, len(uses.row_R)),
        ("start_X", uses.start_X, torch.int64, max(1, len(uses.start_X))),
    ):
        if tensor.dtype != dtype:
            raise TypeError(f"{name} has a type of its own; expected {dtype}, got {tensor.dtype}")
        if tuple(tensor.shape) != (length,) or tensor.device != row_VD.device or not tensor.is_contiguous():
            raise ValueError(
                f"{name} stands where the table does; expected a contiguous [{length}] on {row_VD.device},"
                f" got {list(tensor.shape)} on {tensor.device}"
            )
    chosen = resolve_impl(row_VD.device, impl)
    if chosen == "triton" and row_VD.dtype != torch.float32:
        raise TypeError(f"the kernels of the table have one type; expected {torch.float32}, got {row_VD.dtype}")
    return chosen


def _check_shape(name: str, tensor: torch.Tensor, shape: tuple[int, ...], row_VD: torch.Tensor) -> None:
    if tuple(tensor.shape) != shape or tensor.device != row_VD.device:
        raise ValueError(
            f"{name} belongs to the table or to its uses; expected {list(shape)} on {row_VD.device},"
            f" got {list(tensor.shape)} on {tensor.device}"
        )
    if tensor.dtype != row_VD.dtype:
        raise TypeError(f"{name} has the type of the rows; expected {row_VD.dtype}, got {tensor.dtype}")
