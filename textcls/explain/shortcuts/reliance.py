"""Does the model rely on a term? Measure how its answers change if it is put into texts, or taken out of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.explain.intervention import insert, remove
from textcls.explain.shortcuts.corpus import NUMBER, Corpus, Int64
from textcls.explain.shortcuts.terms import Term
from textcls.model import tokenizer
from textcls.model.classifier import Classifier

# The number of texts that are asked about with and without a term.
ASKED: Final = 200
# Longer texts are cut: the effect of a term does not depend on their end.
ASKED_CHARACTERS: Final = 20_000
# The number of spellings that are put in of a term that has several.
KINDS: Final = 50


@dataclass(frozen=True, slots=True)
class Reliance:
    """The effect on answers of a change to the texts.

    Attributes:
        texts: how many were asked about.
        changed: how many were answered with the label only after the change, or only before it.
        difference: how much its probability rose on average.
    """

    texts: int
    changed: int
    difference: float


def put_in(classifier: Classifier, corpus: Corpus, term: Term) -> Reliance:
    """Return the effect on texts of other labels of putting the term in, at its place in its own texts."""
    random, chosen = np.random.default_rng(0), np.random.default_rng(2)
    spellings = _spellings(corpus, term)
    where = term.place(corpus)

    def change(text: str) -> str:
        spans = list(tokenizer.token_spans(text, classifier.info.max_tokens))
        place = int(random.integers(len(spans) + 1))
        at = {"start": 0, "end": len(spans)}.get(where, place)
        return insert(text, spans, at, spellings[int(chosen.integers(len(spellings)))])

    return asked(classifier, corpus, others(corpus, term.label), term.label, change)


def _spellings(corpus: Corpus, term: Term) -> list[str]:
    """Return a term as spelt in the texts: once if it is always the same, otherwise some of its spellings."""
    words = [corpus.words[word] for word in term.words]
    if not any(NUMBER in word for word in words):
        return [" ".join(words)]
    found = []
    for row in term.rows(corpus)[:KINDS].tolist():
        text = corpus.texts[row]
        spans = list(tokenizer.token_spans(text))
        at = min(places_of(words, text, spans, corpus.reading))
        found.append(spelt(text, spans, at, len(words)))
    return found


def spelt(text: str, spans: Sequence[tuple[int, int]], at: int, count: int) -> str:
    """Return `count` tokens of a text from number `at` on, in lower case, separated by spaces, except between adjacent
    letters of a script without spaces.
    """
    found, beside = "", -1
    for start, end in spans[at : at + count]:
        letter = tokenizer.UNSPACED.match(text, start) is not None
        space = " " if found and not (letter and beside == start) else ""
        found += space + tokenizer.lower(text[start:end])
        beside = end if letter else -1
    return found


def taken_out(classifier: Classifier, corpus: Corpus, term: Term) -> Reliance:
    """Return the effect of taking the term out of texts of the label that contain it."""

    def change(text: str) -> str:
        spans = list(tokenizer.token_spans(text, classifier.info.max_tokens))
        words = [corpus.words[word] for word in term.words]
        return remove(text, spans, places_of(words, text, spans, corpus.reading))

    return asked(classifier, corpus, term.rows_of_label(corpus), term.label, change)


def places_of(
    words: Sequence[str], text: str, spans: Sequence[tuple[int, int]], reading: Callable[[str], str] = str
) -> set[int]:
    """Return the numbers of all tokens of `text` that are part of a run of these words, in lower case."""
    lowered = tokenizer.lower(tokenizer.clean(text))
    tokens = [reading(lowered[start:end]) for start, end in spans]
    size = len(words)
    found = (i for i in range(len(tokens) - size + 1) if tokens[i : i + size] == list(words))
    return {i + k for i in found for k in range(size)}


def others(corpus: Corpus, label: int) -> Int64:
    """Return the numbers of the texts that do not have a label."""
    return np.flatnonzero(~corpus.of_label(label))


def asked(classifier: Classifier, corpus: Corpus, rows: Int64, label: int, change: Callable[[str], str]) -> Reliance:
    """Return the effect on the answers of changing some of these texts, drawn at random.

    Args:
        classifier: the model.
        corpus: the texts.
        rows: numbers of the texts that may be asked about.
        label: the number of the label.
        change: changes a text.
    """
    chosen = np.random.default_rng(1).permutation(rows)[:ASKED]
    if not len(chosen):
        return Reliance(0, 0, 0.0)
    texts = [corpus.texts[i][:ASKED_CHARACTERS] for i in chosen.tolist()]
    was, before = _answered(classifier, texts, label)
    is_now, after = _answered(classifier, [change(text) for text in texts], label)
    return Reliance(len(texts), int((was != is_now).sum()), float((after - before).mean()))


def _answered(
    classifier: Classifier, texts: Sequence[str], label: int
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return for each text whether it is answered with a label, and the label's probability."""
    name, answers = classifier.labels[label], classifier.predict(texts)
    is_answered = [name in one.assigned if one.several else name == one.label for one in answers]
    return np.array(is_answered), np.array([one.probabilities[label] for one in answers], np.float64)
