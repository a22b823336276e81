"""The order in which texts are read: shuffled batches of similar length for an epoch, by length for a prediction."""

from collections.abc import Iterator

import numpy as np

from textcls_training.data.arrays import Int64

# Tokens in a batch of a prediction, including padding: a mixing layer may need memory for each pair of a text's tokens.
PREDICTION_TOKENS = 2**16


def epoch_batches(lengths: Int64, batch_size: int, rng: np.random.Generator) -> Iterator[Int64]:
    """Yield every text once, in random batches of similar length: shuffle, sort within pools, shuffle the batches."""
    order = rng.permutation(len(lengths))
    pool = 32 * batch_size
    pools = (order[i : i + pool] for i in range(0, len(order), pool))
    ordered = np.concatenate([p[np.argsort(lengths[p], kind="stable")] for p in pools])
    batches = [ordered[i : i + batch_size] for i in range(0, len(ordered), batch_size)]
    for i in rng.permutation(len(batches)):
        yield batches[i]


def plain_batches(lengths: Int64, batch_size: int) -> Iterator[Int64]:
    """Yield every text once, by length, as prediction does. Long texts come in small batches."""
    order = np.argsort(lengths, kind="stable")
    first = 0
    while first < len(order):
        longest = max(1, int(lengths[order[first : first + batch_size][-1]]))
        last = first + min(batch_size, max(1, PREDICTION_TOKENS // longest))
        yield order[first:last]
        first = last
