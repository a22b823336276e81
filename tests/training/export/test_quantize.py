"""Quantisation: rows in few bits are off by half a step at most."""

import numpy as np
import pytest

from textcls.errors import ConfigError
from textcls_training.export.quantize import QuantizedRows


@pytest.mark.parametrize(("bits", "steps"), [(8, 127), (4, 7)])
def test_rows_are_quantised_by_half_a_step_at_most(bits: int, steps: int) -> None:
    column_rgy = np.random.default_rng(0).normal(size=(50, 2, 5)).astype(np.float32)
    squared_norm_r = np.linspace(0, 20, 50, dtype=np.float32)
    quantized = QuantizedRows.of(column_rgy, squared_norm_r, bits)  # type: ignore[arg-type]
    assert np.abs(quantized.step_RGY).max() == steps
    found = quantized.dequantized()
    step_rg1 = np.abs(column_rgy).max(2, keepdims=True) / steps
    assert (np.abs(found[..., :-1] - column_rgy) <= 0.6 * step_rg1).all()
    np.testing.assert_allclose(found[:, 0, -1], squared_norm_r, rtol=1e-3, atol=1e-4)
    assert (found[..., -1] > 0).all()


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 65_505, -1e6])
@pytest.mark.parametrize("place", ["column", "squared norm"])
def test_numbers_that_a_loaded_table_could_not_hold_are_an_error(number: float, place: str) -> None:
    column_rgy, squared_norm_r = np.ones((2, 1, 3), np.float32), np.ones(2, np.float32)
    QuantizedRows.of(65_504 * column_rgy, 65_504 * squared_norm_r, 8)
    (column_rgy if place == "column" else squared_norm_r)[1] = number
    with pytest.raises(
        ConfigError, match=r"^Training diverged: a row .* not finite or above 65,504; lower the learning"
    ):
        QuantizedRows.of(column_rgy, squared_norm_r, 8)


def test_the_scale_of_a_row_is_exact_to_a_share_of_the_largest() -> None:
    largest = np.float32(60_000)
    column_rgy = largest * np.array([1, 1e-3, 1e-5, 1e-7, 1e-9], np.float32).reshape(-1, 1, 1)
    quantized = QuantizedRows.of(column_rgy, np.ones(5, np.float32), 8)
    found = quantized.scale_RG[:, 0].astype(np.float32) * quantized.largest
    np.testing.assert_allclose(found, column_rgy[:, 0, 0] / 127, rtol=1 / 2000, atol=3e-8 * quantized.largest)
    assert found[-1] == 0
