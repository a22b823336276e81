"""Compare the answers to texts in which words are exchanged for others of their group: does it matter who is meant?"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls.errors import InputError
from textcls.explain.intervention import Span, exchange
from textcls.explain.word_groups import Groups, Term, runs
from textcls.model import tokenizer
from textcls.model.classifier import Classifier
from textcls.model.excerpts import Excerpt, excerpt
from textcls.model.sequences import require_texts

# The number of texts per word that are asked about, the first that contain it; longer ones are cut.
MOST_TEXTS: Final = 200
MOST_CHARACTERS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Exchange:
    """The effect on answers of replacing one word by another.

    Attributes:
        word: the word in the texts.
        by: the word that replaces it.
        texts: how many were asked about.
        changed: how many of them got another answer.
        label: the label whose probability changes most on average.
        difference: the mean change of that probability, with its sign.
        error: the standard error of that mean.
        largest: the largest change of it in any text, up or down.
        example: the passage around the word in that text.
    """

    word: str
    by: str
    texts: int
    changed: int
    label: str
    difference: float
    error: float
    largest: float
    example: Excerpt


@dataclass(frozen=True, slots=True)
class ExchangeReport:
    """What exchanging words does, most changed answers first.

    Attributes:
        exchanges: for each word, its exchange for each other word of its group, if texts contain it.
        texts: how many were looked through.
        absent: words that occur in none.
    """

    exchanges: tuple[Exchange, ...]
    texts: int
    absent: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return asdict(self)


def compare_exchanged(classifier: Classifier, texts: Iterable[str], groups: Groups) -> ExchangeReport:
    """Return how answers change if words are exchanged for others of their group.

    Args:
        classifier: the model.
        texts: the texts, read once; for each word the first 200 that contain it are kept.
        groups: words that may stand for each other (`textcls.explain.word_groups.read_groups`).

    Raises:
        InputError: something other than a sequence of texts was given.
    """
    require_texts(texts)
    held: dict[tuple[int, Term], list[str]] = {(g, term): [] for g, group in enumerate(groups) for term in group}
    count = 0
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"Text {count} is not a string but {type(text).__name__}.")
        count += 1
        part = text[:MOST_CHARACTERS]
        tokens = set(tokenizer.tokenize(part))
        spans: list[Span] | None = None
        for (_, term), kept in held.items():
            if len(kept) < MOST_TEXTS and tokens.issuperset(term):
                spans = spans if spans is not None else _spans(classifier, part)
                if any(True for _ in runs(part, spans, term)):
                    kept.append(part)
    found = [exchange for key, kept in held.items() if kept for exchange in _compared(classifier, groups, *key, kept)]
    found.sort(key=lambda one: (-one.changed / one.texts, -abs(one.difference)))
    absent = dict.fromkeys(str(term) for (_, term), kept in held.items() if not kept)
    return ExchangeReport(tuple(found), count, tuple(absent))


def _spans(classifier: Classifier, text: str) -> list[Span]:
    return list(tokenizer.token_spans(text, classifier.info.max_tokens))


def _compared(
    classifier: Classifier, groups: Groups, group: int, term: Term, texts: Sequence[str]
) -> Iterator[Exchange]:
    """Yield the effects on these texts of exchanging `term` for each other word of its group."""
    first, before = _answers(classifier, texts)
    for other in groups[group]:
        if other == term:
            continue
        changed = [_exchanged(classifier, text, term, other) for text in texts]
        second, after = _answers(classifier, changed)
        difference = after - before
        label = int(np.abs(difference.mean(0)).argmax())
        most = int(np.abs(difference[:, label]).argmax())
        spans = _spans(classifier, texts[most])
        at = next(runs(texts[most], spans, term))
        yield Exchange(
            word=str(term),
            by=str(other),
            texts=len(texts),
            changed=sum(one != another for one, another in zip(first, second, strict=True)),
            label=classifier.labels[label],
            difference=float(difference[:, label].mean()),
            error=float(difference[:, label].std(ddof=1) / len(texts) ** 0.5) if len(texts) > 1 else 0.0,
            largest=float(difference[most, label]),
            example=excerpt(texts[most], spans[at][0], spans[at + len(term) - 1][1]),
        )


def _answers(classifier: Classifier, texts: Sequence[str]) -> tuple[list[set[str]], NDArray[np.float64]]:
    """Return the label of each text, or its labels, and the probabilities [texts, labels]."""
    found = classifier.predict(texts)
    labels = [set(answer.assigned) if answer.several else {answer.label} for answer in found]
    return labels, np.array([answer.probabilities for answer in found], np.float64)


def _exchanged(classifier: Classifier, text: str, term: Term, other: Term) -> str:
    """Return `text` with every occurrence of `term` replaced by `other`, keeping an initial capital."""
    spans = _spans(classifier, text)
    by: dict[int, str] = {}
    for at in runs(text, spans, term):
        words = str(other)
        by[at] = words[:1].upper() + words[1:] if text[spans[at][0]].isupper() else words
        by |= dict.fromkeys(range(at + 1, at + len(term)), "")
    return exchange(text, spans, by)
