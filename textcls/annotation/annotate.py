"""Ask about many texts: what has been answered is not asked again, and a limit on tokens holds."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from textcls.annotation.endpoint import Endpoint
from textcls.annotation.journal import Answer, Journal
from textcls.annotation.prompt import Prompt
from textcls.errors import TextclsError
from textcls.model import tokenizer

# Of a text so many characters are sent: as many as hold the tokens that a model of ours reads.
MOST_CHARACTERS: Final = 10_000
# So many characters of ASCII are a token in the mean; of other scripts each is about one.
_CHARACTERS_A_TOKEN: Final = 4
# What an answer has: an object with the name of a label.
_WRITTEN: Final = 12


class Price(NamedTuple):
    """What a million tokens cost, in dollars: read, and written."""

    read: float
    written: float


class Estimate(NamedTuple):
    """What answers will take: tokens read and written."""

    read: int
    written: int

    def dollars(self, price: Price) -> float:
        """Return what that costs."""
        return (self.read * price.read + self.written * price.written) / 1e6


class Agreement(NamedTuple):
    """How many labelled rows were answered with their label, in all and by label: right and asked."""

    right: int
    rows: int
    by_label: Mapping[str, tuple[int, int]]


def sent(text: str) -> str:
    """Return what is sent of a text."""
    return tokenizer.clean(text[:MOST_CHARACTERS])


def estimate(prompt: Prompt, texts: Iterable[str], known: Sequence[tuple[str, Answer]] = ()) -> Estimate:
    """Return about how many tokens the answers to some texts take.

    Args:
        prompt: what is asked.
        texts: about which.
        known: texts that have been answered by the same model: what these took says how its tokens count.
    """
    beside = sum(_tokens(message["content"]) for message in prompt.messages(""))
    read = [beside + _tokens(text) for text in texts]
    if not known:
        return Estimate(sum(read), _WRITTEN * len(read))
    guessed = sum(beside + _tokens(text) for text, _ in known)
    took = sum(answer.tokens_in for _, answer in known)
    written = sum(answer.tokens_out for _, answer in known) / len(known)
    return Estimate(round(sum(read) * took / guessed), round(written * len(read)))


def _tokens(text: str) -> int:
    others = sum(not character.isascii() for character in text)
    return (len(text) - others) // _CHARACTERS_A_TOKEN + others + 1


async def ask_all(
    texts: Iterable[str],
    endpoint: Endpoint,
    journal: Journal,
    *,
    at_once: int,
    most_tokens: float,
    step: Callable[[], None],
) -> int:
    """Have texts answered that are not yet; return how many tokens that took.

    Args:
        texts: as they are sent.
        endpoint: who is asked.
        journal: keeps each answer once it is given.
        at_once: how many are asked about at the same time.
        most_tokens: once so many have been read and written, no other text is asked about.
        step: called after each answer.

    Raises:
        TextclsError: as `Endpoint.ask` and `Journal.put` do; what has been answered is kept.
    """
    missing = (text for text in dict.fromkeys(texts) if journal.get(text) is None)
    spent = 0

    async def work() -> None:
        nonlocal spent
        for text in missing:
            answer = await endpoint.ask(text)
            journal.put(text, answer)
            spent += answer.tokens
            step()
            if spent >= most_tokens:
                return

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(at_once):
                tasks.create_task(work())
    except* TextclsError as failed:
        raise _first(failed) from None
    return spent


def _first(failed: BaseExceptionGroup[TextclsError]) -> TextclsError:
    error: BaseException = failed
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, TextclsError):
        raise TypeError("a group of errors holds another kind")
    return error


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


def best(answer: Answer, labels: Sequence[str]) -> str | None:
    """Return the label that was answered; None if it was none of these."""
    if answer.probabilities is None:
        return None
    return labels[max(range(len(labels)), key=answer.probabilities.__getitem__)]
