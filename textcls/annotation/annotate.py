"""Ask some models about many texts: what has been answered is not asked again, and a limit on tokens holds."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from textcls.annotation.endpoint import Endpoint, RefusedError
from textcls.annotation.journal import Answers, JournalEntry
from textcls.annotation.price import estimate
from textcls.annotation.probabilities import mean
from textcls.annotation.prompt import Prompt
from textcls.errors import SurroundingsError, TextclsError
from textcls.model import tokenizer

# Of a text so many characters are sent: as many as hold the tokens that a model of ours reads.
MOST_CHARACTERS: Final = 10_000
# If so many texts are refused, or answered with none of the labels, before one is answered, it is not for the texts.
_MOST_REFUSED: Final = 10


class Agreement(NamedTuple):
    """How many texts have the same labels twice, in all and by label.

    Attributes:
        right: texts with the same labels.
        rows: texts that were compared.
        by_label: of each label how many texts have it both times, and how many at least once; where a text has one
            label, how many have it the first time.
    """

    right: int
    rows: int
    by_label: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Annotator:
    """A model that is asked, and what it has answered.

    Attributes:
        endpoint: asks it.
        answers: that are kept.
        refused: texts that its server would not answer, and that are not asked about again in this run.
        unusable: texts whose answers named none of the labels, likewise.
    """

    endpoint: Endpoint
    answers: Answers
    refused: set[str] = field(default_factory=set)
    unusable: set[str] = field(default_factory=set)

    def missing(self, texts: Iterable[str]) -> list[str]:
        """Return which texts are still to be asked about, each once."""
        left = dict.fromkeys(texts).keys() - self.refused - self.unusable
        return [text for text in dict.fromkeys(texts) if text in left and not is_answered(self.answers.get(text))]

    @property
    def without_answer(self) -> int:
        """How many texts have been asked about in vain."""
        return len(self.refused) + len(self.unusable)


def is_answered(answer: JournalEntry | None) -> bool:
    """Say whether there is an answer that names a label: any other is asked for again by the next run."""
    return answer is not None and answer.probabilities is not None


def sent(text: str) -> str:
    """Return what is sent of a text."""
    return tokenizer.clean(text[:MOST_CHARACTERS])


class Asking:
    """Many texts, asked about some at a time. What is under way when something fails is waited for: it is paid for.

    Attributes:
        left: tokens that may still be spent.
    """

    def __init__(self, annotators: Sequence[Annotator], *, at_once: int, most_tokens: float) -> None:
        self.left, self._annotators, self._at_once = most_tokens, annotators, at_once
        self._answered: Counter[str] = Counter()
        self._error: TextclsError | None = None

    def missing(self, texts: Sequence[str]) -> list[tuple[Annotator, str]]:
        """Return who is still to be asked about which texts."""
        return [(one, text) for one in self._annotators for text in one.missing(texts)]

    async def ask(self, texts: Sequence[str], step: Callable[[], None]) -> None:
        """Have those texts answered that are not yet, as far as tokens last.

        Args:
            texts: as they are sent.
            step: called after each answer.

        Raises:
            TextclsError: as `Endpoint.ask` and `Answers.put` do; what has been answered is kept.
        """
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
                annotator.refused.add(text)
                self._give_up(annotator, str(refusal))
            except TextclsError as error:
                self._error = error
            step()

    def _give_up(self, annotator: Annotator, why: str) -> None:
        """Ask no more where nothing is answered."""
        if not self._answered[annotator.endpoint.model] and annotator.without_answer >= _MOST_REFUSED:
            self._error = SurroundingsError(f"None of {_MOST_REFUSED} texts was answered: {why}")


def joined(answers: Iterable[JournalEntry | None]) -> JournalEntry | None:
    """Return what several models say of a text together: the mean of their probabilities; None if none was asked."""
    given = [answer for answer in answers if answer is not None]
    if not given:
        return None
    said = [answer.probabilities for answer in given if answer.probabilities is not None]
    return JournalEntry(
        mean(said) if said else None,
        sum(answer.tokens_in for answer in given),
        sum(answer.tokens_out for answer in given),
        max(answer.at for answer in given),
        sum(answer.seconds for answer in given),
    )


def labels_of(answer: JournalEntry | None, prompt: Prompt) -> tuple[str, ...] | None:
    """Return the label that was answered, or those that are likelier than not; None if there is no answer."""
    if answer is None or answer.probabilities is None:
        return None
    pairs = list(zip(prompt.names, answer.probabilities, strict=True))
    if prompt.several:
        return tuple(name for name, likely in pairs if likely > 0.5)
    return (max(pairs, key=lambda pair: pair[1])[0],)


def agreement(
    first: Iterable[tuple[str, ...] | None], second: Iterable[tuple[str, ...] | None], *, several: bool = False
) -> Agreement:
    """Return on how many texts two agree, of those that both have answered."""
    both: Counter[str] = Counter()
    either: Counter[str] = Counter()
    right = rows = 0
    for one, other in zip(first, second, strict=True):
        if one is None or other is None:
            continue
        rows += 1
        right += {*one} == {*other}
        both.update({*one} & {*other})
        either.update({*one} | {*other} if several else one)
    return Agreement(right, rows, {label: (both[label], asked) for label, asked in either.items()})
