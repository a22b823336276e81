"""The limit on open files of the service: each connection counts as one."""

import logging
import resource
from contextlib import suppress
from typing import Final

from textcls.errors import SurroundingsError

# Files besides connections: those that stay free, and those that models, counts and the event loop have open.
_BESIDE: Final = 100
# With fewer not even the event loop starts.
_LEAST: Final = 64
_LOGGER: Final = logging.getLogger(__name__)


def allow(connections: int) -> None:
    """Raise this process's limit, which its workers inherit, to what these connections need, or warn if that fails.

    Raises:
        SurroundingsError: the limit is too low for the service to start.
    """
    wanted = connections + _BESIDE
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if most() < raised:
        with suppress(ValueError, OSError):  # The kernel or a filter may not allow it.
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    if most() < _LEAST:
        raise SurroundingsError(f"Only {most()} files may be open here, and a service needs {_LEAST}: raise ulimit -n.")
    if most() < wanted:
        _LOGGER.warning(
            "With max_connections %d up to %d files may be open, and here only %d: new connections wait before that; "
            "raise the limit (ulimit -n), or lower max_connections.",
            connections,
            wanted,
            most(),
        )


def most() -> int:
    """Return how many files this process may have open."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 62 if limit == resource.RLIM_INFINITY else limit
