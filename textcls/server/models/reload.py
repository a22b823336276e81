"""Request a reload of the models: counted, recorded in the audit trail, and in the background if needed."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from textcls.errors import SurroundingsError, TextclsError
from textcls.server.models.store import GenerationStore
from textcls.server.monitoring import audit, logs, metrics
from textcls.server.monitoring.metrics import Counts

_LOGGER: Final = logging.getLogger(__name__)


@contextmanager
def counted(counts: Counts, store: GenerationStore, caller: audit.Caller) -> Iterator[None]:
    """Count an attempt to reload the models, and log its caller and why it is refused.

    Raises:
        TextclsError: the error of the block, or one in its place: whatever happens, the old models keep answering.
    """

    def refused(reason: str) -> None:
        counts.add(metrics.RELOADS, "refused")
        audit.tell("An exchange of models and keys was refused", caller, "refused", reason=reason)
        _LOGGER.error("The new models are refused, the old ones go on answering: %s", reason)

    try:
        yield
    except TextclsError as error:
        refused(str(error))
        raise
    except Exception as error:
        why = f"The exchange of the models failed ({type(error).__name__})."
        refused(why)
        _LOGGER.error(why, extra={"where": logs.places(error)})
        raise SurroundingsError(why) from error
    counts.add(metrics.RELOADS, "done")
    number, models = store.models()
    audit.tell("Models and keys were exchanged", caller, "done", generation=number, models=models)


class Reloader:
    """Reloads the models in the background of a process that has no event loop.

    One reload at a time; if another is requested meanwhile, one more follows, since files may have changed again.
    """

    def __init__(self, store: GenerationStore, counts: Counts) -> None:
        self._store, self._counts = store, counts
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        """Request a reload of the models."""
        self._asked.set()
        if self._thread is None:
            # A daemon, so that the process does not wait for it when it ends.
            self._thread = threading.Thread(target=self._run, name="textcls-reload", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while self._asked.wait():
            self._asked.clear()
            # Refusals are already logged and counted.
            with suppress(TextclsError), counted(self._counts, self._store, audit.SIGNAL):
                self._store.publish()
