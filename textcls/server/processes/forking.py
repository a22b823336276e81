"""Workers are forked from a process that has imported what they answer with: once for all of them.

That process is `multiprocessing`'s fork server. Workers begin at once, and share the memory of what is imported.
Elsewhere than on Linux, libraries of the system need not survive a fork: each worker begins anew.
"""

import os
import sys
from multiprocessing import forkserver, get_context, parent_process, resource_tracker
from typing import Any, Final

from textcls.server.system import signals

CONTEXT: Final[Any] = get_context("forkserver" if sys.platform == "linux" else "spawn")
_SAFE_PATH: Final = "PYTHONSAFEPATH"
# In a worker that was forked: the process that it was forked from, and no other that it may have been handed to since.
_IMPORTED_BY: Final = os.getpid()


def orphaned() -> bool:
    """Say whether this worker has lost its supervisor, or what tells that of it: nobody would stop it any more."""
    supervisor = parent_process()
    forked = os.getpid() != _IMPORTED_BY
    return supervisor is None or not supervisor.is_alive() or (forked and os.getppid() != _IMPORTED_BY)


def begin() -> None:
    """Start that process if it does not run; it ends after this one and the workers have ended.

    It hears no signal: what is sent to all processes, each worker hears for itself.
    """
    if CONTEXT.get_start_method() != "forkserver":
        return
    CONTEXT.set_forkserver_preload([__name__, "textcls.server.processes.server"])
    before = os.environ.get(_SAFE_PATH)
    # It would import what lies in the folder that it is started in.
    os.environ[_SAFE_PATH] = "1"
    try:
        # By itself, since it unblocks signals.
        resource_tracker.ensure_running()
        with signals.pending_in_children(*signals.STOPPING):
            forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before
