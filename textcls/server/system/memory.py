"""How much memory the service needs, and how freed memory is returned to the system.

The latter works with glibc only; other C libraries handle it in their own ways.
"""

import ctypes
import gc
import logging
from typing import Final

from textcls._util import memory
from textcls.server.settings import Settings

# Constants from malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
# Blocks from this size on are mapped individually, and this much may stay free at the end of the heap. With less, an
# answer of a model with thousands of labels has to get all its pages again, and takes three times as long.
_MAPPED_BYTES, _KEPT_BYTES = 4 << 20, 8 << 20
# Measured, in bytes: a worker without a model, including how far requests may exceed their estimates; the process that
# tests models before a reload; the supervisor of several workers. Then, per byte of the models: what a worker keeps,
# and what loading takes temporarily.
_WORKER, _TESTER, _SUPERVISOR = 125_000_000, 65_000_000, 100_000_000
_LOADED, _LOADING = 5, 30
# Number of new objects after which the garbage collector searches the young ones for cycles.
_GARBAGE_OBJECTS: Final = 10_000
_LOGGER: Final = logging.getLogger(__name__)


def needed(settings: Settings, model_bytes: int) -> int:
    """Return an estimate of the bytes that all processes of the service need when requests use their whole budget.

    Args:
        settings: the settings of the service.
        model_bytes: the size of all model files together, when they are read.
    """
    workers = settings.workers
    lasting = workers * (_WORKER + settings.max_held_bytes + _LOADED * model_bytes)
    # A reload is first tested, then loaded by the workers. The shared folder, in memory, holds old and new files.
    passing = _LOADING * model_bytes
    return lasting + max(_TESTER + passing, workers * passing) + 2 * model_bytes + (workers > 1) * _SUPERVISOR


def check_limit(settings: Settings, model_bytes: int) -> None:
    """Warn if the container may have less memory than the service needs: it could be killed under load, silently."""
    wanted, limit = needed(settings, model_bytes), memory.limit()
    if limit is not None and limit < wanted:
        _LOGGER.warning(
            "With workers %d, max_held_bytes %d and %.1f MB of models up to %.0f MB of memory may be needed, and this "
            "container has %.0f: raise its limit, or lower max_held_bytes, before it is killed under load.",
            settings.workers,
            settings.max_held_bytes,
            model_bytes / 1e6,
            wanted / 1e6,
            limit / 1e6,
        )


def return_large() -> None:
    """Have every large block returned to the system as soon as it is freed.

    By default glibc raises the size from which it maps blocks, up to 32 MB, whenever one is freed, and keeps smaller
    blocks. The process would then keep the memory of bodies, arrays and answers long after they were freed: as
    measured, 70 MB beyond the budget of requests.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def trim() -> None:
    """Return freed memory to the system, and exempt long-lived objects from garbage collection.

    Loading a model of 1 MB leaves 20 MB of free memory that glibc would keep.
    """
    gc.collect()
    gc.freeze()
    # Requests create no cycles: searching for them every 700 objects takes 3 % of the time of a short request.
    gc.set_threshold(_GARBAGE_OBJECTS)
    return_holes()


def return_holes() -> None:
    """Return free memory between blocks in use to the system, which takes milliseconds.

    Bodies, texts and parts of an answer leave holes that the arrays of the next one do not fit into: as measured, up to
    45 MB after an answer of 16 MB.
    """
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
