"""The number of threads of a training, and why its bytes do not depend on them.

Sums over many elements and the gradient of a layer norm depend on how many threads share them, so each training uses
one thread of PyTorch, or of the matrix products of the compiled loops with many labels. Two trainings that share
nothing may run side by side.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext

from threadpoolctl import threadpool_limits

from textcls_training.config.resolve import MANY_LABELS, Trainers
from textcls_training.torch_parts import torch_part


@contextmanager
def reproducible(seed: int, impl: Trainers = "reference", labels: int = 0) -> Iterator[None]:
    """Use one thread of PyTorch and its seeded generators inside; restore everything outside.

    The other trainers use no threads of PyTorch, draw from NumPy's generators, and do not touch PyTorch.
    """
    with torch_part("fit.threads").one_thread(seed) if impl == "reference" else _one_thread_of_blas(labels):
        yield


def _one_thread_of_blas(labels: int) -> AbstractContextManager[object]:
    if labels < MANY_LABELS:
        return nullcontext()
    import scipy.linalg.cython_blas  # noqa: F401  # what Numba calls, which would else be loaded within

    limits: AbstractContextManager[object] = threadpool_limits(1, "blas")
    return limits


@contextmanager
def in_second_thread(jobs: Sequence[Callable[[], None]], cancel: Callable[[], None]) -> Iterator[None]:
    """Run `jobs` one after the other in a second thread, beside the block, which is left when all are done.

    An error in the block or in a job calls `cancel`, which should end the running job, drops the jobs that have not
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
