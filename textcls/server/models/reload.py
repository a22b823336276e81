"""Ask for an exchange of the models: counted, told to the audit trail, and beside other work if need be."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from textcls.errors import SurroundingsError, TextclsError
from textcls.server.models.store import GenerationStore
from textcls.server.monitoring import audit, logs, metrics
from textcls.server.monitoring.metrics import Counts

_LOGGER: Final = logging.getLogger(__name__)


@contextmanager
def explained(failed: str, refused: Callable[[str], None]) -> Iterator[None]:
    """Tell `refused` in a sentence why what is done within is refused.

    Raises:
        TextclsError: what was raised within, or in its place, since whatever happens the old models go on answering.
    """
    try:
        yield
    except TextclsError as error:
        refused(str(error))
        raise
    except Exception as error:
        why = f"{failed} ({type(error).__name__})."
        refused(why)
        _LOGGER.error(why, extra={"where": logs.places(error)})
        raise SurroundingsError(why) from error


@contextmanager
def counted(counts: Counts, store: GenerationStore, caller: audit.Caller) -> Iterator[None]:
    """Count a try to exchange the models, tell who asked for it, and log why it is refused; raises as `explained`."""

    def refused(reason: str) -> None:
        counts.add(metrics.RELOADS, "refused")
        audit.tell("An exchange of models and keys was refused", caller, "refused", reason=reason)
        _LOGGER.error("The new models are refused, the old ones go on answering: %s", reason)

    with explained("The exchange of the models failed", refused):
        yield
    counts.add(metrics.RELOADS, "done")
    number, models = store.models()
    audit.tell("Models and keys were exchanged", caller, "done", generation=number, models=models)


class Reloader:
    """Exchanges the models beside the other work of a process that has no event loop.

    One exchange at a time; if another is asked for meanwhile, one more follows, since files may have changed again.
    """

    def __init__(self, store: GenerationStore, counts: Counts) -> None:
        self._store, self._counts = store, counts
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        """Let the models be exchanged soon."""
        self._asked.set()
        if self._thread is None:
            # A daemon: nobody waits for it in the end.
            self._thread = threading.Thread(target=self._run, name="textcls-reload", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while self._asked.wait():
            self._asked.clear()
            # A refusal has been logged and counted.
            with suppress(TextclsError), counted(self._counts, self._store, audit.SIGNAL):
                self._store.publish()
