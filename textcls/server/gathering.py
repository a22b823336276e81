"""Short requests that arrive in the same turn of the event loop are answered as one batch.

Nothing waits for company: a turn takes what its sockets hold. Alone, a request does not come here. Most of what a short
text costs is per call of the model, so 64 at once take a third of the time of 64 one by one.
"""

import asyncio
from collections.abc import Iterator
from typing import Final, NamedTuple

from textcls.server import answers
from textcls.server.answers import Answer
from textcls.server.registry import Served
from textcls.server.schemas import ClassifyRequest

# A batch is padded to its longest text: those that are much longer go into another.
_MOST: Final = 64
_LONGER, _BY = 1.5, 32


class _Waiting(NamedTuple):
    request: ClassifyRequest
    served: Served
    answer: "asyncio.Future[Answer]"

    @property
    def group(self) -> tuple[str, int, bool, float]:
        """What the texts of one call have in common; requests of two generations never meet."""
        threshold = self.request.threshold
        return self.served.name, id(self.served), self.request.explain, -1.0 if threshold is None else threshold

    @property
    def length(self) -> int:
        return len(self.request.inputs[0])


class Gathering:
    """Requests of one text each that wait for the end of the turn."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []

    async def answer(self, request: ClassifyRequest, served: Served) -> Answer:
        """Answer together with whoever comes in this turn."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._flush)
        waiting = _Waiting(request, served, loop.create_future())
        self._waiting.append(waiting)
        return await waiting.answer

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for batch in _batches([each for each in waiting if not each.answer.done()]):
            _answer(batch)


def _batches(waiting: list[_Waiting]) -> Iterator[list[_Waiting]]:
    """Yield batches of one model and of similar length."""
    batch: list[_Waiting] = []
    for each in sorted(waiting, key=lambda each: (each.group, each.length)):
        if batch and (
            len(batch) == _MOST or each.group != batch[0].group or each.length > _LONGER * batch[0].length + _BY
        ):
            yield batch
            batch = []
        batch.append(each)
    if batch:
        yield batch


def _answer(batch: list[_Waiting]) -> None:
    request, served = batch[0].request, batch[0].served
    try:
        texts = [each.request.inputs[0] for each in batch]
        predictions = answers.predict(served.classifier, texts, explain=request.explain, threshold=request.threshold)
        for each, prediction in zip(batch, predictions, strict=True):
            each.answer.set_result(answers.write(each.request, served, [prediction]))
    except Exception:
        # One of them cannot be answered: that one alone must not be.
        for each in batch:
            if not each.answer.done():
                _answer_alone(each)


def _answer_alone(each: _Waiting) -> None:
    try:
        each.answer.set_result(answers.complete(each.request, each.served))
    except Exception as error:
        each.answer.set_exception(error)
