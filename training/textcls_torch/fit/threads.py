"""The number of PyTorch's threads while it trains, and its random generators."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread(seed: int) -> Iterator[None]:
    """Run the block with one PyTorch thread and seeded generators, and restore both afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
