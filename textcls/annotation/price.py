"""Estimate how many tokens answers take, and their cost: from lengths, and from answers once there are some."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from textcls.annotation.journal import JournalEntry
from textcls.annotation.prompt import Prompt

# The mean number of ASCII characters per token; in other scripts each character is about one token.
_CHARACTERS_A_TOKEN: Final = 4
# The tokens of an answer: an object with the name of a label; or with a boolean for each.
_WRITTEN: Final = 12
_TRUTH: Final = 3


class Price(NamedTuple):
    """The price of a million tokens, in dollars: read, and written."""

    read: float
    written: float


class Tokens(NamedTuple):
    """The number of tokens read and written."""

    read: int
    written: int

    def dollars(self, price: Price) -> float:
        """Return their cost."""
        return (self.read * price.read + self.written * price.written) / 1e6


def estimate(
    prompt: Prompt, texts: Iterable[str], known: Sequence[tuple[str, JournalEntry]] = (), *, samples: int = 1
) -> Tokens:
    """Return approximately how many tokens the answers to some texts take.

    Args:
        prompt: what is asked.
        texts: the texts that it is asked about.
        known: texts that the same model has answered: their token counts calibrate the estimate.
        samples: how often each text is answered.
    """
    beside = sum(_tokens(message["content"]) for message in prompt.messages(""))
    read = [beside + _tokens(text) for text in texts]
    if not known:
        truths = sum(_tokens(name) + _TRUTH for name in prompt.names)
        return Tokens(sum(read), samples * (truths if prompt.several else _WRITTEN) * len(read))
    guessed = sum(beside + _tokens(text) for text, _ in known)
    took = sum(answer.tokens_in for _, answer in known)
    written = sum(answer.tokens_out for _, answer in known) / len(known)
    return Tokens(round(sum(read) * took / guessed), round(written * len(read)))


def _tokens(text: str) -> int:
    others = sum(not character.isascii() for character in text)
    return (len(text) - others) // _CHARACTERS_A_TOKEN + others + 1
