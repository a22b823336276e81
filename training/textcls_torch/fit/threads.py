"""How many threads PyTorch has while it trains, and what it draws from."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread(seed: int) -> Iterator[None]:
    """One thread of PyTorch and its seeded generators inside; everything as before outside."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
