"""Ask about many texts: what has been answered is not asked again, and a limit on tokens holds."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from textcls.annotation.endpoint import Endpoint, RefusedError
from textcls.annotation.journal import Journal, JournalEntry
from textcls.annotation.price import estimate
from textcls.errors import SurroundingsError, TextclsError
from textcls.model import tokenizer

# Of a text so many characters are sent: as many as hold the tokens that a model of ours reads.
MOST_CHARACTERS: Final = 10_000
# If so many texts are refused before one is answered, it is not for the texts.
_MOST_REFUSED: Final = 10


class Agreement(NamedTuple):
    """How many labelled rows were answered with their label, in all and by label: right and asked."""

    right: int
    rows: int
    by_label: Mapping[str, tuple[int, int]]


def sent(text: str) -> str:
    """Return what is sent of a text."""
    return tokenizer.clean(text[:MOST_CHARACTERS])


class Asking:
    """Many texts, asked about some at a time. What is under way when something fails is waited for: it is paid for.

    Attributes:
        left: tokens that may still be spent.
        refused: texts that the server would not answer, and that are not asked about again in this run.
    """

    def __init__(self, endpoint: Endpoint, journal: Journal, *, at_once: int, most_tokens: float) -> None:
        self.left, self.refused = most_tokens, set[str]()
        self._endpoint, self._journal, self._at_once = endpoint, journal, at_once
        self._answered = 0
        self._error: TextclsError | None = None

    def missing(self, texts: Iterable[str]) -> list[str]:
        """Return which texts are still to be asked about, each once."""
        return [text for text in dict.fromkeys(texts) if text not in self.refused and self._journal.get(text) is None]

    async def ask(self, texts: Iterable[str], step: Callable[[], None]) -> None:
        """Have those texts answered that are not yet, as far as tokens last.

        Args:
            texts: as they are sent.
            step: called after each.

        Raises:
            TextclsError: as `Endpoint.ask` and `Journal.put` do; what has been answered is kept.
        """
        waiting = iter(self.missing(texts))
        await asyncio.gather(*(self._work(waiting, step) for _ in range(self._at_once)))
        if self._error is not None:
            raise self._error

    async def _work(self, waiting: Iterator[str], step: Callable[[], None]) -> None:
        for text in waiting:
            expected = sum(estimate(self._endpoint.prompt, [text]))
            if self._error is not None or self.left < expected:
                return
            self.left -= expected
            try:
                answer = await self._endpoint.ask(text)
                self._journal.put(text, answer)
                self.left += expected - answer.tokens
                self._answered += 1
            except RefusedError as refusal:
                self.refused.add(text)
                if not self._answered and len(self.refused) >= _MOST_REFUSED:
                    self._error = SurroundingsError(f"None of {_MOST_REFUSED} texts was answered: {refusal}")
            except TextclsError as error:
                self._error = error
            step()


def agreement(rows: Sequence[tuple[str, str]], labels: Sequence[str], journal: Journal) -> Agreement:
    """Return how many labelled rows, texts as they are sent, were answered with their label."""
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for text, label in rows:
        answer = journal.get(text)
        if answer is not None:
            asked[label] += 1
            right[label] += best(answer, labels) == label
    return Agreement(right.total(), asked.total(), {label: (right[label], asked[label]) for label in asked})


def best(answer: JournalEntry, labels: Sequence[str]) -> str | None:
    """Return the label that was answered; None if it was none of these."""
    if answer.probabilities is None:
        return None
    return labels[max(range(len(labels)), key=answer.probabilities.__getitem__)]
