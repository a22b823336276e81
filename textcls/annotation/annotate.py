"""Ask models about many texts: answered ones are not asked again, and a limit on tokens is kept."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from textcls.annotation.panel import Annotator, is_answered
from textcls.annotation.price import estimate
from textcls.annotation.prompt import RefusedError
from textcls.errors import SurroundingsError, TextclsError
from textcls.model import tokenizer

# At most this many characters of a text are sent: about as many as the tokens that our models read.
MOST_CHARACTERS: Final = 10_000
# With this many texts refused, or answered with none of the labels, and none answered, the cause is not the texts.
_MOST_REFUSED: Final = 10


def sent(text: str) -> str:
    """Return the part of a text that is sent."""
    return tokenizer.clean(text[:MOST_CHARACTERS])


class Asking:
    """Ask about many texts, some at a time. Pending requests are awaited when something fails: they are paid for.

    Attributes:
        left: tokens that may still be spent.
    """

    def __init__(self, annotators: Sequence[Annotator], *, at_once: int, most_tokens: float) -> None:
        self.left, self._annotators, self._at_once = most_tokens, annotators, at_once
        self._answered: Counter[str] = Counter()
        self._error: TextclsError | None = None

    def missing(self, texts: Sequence[str]) -> list[tuple[Annotator, str]]:
        """Return the annotators that are still to be asked, with the texts."""
        return [(one, text) for one in self._annotators for text in one.missing(texts)]

    async def ask(self, texts: Sequence[str], step: Callable[[], None]) -> None:
        """Get answers to the texts that have none yet, as far as tokens last.

        Args:
            texts: the texts as sent.
            step: called after each answer.

        Raises:
            TextclsError: as in `Endpoint.ask` and `Answers.put`; received answers are kept.
        """
        for one in self._annotators:
            # A model that has answered before does not fail on all of them.
            self._answered[one.endpoint.model] += any(is_answered(one.answers.get(text)) for text in texts)
        waiting = iter(self.missing(texts))
        await asyncio.gather(*(self._work(waiting, step) for _ in range(self._at_once)))
        if self._error is not None:
            raise self._error

    async def _work(self, waiting: Iterator[tuple[Annotator, str]], step: Callable[[], None]) -> None:
        for annotator, text in waiting:
            endpoint = annotator.endpoint
            expected = sum(estimate(endpoint.prompt, [text], samples=endpoint.samples))
            if self._error is not None or self.left < expected:
                return
            self.left -= expected
            try:
                answer = await endpoint.ask(text)
                annotator.answers.put(text, answer)
                self.left += expected - answer.tokens
                if is_answered(answer):
                    self._answered[endpoint.model] += 1
                else:
                    annotator.unusable.add(text)
                    self._give_up(annotator, f"the last answer names no label: {endpoint.strange!r}.")
            except RefusedError as refusal:
                self.left += expected - refusal.tokens
                annotator.refused[text] = str(refusal)
                self._give_up(annotator, str(refusal))
            except TextclsError as error:
                self._error = error
            step()

    def _give_up(self, annotator: Annotator, why: str) -> None:
        """Stop asking if nothing is answered."""
        if not self._answered[annotator.endpoint.model] and annotator.without_answer >= _MOST_REFUSED:
            self._error = SurroundingsError(f"None of {_MOST_REFUSED} texts was answered: {why}")
