"""How many threads a training has, and why its bytes do not hang on them.

Sums over many elements and the gradient of a layer norm depend on how many threads share them, so each training keeps
to one thread of PyTorch. Two trainings that share nothing may run side by side.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

from textcls_training.config.resolve import Trainers
from textcls_training.torch_parts import torch_part


@contextmanager
def reproducible(seed: int, impl: Trainers = "reference") -> Iterator[None]:
    """One thread of PyTorch and its seeded generators inside; everything as before outside.

    The compiled trainer has no threads of its own, draws from NumPy's generators, and leaves PyTorch alone.
    """
    with nullcontext() if impl == "compiled" else torch_part("fit.threads").one_thread(seed):
        yield


@contextmanager
def in_second_thread(jobs: Sequence[Callable[[], None]], cancel: Callable[[], None]) -> Iterator[None]:
    """Run `jobs` one after the other in a second thread, beside the block, which is left when all are done.

    An error in the block or in a job calls `cancel`, at which the running job is to end, drops the jobs that have not
    begun, and is raised.
    """
    with ThreadPoolExecutor(1) as pool:
        running: list[Future[None]] = [pool.submit(job) for job in jobs]
        try:
            yield
            for job in running:
                job.result()
        except BaseException:
            cancel()
            for job in running:
                job.cancel()
            raise
