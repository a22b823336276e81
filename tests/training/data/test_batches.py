"""In which order texts are read."""

import numpy as np

from textcls_training.data.batches import PREDICTION_TOKENS, epoch_batches, plain_batches


def test_the_batches_of_an_epoch_hold_every_text_once_with_similar_lengths_together() -> None:
    lengths = np.random.default_rng(0).integers(0, 500, 1000)
    found = list(epoch_batches(lengths, 8, np.random.default_rng(1)))
    assert sorted(np.concatenate(found).tolist()) == list(range(1000))
    assert sorted({len(batch) for batch in found}) == [8]
    assert np.mean([np.ptp(lengths[batch]) for batch in found]) < 50
    # Short and long batches alternate, else the epoch would end on long texts.
    assert abs(np.mean([lengths[b].mean() for b in found[:60]]) - lengths.mean()) < 75


def test_the_batches_of_an_epoch_follow_the_generator_alone() -> None:
    lengths = np.arange(100)
    one, same, other = (
        [batch.tolist() for batch in epoch_batches(lengths, 8, np.random.default_rng(seed))] for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_the_batches_of_a_prediction_hold_every_text_once_by_length() -> None:
    lengths = np.array([3, 0, 7, 1, 5])
    assert [batch.tolist() for batch in plain_batches(lengths, 2)] == [[1, 3], [0, 4], [2]]


def test_the_batches_of_a_prediction_are_small_where_texts_are_long() -> None:
    lengths = np.random.default_rng(0).integers(0, 2049, 500)
    found = list(plain_batches(lengths, 256))
    assert sorted(np.concatenate(found).tolist()) == list(range(500))
    assert max(len(batch) * lengths[batch].max() for batch in found) <= PREDICTION_TOKENS
    assert [batch.tolist() for batch in plain_batches(np.array([10**6, 10**7]), 256)] == [[0], [1]]
