"""Shadows are asked what a model has just answered, beside the requests: what both say is counted, and nothing is kept.

A request that has been answered leaves its texts in a queue. A thread of its own asks the shadow about some of them at
a time, no longer than a turn of the event loop, and rests three times as long before the next. It begins nothing while
the worker is busy, and what the queue has no room for is dropped, and counted: nobody waits for a shadow, and nobody is
refused for one.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from time import perf_counter
from typing import Final, NamedTuple

from textcls.model.cost import CALL_BYTES, CALL_TEXTS
from textcls.model.prediction import Prediction
from textcls.server.inference.answers import Answer, Outcome, Request
from textcls.server.inference.micro_batching import TURN
from textcls.server.models.registry import Generation, Served
from textcls.server.monitoring import logs, metrics
from textcls.server.monitoring.metrics import Counts

# So many texts may wait, of so many bytes in all; and a call may take so large a part of what the worker may hold for
# requests. Both come on top of that: what is held for a shadow refuses no request.
MOST_TEXTS: Final = 512
MOST_BYTES: Final = 4_000_000
_PART: Final = 4
# It works for a quarter of the time at most.
_REST: Final = 3
# While the worker is busy it is looked so often whether it still is.
_BUSY_SECONDS: Final = 0.05
# Pairs of labels that a worker counts by their names, over all models and versions.
MOST_PAIRS: Final = 2_000
OTHER: Final = "other"
# Of a shadow that fails over and over the log tells once in so many times.
_TOLD: Final = 1_000
_LOGGER: Final = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    """A text that a model has answered: what it said, and by which threshold."""

    served: Served
    shadow: Served
    text: str
    threshold: float | None
    outcome: Outcome

    @property
    def bytes(self) -> int:
        """About what it holds: a character takes one to four."""
        return 4 * len(self.text)

    @property
    def microseconds(self) -> float:
        return self.shadow.classifier.cost.microseconds([self.text], 0)


class Compared(NamedTuple):
    """What model and shadow say of a text.

    Attributes:
        difference: of the probabilities of the label that the model finds most probable; one that the shadow does not
            know has none.
        pairs: the labels that they do not agree on, that of the model first; of several labels a text each that one of
            them assigns and the other does not, beside an empty one. Empty if they agree.
    """

    difference: float
    pairs: Sequence[tuple[str, str]]


def compare(outcome: Outcome, said: Prediction) -> Compared:
    """Hold what a shadow says of a text against what the model has answered."""
    names = said.label_names
    theirs = float(said.probabilities[names.index(outcome.label)]) if outcome.label in names else 0.0
    if said.several:
        assigned = said.assigned
        pairs = [(label, "") for label in outcome.labels if label not in assigned]
        pairs += [("", label) for label in assigned if label not in outcome.labels]
    else:
        pairs = [(outcome.label, said.label)] if outcome.label != said.label else []
    return Compared(abs(outcome.score - theirs), pairs)


class Shadowing:
    """The texts that wait for shadows, and the thread that asks them. For one event loop.

    Args:
        counts: of the worker.
        held_bytes: what it may hold for requests.
        busy: whether it has requests enough to do.
    """

    def __init__(self, counts: Counts, held_bytes: int, busy: Callable[[], bool]) -> None:
        self._counts, self._busy = counts, busy
        self._most = held_bytes // _PART
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._running = False
        self._failures = 0
        self._pairs = set(counts.labels_of(metrics.SHADOW_DISAGREEMENTS))
        # Its thread is made with the first text.
        self._thread = ThreadPoolExecutor(1, "textcls-shadow")

    def begin(self, generation: Generation) -> None:
        """Count from 0 on for the shadows of `generation`; texts that wait for those of another are dropped."""
        shadows = [(served.name, served.shadow) for served in generation.models.values() if served.shadow is not None]
        for name, shadow in shadows:
            for family in (metrics.SHADOW_TEXTS, metrics.SHADOW_DROPPED, metrics.SHADOW_ERRORS):
                self._counts.add(family, name, shadow.version, by=0)
        self._failures = 0
        # Their models would stay in memory for as long as the worker is busy.
        before, self._waiting, self._bytes = self._waiting, deque(), 0
        for waiting in before:
            self._drop(waiting.served, waiting.shadow)

    def offer(self, request: Request, answer: Answer) -> None:
        """Let the shadow of the model, if it has one, answer what has just been answered, if there is time for it."""
        served = answer.served
        shadow = served.shadow
        if shadow is None:
            return
        for text, outcome in zip(request.texts, answer.outcomes, strict=True):
            waiting = _Waiting(served, shadow, text, request.threshold, outcome)
            if (
                len(self._waiting) >= MOST_TEXTS
                or self._bytes + waiting.bytes > MOST_BYTES
                or shadow.classifier.cost.call_bytes(1, len(text)) > self._most
            ):
                self._drop(served, shadow)
                continue
            self._waiting.append(waiting)
            self._bytes += waiting.bytes
        if self._waiting and not self._running:
            self._running = True
            asyncio.get_running_loop().call_soon(self._next)

    def _drop(self, served: Served, shadow: Served) -> None:
        self._counts.add(metrics.SHADOW_DROPPED, served.name, shadow.version)

    def _next(self) -> None:
        """Ask about some texts, or later if the worker is busy."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            self._running = False
            return
        if self._busy():
            loop.call_later(_BUSY_SECONDS, self._next)
            return
        batch, begun = self._batch(), perf_counter()

        def asked(done: "Future[list[Compared]]") -> None:
            with suppress(RuntimeError):  # The loop has ended before.
                loop.call_soon_threadsafe(self._count, batch, done, begun)

        self._thread.submit(_ask, batch).add_done_callback(asked)

    def _batch(self) -> list[_Waiting]:
        """Take texts of one shadow from the queue, as many as one turn and one call may take."""
        batch = [self._waiting.popleft()]
        first, longest, spent = batch[0], len(batch[0].text), batch[0].microseconds
        cost = first.shadow.classifier.cost
        while self._waiting and len(batch) < CALL_TEXTS:
            following = self._waiting[0]
            longest, spent = max(longest, len(following.text)), spent + following.microseconds
            if (
                following.shadow is not first.shadow
                or following.threshold != first.threshold
                or spent > TURN
                or cost.call_bytes(len(batch) + 1, longest) > min(CALL_BYTES, self._most)
            ):
                break
            batch.append(self._waiting.popleft())
        self._bytes -= sum(each.bytes for each in batch)
        return batch

    def _count(self, batch: Sequence[_Waiting], done: "Future[list[Compared]]", begun: float) -> None:
        """Count what came of some texts, and rest."""
        name, version, counts = batch[0].served.name, batch[0].shadow.version, self._counts
        error = done.exception()
        if error is None:
            found = done.result()
            counts.add(metrics.SHADOW_TEXTS, name, version, by=len(found))
            counts.observe(metrics.SHADOW_DIFFERENCE, [each.difference for each in found], name, version)
            for each in found:
                for pair in each.pairs:
                    counts.add(metrics.SHADOW_DISAGREEMENTS, *self._named((name, version, *pair)))
        else:
            counts.add(metrics.SHADOW_ERRORS, name, version, by=len(batch))
            if self._failures % _TOLD == 0:
                said = "The shadow of %s, version %s, fails (%s); nobody waits for it."
                _LOGGER.error(said, name, version, type(error).__name__, extra={"where": logs.places(error)})
            self._failures += 1
        asyncio.get_running_loop().call_later(_REST * (perf_counter() - begun), self._next)

    def _named(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Return the labels of a count of disagreements; beyond some pairs the others are counted together."""
        if labels not in self._pairs and len(self._pairs) >= MOST_PAIRS:
            return (*labels[:2], OTHER, OTHER)
        self._pairs.add(labels)
        return labels


def _ask(batch: Sequence[_Waiting]) -> list[Compared]:
    """Ask the shadow about some texts, and compare."""
    first = batch[0]
    said = first.shadow.classifier.predict([each.text for each in batch], threshold=first.threshold)
    return [compare(each.outcome, prediction) for each, prediction in zip(batch, said, strict=True)]
