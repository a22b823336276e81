"""Answer short requests on the event loop, turn by turn: those that arrive in the same turn as one batch.

No request waits for others: a turn takes what has arrived. Most of the cost of a short text is per model call, so 64 at
once take a third of the time of 64 one by one. What does not fit into a turn is left for later. In between the loop
reads its sockets, for longer than it has worked if much has arrived: one turn would not be enough, since libuv accepts
only one connection per turn.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Final, NamedTuple

from textcls.model.cost import CALL_TEXTS
from textcls.server.inference import answers
from textcls.server.inference.answers import EncodedAnswer, Request

# How long, in microseconds, the model may block a turn of the event loop. Costs are those of a busy core, twice those
# of an idle one, which a request that is alone has.
TURN: Final = 2000.0
TURN_ALONE: Final = 2 * TURN
# After work, the loop reads sockets for this many times as long, once at least this many seconds are due.
_LISTEN, _DUE_SECONDS = 3, 0.003
# Time of a text in a batch relative to its time alone, unless it is explained.
_BATCHED: Final = 0.5
# A batch is padded to its longest text: much longer texts go into another.
_LONGER, _BY = 1.5, 32


class _Waiting(NamedTuple):
    request: Request
    microseconds: float
    since: float
    answer: "asyncio.Future[EncodedAnswer]"

    @property
    def group(self) -> tuple[str, int, bool, float]:
        """What the texts of one model call have in common; requests of two generations are never mixed."""
        request = self.request
        threshold = request.threshold
        return request.served.name, id(request.served), request.explain, -1.0 if threshold is None else threshold

    @property
    def batched(self) -> float:
        """How long it takes in a batch, in microseconds."""
        return self.microseconds if self.request.explain else _BATCHED * self.microseconds

    @property
    def length(self) -> int:
        return len(self.request.texts[0])


class MicroBatcher:
    """Requests that wait for their turn.

    Args:
        seconds: how long a request may wait.
        together: whether requests with a single text may be answered as one batch.
        connections: returns the number of open connections.
    """

    def __init__(self, seconds: float, *, together: bool, connections: Callable[[], int]) -> None:
        self._seconds, self._together, self._connections = seconds, together, connections
        self._arrived: list[_Waiting] = []
        self._batches: deque[list[_Waiting]] = deque()
        self._count = self._arrivals_before = 0
        # When it will have read its sockets for long enough.
        self._listen_until = 0.0

    async def answer(self, request: Request, microseconds: float) -> EncodedAnswer:
        """Answer a request together with others that arrive in this turn.

        Args:
            request: a request of at most one turn, or two if it is alone.
            microseconds: how long it takes.

        Raises:
            TimeoutError: it has waited too long.
        """
        loop = asyncio.get_running_loop()
        if not self._arrived and not self._batches:
            loop.call_soon(self._turn)
        waiting = _Waiting(request, microseconds, perf_counter(), loop.create_future())
        self._arrived.append(waiting)
        self._count += 1
        return await waiting.answer

    def answer_alone(self, request: Request) -> EncodedAnswer | None:
        """Answer at once, or return None if it is time to read the sockets."""
        begun = perf_counter()
        if self._listen_until - begun > _DUE_SECONDS:
            return None
        answer = answers.complete(request)
        self._listen_until = max(self._listen_until, begun) + (1 + _LISTEN) * (perf_counter() - begun)
        return answer

    def _turn(self) -> None:
        """Answer what fits into a turn; the rest waits, ahead of requests that arrive meanwhile."""
        loop = asyncio.get_running_loop()
        begun = perf_counter()
        if self._listen_until - begun > _DUE_SECONDS and self._new_arrivals():
            loop.call_soon(self._turn)
            return
        if not self._batches:
            arrived, self._arrived = self._arrived, []
            self._batches.extend(_divided(arrived) if self._together else ([each] for each in arrived))
        spent = 0.0
        while self._batches and (not spent or spent + _sum(self._batches[0]) <= TURN):
            spent += _sum(self._batches[0])
            _answer(self._batches.popleft(), begun - self._seconds)
        self._listen_until = begun + (1 + _LISTEN) * (perf_counter() - begun)
        if self._batches or self._arrived:
            loop.call_soon(self._turn)

    def _new_arrivals(self) -> bool:
        """Return whether the last turn brought requests or connections, so that the next may bring more."""
        before, self._arrivals_before = self._arrivals_before, self._count + self._connections()
        return self._arrivals_before != before


def _sum(batch: list[_Waiting]) -> float:
    """Return an estimate of how long a batch takes, in microseconds."""
    first, *others = batch
    return first.microseconds + sum([each.batched for each in others])


def _divided(waiting: list[_Waiting]) -> Iterator[list[_Waiting]]:
    """Yield batches of one model and of similar length, none longer than a turn."""
    batch: list[_Waiting] = []
    spent = 0.0
    for each in sorted(waiting, key=lambda each: (each.group, each.length)):
        if batch and (
            len(batch) == CALL_TEXTS
            or spent + each.batched > TURN
            or len(each.request.texts) > 1
            or len(batch[0].request.texts) > 1
            or each.group != batch[0].group
            or each.length > _LONGER * batch[0].length + _BY
        ):
            yield batch
            batch, spent = [], 0.0
        spent += each.batched if batch else each.microseconds
        batch.append(each)
    if batch:
        yield batch


def _answer(batch: list[_Waiting], oldest: float) -> None:
    for each in batch:
        if each.since < oldest and not each.answer.done():
            each.answer.set_exception(TimeoutError())
    batch = [each for each in batch if not each.answer.done()]
    if len(batch) < 2:
        for each in batch:
            _answer_alone(each)
        return
    request = batch[0].request
    try:
        texts = [each.request.texts[0] for each in batch]
        predictions = answers.predict(
            request.served.classifier, texts, explain=request.explain, threshold=request.threshold
        )
        for each, prediction in zip(batch, predictions, strict=True):
            each.answer.set_result(each.request.write([prediction]))
    except Exception:
        # One of them cannot be answered: answer each by itself, so that only that one fails.
        for each in batch:
            if not each.answer.done():
                _answer_alone(each)


def _answer_alone(each: _Waiting) -> None:
    try:
        each.answer.set_result(answers.complete(each.request))
    except Exception as error:
        each.answer.set_exception(error)
