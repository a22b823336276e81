"""The perfect hash: every feature is found, others are not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textcls.model import features
from textcls_training.export.perfect_hash import PerfectHash


def hashes(count: int, seed: int = 0) -> features.Uint32:
    found = np.random.default_rng(seed).choice(2**32 - 1, count, replace=False) + 1
    return found.astype(np.uint32)


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 5))
@settings(max_examples=40)
def test_every_hash_has_a_row_of_its_own(first: int, second: int, seed: int) -> None:
    every = hashes(first + second, seed)
    kinds = every[:first], every[first:]
    index, numbers = PerfectHash.of(*kinds)
    assert index.kinds == (first, second)
    for kind, number in zip(kinds, numbers, strict=True):
        assert sorted(number) == list(range(len(kind)))
    in_order = np.concatenate([kind[number] for kind, number in zip(kinds, numbers, strict=True)])
    np.testing.assert_array_equal(index.rows(in_order), np.arange(first + second))


def test_hashes_that_share_all_low_bits_are_told_apart() -> None:
    every = (np.arange(1, 200, dtype=np.uint32) << np.uint32(20)) + np.uint32(5)
    index, (number,) = PerfectHash.of(every)
    np.testing.assert_array_equal(index.rows(every[number]), np.arange(199))


def test_a_strange_hash_is_taken_for_a_row_about_once_in_four_hundred() -> None:
    index, _ = PerfectHash.of(hashes(5000))
    strange = hashes(200_000, seed=1)
    taken = (index.rows(strange) != index.absent).mean()
    assert 0.0015 < taken < 0.0035
    # Whoever is taken for a row meets its fingerprint.
    row = index.rows(strange)
    met = row < 5000
    assert (index.fingerprint_R[row[met]] == strange[met] >> np.uint32(24)).all()


@pytest.mark.parametrize("seed", range(5))
def test_padding_has_its_row_and_no_feature_stands_around_texts(seed: int) -> None:
    end = np.array([features.end_hash()], np.uint32)
    around = features.bigram_hashes(np.array([features.START, end[0]], np.uint32), np.repeat(end, 2))
    # Even if training has seen them: an empty text has the bigram of START and END.
    given_hashes = np.unique(np.concatenate([hashes(3000, seed), end, around, np.zeros(1, np.uint32)]))
    index, (number,) = PerfectHash.of(given_hashes)
    assert len(number) == len(given_hashes) - 4
    assert index.rows(end).tolist() == [len(number)]
    assert (index.rows(np.append(around, np.uint32(0))) == index.absent).all()
