"""Does the model go by it? What becomes of its answers if a term is put into texts, or taken out of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.explain.intervention import insert, remove
from textcls.explain.shortcuts.corpus import NUMBER, Corpus, Int64, same
from textcls.explain.shortcuts.terms import Term
from textcls.model import tokenizer
from textcls.model.classifier import Classifier

# Texts that are asked about with a term and without it.
ASKED: Final = 200
# Longer texts are cut: what a term does to one does not depend on its end.
ASKED_CHARACTERS: Final = 20_000
# How many spellings of a term that has several are put in.
KINDS: Final = 50


@dataclass(frozen=True, slots=True)
class Reliance:
    """What becomes of answers when something of the texts is changed.

    Attributes:
        texts: how many were asked about.
        changed: how many were answered with the label after and not before, or before and not after.
        difference: by how much its probability rose in the mean.
    """

    texts: int
    changed: int
    difference: float


def put_in(classifier: Classifier, corpus: Corpus, term: Term) -> Reliance:
    """Return what becomes of texts of other labels if the term is put into them, where it stands in its own."""
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
    """Return a term as it stands in the texts: once where it is always the same, some of its kinds where it is not."""
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
    """Return so many tokens of a text from number `at` on, in lower case, with spaces between them, but not between
    letters that stand side by side in a script without spaces.
    """
    found, beside = "", -1
    for start, end in spans[at : at + count]:
        letter = tokenizer.UNSPACED.match(text, start) is not None
        space = " " if found and not (letter and beside == start) else ""
        found += space + tokenizer.lower(text[start:end])
        beside = end if letter else -1
    return found


def taken_out(classifier: Classifier, corpus: Corpus, term: Term) -> Reliance:
    """Return what becomes of texts of the label that hold the term if it is taken out."""

    def change(text: str) -> str:
        spans = list(tokenizer.token_spans(text, classifier.info.max_tokens))
        words = [corpus.words[word] for word in term.words]
        return remove(text, spans, places_of(words, text, spans, corpus.reading))

    return asked(classifier, corpus, term.rows_of_label(corpus), term.label, change)


def places_of(
    words: Sequence[str], text: str, spans: Sequence[tuple[int, int]], reading: Callable[[str], str] = same
) -> set[int]:
    """Return the numbers of all tokens of `text` that are part of a run of these words, in lower case."""
    lowered = tokenizer.lower(tokenizer.clean(text))
    tokens = [reading(lowered[start:end]) for start, end in spans]
    size = len(words)
    found = (i for i in range(len(tokens) - size + 1) if tokens[i : i + size] == list(words))
    return {i + k for i in found for k in range(size)}


def others(corpus: Corpus, label: int) -> Int64:
    """Return the numbers of the texts that do not carry a label."""
    return np.flatnonzero(~corpus.of_label(label))


def asked(classifier: Classifier, corpus: Corpus, rows: Int64, label: int, change: Callable[[str], str]) -> Reliance:
    """Return what a change of some of these texts, drawn at random, does to the answers.

    Args:
        classifier: the model.
        corpus: the texts.
        rows: numbers of those that may be asked about.
        label: the number of the label.
        change: what is done to a text.
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
    """Return of each text whether it is answered with a label, and the probability of that."""
    name, answers = classifier.labels[label], classifier.predict(texts)
    is_answered = [name in one.assigned if one.several else name == one.label for one in answers]
    return np.array(is_answered), np.array([one.probabilities[label] for one in answers], np.float64)
