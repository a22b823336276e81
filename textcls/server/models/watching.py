"""Reload models and keys when their files are replaced: in every pod of a cluster, by each pod itself.

A signal or `POST /v1/admin/reload` reaches one process; a volume reaches all. Kubernetes replaces the files of a Secret
or a ConfigMap by replacing a symbolic link; a person uses `mv`. Either changes the result of `stat` on the target.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from textcls._util.file_lock import try_lock
from textcls.server.models import loading
from textcls.server.models.file_stamps import Stamps
from textcls.server.models.store import GenerationStore
from textcls.server.monitoring.audit import WATCH, Caller
from textcls.server.problems import RefusalError

_LOGGER: Final = logging.getLogger(__name__)
_HANGS_SECONDS: Final = 30.0


async def follow(store: GenerationStore, seconds: float, reload: Callable[[Caller], Awaitable[object]]) -> None:
    """Reload whenever files have been replaced, until cancelled; only one of several workers does.

    Args:
        store: the store of what is served, and of the files it was read from.
        seconds: the time between checks of the files.
        reload: reloads models and keys, or raises RefusalError.

    Raises:
        SurroundingsError: the workers' shared folder is gone.
    """
    with (store.folder / "watching").open("w") as file:
        before: Stamps | None = None
        refused: Stamps | None = None
        while True:
            await asyncio.sleep(seconds)
            # The lock is held until the process ends; then another worker takes over.
            if not try_lock(file.fileno()):
                continue
            found = await _looked_up(store.files)
            if found == await _looked_up(store.published_files):
                refused = None
            # A file that has changed since the last check may still be being written.
            elif found == before and found != refused:
                refused = found
                with suppress(RefusalError):  # already logged and counted
                    await reload(WATCH)
                    refused = None
            before = found


async def _looked_up(look: Callable[[], Stamps]) -> Stamps:
    done = asyncio.wrap_future(loading.in_thread(look))
    await asyncio.wait([done], timeout=_HANGS_SECONDS)
    if not done.done():
        _LOGGER.error("Model and key files cannot be looked at: their file system does not answer.")
    return await done
