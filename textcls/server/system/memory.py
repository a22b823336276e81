"""How much memory the service needs, and how freed memory goes back to the system.

The latter is told to glibc; other C libraries have ways of their own.
"""

import ctypes
import gc
import logging
from typing import Final

from textcls._util import memory
from textcls.server.settings import Settings

# As malloc.h numbers them.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
# Blocks from this size on are mapped one by one, and so much may be free behind the others. With less, an answer of a
# model of thousands of labels gets all its pages anew, and takes three times as long.
_MAPPED_BYTES, _KEPT_BYTES = 4 << 20, 8 << 20
# Measured, in bytes: a worker without a model, and by how much requests may exceed what they are estimated to hold; the
# process that tests models before they are exchanged; the supervisor of several workers. For each byte of the models:
# what a worker keeps, and what loading takes for a moment.
_WORKER, _TESTER, _SUPERVISOR = 125_000_000, 65_000_000, 100_000_000
_LOADED, _LOADING = 5, 30
# So many objects are made before young ones are searched for cycles.
_GARBAGE_OBJECTS: Final = 10_000
_LOGGER: Final = logging.getLogger(__name__)


def needed(settings: Settings, model_bytes: int) -> int:
    """Return about how many bytes all processes of the service need while requests hold all they may.

    Args:
        settings: the settings of the service.
        model_bytes: the size of all model files together, when they are read.
    """
    workers = settings.workers
    # What is taught makes the files larger, and whoever teaches loads one beside the others, which take up the last.
    model_bytes += settings.teaching * settings.max_taught_bytes
    lasting = workers * (_WORKER + settings.max_held_bytes + _LOADED * model_bytes)
    # A reload is tested first; then the workers load it. The shared folder, which is memory, holds old and new files.
    passing = _LOADING * model_bytes
    lasting += settings.teaching * passing
    return lasting + max(_TESTER + passing, workers * passing) + 2 * model_bytes + (workers > 1) * _SUPERVISOR


def check_limit(settings: Settings, model_bytes: int) -> None:
    """Warn if the container may have less than the service needs: it would be killed under load, without a word."""
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
    """Let every large block go back to the system as soon as it is freed.

    By itself glibc raises the size from which it maps blocks, up to 32 MB, whenever one is freed, and keeps what is
    below. Bodies, arrays and answers would then stay with a process that has long let go of them: measured, 70 MB
    beyond what requests may hold.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def trim() -> None:
    """Return freed memory to the system, and keep long-lived objects out of the garbage collector's passes.

    Loading a model of 1 MB leaves 20 MB of free memory that glibc would keep.
    """
    gc.collect()
    gc.freeze()
    # A request makes no cycles: looking for some every 700 objects takes 3 % of the time of a short one.
    gc.set_threshold(_GARBAGE_OBJECTS)
    return_holes()


def return_holes() -> None:
    """Return what is free between blocks that are in use, which takes milliseconds.

    Bodies, texts and parts of an answer leave holes that the arrays of the next one do not fit into: measured, up to
    45 MB after an answer of 16.
    """
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
