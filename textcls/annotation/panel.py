"""Combine models that answer the same question: joint labels, how far they agree, and the cost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from textcls.annotation.journal import Answers, JournalEntry
from textcls.annotation.price import Price, Tokens
from textcls.annotation.probabilities import mean
from textcls.annotation.prompt import Prompt

if TYPE_CHECKING:
    from textcls.annotation.endpoint import Endpoint


class Agreement(NamedTuple):
    """How many texts get the same labels twice, in total and by label.

    Attributes:
        right: texts with the same labels.
        rows: texts that were compared.
        by_label: for each label, how many texts have it both times, and how many at least once; if a text has one
            label, how many have it the first time.
    """

    right: int
    rows: int
    by_label: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Annotator:
    """A model that is asked, and its answers.

    Attributes:
        endpoint: the endpoint that asks it.
        answers: its stored answers.
        refused: texts that its server refused to answer, and why; they are not asked about again in this run.
        unusable: texts whose answers named none of the labels, likewise.
    """

    endpoint: "Endpoint"
    answers: Answers
    refused: dict[str, str] = field(default_factory=dict)
    unusable: set[str] = field(default_factory=set)

    def missing(self, texts: Iterable[str]) -> list[str]:
        """Return the texts that are still to be asked about, each once."""
        left = dict.fromkeys(texts).keys() - self.refused - self.unusable
        return [text for text in dict.fromkeys(texts) if text in left and not is_answered(self.answers.get(text))]

    @property
    def without_answer(self) -> int:
        """The number of texts that have been asked about without success."""
        return len(self.refused) + len(self.unusable)


def is_answered(answer: JournalEntry | None) -> bool:
    """Return whether there is an answer that names a label: any other is requested again by the next run."""
    return answer is not None and answer.probabilities is not None


class Panel(NamedTuple):
    """Models that are asked the same.

    Attributes:
        prompt: what they are asked.
        annotators: the models, with their answers.
        prices: the token prices of each; None if not known.
    """

    prompt: Prompt
    annotators: Sequence[Annotator]
    prices: Sequence[Price | None]

    def answer(self, text: str) -> JournalEntry | None:
        """Return the joint answer to a text: the mean of the probabilities; None if none was asked."""
        given = [answer for one in self.annotators if (answer := one.answers.get(text)) is not None]
        if not given:
            return None
        known = [answer.probabilities for answer in given if answer.probabilities is not None]
        return JournalEntry(
            mean(known) if known else None,
            sum(answer.tokens_in for answer in given),
            sum(answer.tokens_out for answer in given),
            max(answer.at for answer in given),
            sum(answer.seconds for answer in given),
        )

    def labels(self, text: str, annotator: Annotator | None = None) -> tuple[str, ...] | None:
        """Return the label of the joint answer, or those that are likelier than not; None if there is no answer.

        Args:
            text: the text as sent.
            annotator: the one whose answer counts alone.
        """
        answer = self.answer(text) if annotator is None else annotator.answers.get(text)
        if answer is None or answer.probabilities is None:
            return None
        pairs = list(zip(self.prompt.names, answer.probabilities, strict=True))
        if self.prompt.several:
            return tuple(name for name, likely in pairs if likely > 0.5)
        return (max(pairs, key=lambda pair: pair[1])[0],)

    def agreement(self, known: Iterable[tuple[str, tuple[str, ...]]], annotator: Annotator | None = None) -> Agreement:
        """Return how far the joint answers, or those of one, agree with the labels that texts have."""
        pairs = [(labels, self.labels(text, annotator)) for text, labels in known]
        return _agreement(pairs, several=self.prompt.several)

    def agreement_of(self, first: Annotator, second: Annotator, texts: Iterable[str]) -> Agreement:
        """Return how far two agree on texts."""
        pairs = [(self.labels(text, first), self.labels(text, second)) for text in texts]
        return _agreement(pairs, several=self.prompt.several)

    def costs(self, texts: Iterable[str]) -> list[tuple[Tokens, float, Price | None]]:
        """Return for each answer to some texts its tokens, seconds and token price."""
        return [
            (Tokens(answer.tokens_in, answer.tokens_out), answer.seconds, price)
            for text in texts
            for one, price in zip(self.annotators, self.prices, strict=True)
            if (answer := one.answers.get(text)) is not None
        ]

    def dollars(self, text: str) -> float:
        """Return the cost of the answers to a text, as far as prices are known."""
        known = [took.dollars(price) for took, _, price in self.costs([text]) if price is not None]
        return round(sum(known, 0.0), 9)


def _agreement(pairs: Iterable[tuple[tuple[str, ...] | None, tuple[str, ...] | None]], *, several: bool) -> Agreement:
    """Return how many texts two agree on, among those that both have answered."""
    both: Counter[str] = Counter()
    either: Counter[str] = Counter()
    right = rows = 0
    for one, other in pairs:
        if one is None or other is None:
            continue
        rows += 1
        right += {*one} == {*other}
        both.update({*one} & {*other})
        either.update({*one} | {*other} if several else one)
    return Agreement(right, rows, {label: (both[label], asked) for label, asked in either.items()})
