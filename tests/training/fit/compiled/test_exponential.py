"""Exponentials by vector instructions: those of `np.exp`, within what numbers of 32 bits hold."""

import numpy as np

from textcls_training.fit.compiled.exponential import exponential


def test_exponentials_are_those_of_numpy() -> None:
    x = np.linspace(-87, 88, 1_000_003, dtype=np.float32)
    found = x.copy()
    exponential(found)
    np.testing.assert_allclose(found, np.exp(x.astype(np.float64)), rtol=1.5e-7)


def test_of_whatever_lies_beyond_the_result_is_the_last_one() -> None:
    found = np.array([-np.inf, -1e9, -87, 88, 1e9, np.inf], np.float32)
    exponential(found)
    np.testing.assert_array_equal(found[:3], found[2])
    np.testing.assert_array_equal(found[3:], found[3])
    assert np.isfinite(found).all()
