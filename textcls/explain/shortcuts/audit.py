"""Labelled texts and a model in; shortcuts out, and what could have been found."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from textcls.explain.shortcuts.coherence import Coherence
from textcls.explain.shortcuts.corpus import END, NUMBER, START, Corpus, Sample, numbers_alike
from textcls.explain.shortcuts.lengths import LengthCue, length_cue
from textcls.explain.shortcuts.placement import Neighbours, is_put_in
from textcls.explain.shortcuts.reliance import AT_EDGE, Reliance, places_of, put_in, spelt, taken_out
from textcls.explain.shortcuts.terms import FIXED, Term, candidates, least_texts
from textcls.model import tokenizer
from textcls.model.classifier import Classifier
from textcls.model.excerpts import Excerpt, excerpt

# Put into texts of other labels, a shortcut raises the probability of its label by so much in the mean.
RISE: Final = 0.03
# Of fewer texts nothing could be told.
LEAST_TEXTS: Final = 100


@dataclass(frozen=True, slots=True)
class Shortcut:
    """Words that tell a label, that nothing around them calls for, and that the model goes by.

    Attributes:
        label: the label.
        text: the word, pair or phrase, in lower case; of a length what it is.
        kind: `words` or `length`.
        texts: how many hold it.
        of_label: how many of them carry the label.
        share: of all texts that carry the label.
        place: where it stands in nearly all of its texts: `start`, `end`, or anywhere.
        put_in: texts of other labels that were asked about with it; `put_in_changed` of them got the label by that, and
            `put_in_rise` is by how much its probability rose in the mean.
        taken_out: texts of the label that were asked about without it; `taken_out_changed` of them got another answer.
        example: where it stood.
    """

    label: str
    text: str
    kind: str
    texts: int
    of_label: int
    share: float
    place: str
    put_in: int
    put_in_changed: int
    put_in_rise: float
    taken_out: int
    taken_out_changed: int
    example: Excerpt | None


@dataclass(frozen=True, slots=True)
class ShortcutAudit:
    """What an audit found, and what it could have found.

    Attributes:
        shortcuts: the most frequent first.
        texts: how many were looked at.
        of_texts: how many there were; more than `texts` where only a sample could be held.
        labels_from: `file` if texts carried labels, `answers` if those of the model stood in for them.
        terms: words, pairs and phrases that were looked at.
        least_texts: in how many texts of a label something had to stand: of the label for which it is the fewest.
        lengths: whether there were enough texts to look at their lengths.
    """

    shortcuts: tuple[Shortcut, ...]
    texts: int
    of_texts: int
    labels_from: str
    terms: int
    least_texts: int
    lengths: bool

    @property
    def could_find(self) -> bool:
        """Whether there were texts enough to find anything."""
        return self.texts >= LEAST_TEXTS


class ShortcutAuditor:
    """Takes texts one at a time, and looks for shortcuts when all are there.

    Args:
        classifier: the model, of one label a text.
    """

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self._labelled, self._answered = Sample(), Sample()
        self._number = {name: i for i, name in enumerate(classifier.labels)}

    def add(self, text: str, label: str | None, answer: int) -> None:
        """Add a text with the label that it carries, if the model knows it, and the number of that it was answered."""
        number = None if label is None else self._number.get(label)
        if number is not None:
            self._labelled.add(text, number)
        else:
            self._answered.add(text, answer)

    def audit(self) -> ShortcutAudit:
        """Return what there is: by the labels of the texts if at least half have one, else by the model's answers."""
        by_file = self._labelled.seen >= self._answered.seen
        sample = self._labelled if by_file else self._answered
        names, classifier = self.classifier.labels, self.classifier
        corpus = Corpus.of(sample.rows, len(names), classifier.info.max_tokens)
        source = "file" if by_file else "answers"
        if len(corpus.texts) < LEAST_TEXTS:
            return ShortcutAudit((), len(corpus.texts), sample.seen, source, 0, 0, False)
        terms, tested = candidates(corpus)
        put_in_terms = _put_in_terms(corpus, terms)
        found = [self._shortcut(corpus, term) for term in put_in_terms]
        alike, numbers = _with_numbers(corpus, put_in_terms)
        found += [self._shortcut(alike, term) for term in numbers]
        shortcuts = [shortcut for shortcut in found if shortcut is not None]
        cue = length_cue(classifier, corpus)
        if cue is not None:
            shortcuts.append(_of_length(names[cue.label], cue))
        least = min(least_texts(float(prior), len(corpus.texts), tested) for prior in corpus.priors if prior)
        enough = len(corpus.texts) >= 1_000
        return ShortcutAudit(tuple(shortcuts), len(corpus.texts), sample.seen, source, tested, least, enough)

    def _shortcut(self, corpus: Corpus, term: Term) -> Shortcut | None:
        """Return a term as a shortcut if the model goes by it."""
        put = put_in(self.classifier, corpus, term)
        if put.difference < RISE:
            return None
        out = taken_out(self.classifier, corpus, term)
        words = [corpus.words[word] for word in term.words]
        before, behind = corpus.word_T[term.first_O - 1] == START, corpus.word_T[term.lasts + 1] == END
        place = "start" if before.mean() > AT_EDGE else "end" if behind.mean() > AT_EDGE else "anywhere"
        text = corpus.texts[int(corpus.text_T[term.first_O[0]])]
        spans = list(tokenizer.token_spans(text))
        at = min(places_of(words, text, spans, corpus.reading))
        return Shortcut(
            label=self.classifier.labels[term.label],
            text=" ".join(words) if NUMBER in words else spelt(text, spans, at, len(words)),
            kind="words",
            texts=term.texts,
            of_label=term.of_label,
            share=float(corpus.priors[term.label]),
            place=place,
            **_reliances(put, out),
            example=excerpt(text, spans[at][0], spans[at + len(words) - 1][1]),
        )


def _put_in_terms(corpus: Corpus, terms: list[Term]) -> list[Term]:
    """Return the terms that were put into their texts; of those that overlap in most of their texts, the longest."""
    if not terms:
        return []
    neighbours, coherence = Neighbours.of(corpus), None
    found: list[Term] = []
    for term in sorted(terms, key=lambda term: -len(term.words)):
        if any(set(term.words) <= set(other.words) and term.texts < 1.25 * other.texts for other in found):
            continue
        if is_put_in(corpus, neighbours, term):
            coherence = coherence or Coherence(corpus)
            if not coherence.is_a_subject(term):
                found.append(term)
    return sorted(found, key=lambda term: (-term.texts, term.words))


def _with_numbers(corpus: Corpus, known: list[Term]) -> tuple[Corpus, list[Term]]:
    """Read all numbers as one, and return with the texts so read the terms of numbers that differ from text to text.

    Not those whose texts hold one of the `known`, whose number is nearly always the same.
    """
    rows = zip(corpus.texts, corpus.label_N.tolist(), strict=True)
    alike = Corpus.of(rows, corpus.labels, int(corpus.lengths.max()), numbers_alike)
    terms = [term for term in candidates(alike)[0] if NUMBER in [alike.words[word] for word in term.words]]
    held = [term.rows(corpus) for term in known]
    new = [term for term in terms if not any(np.isin(term.rows(alike), rows).mean() > FIXED for rows in held)]
    return alike, _put_in_terms(alike, new)


def _of_length(label: str, cue: LengthCue) -> Shortcut:
    if cue.shortest == cue.longest:
        text = f"texts of {cue.shortest:,} tokens"
    elif cue.longest is None:
        text = f"long texts: {cue.shortest:,} tokens or more"
    elif cue.shortest == 0:
        text = f"short texts: {cue.longest:,} tokens or fewer"
    else:
        text = f"texts of {cue.shortest:,} to {cue.longest:,} tokens"
    reliances = _reliances(cue.reliance, Reliance(0, 0, 0.0))
    return Shortcut(label, text, "length", cue.texts, cue.of_label, cue.share, "anywhere", **reliances, example=None)


def _reliances(put: Reliance, out: Reliance) -> dict[str, Any]:
    return {
        "put_in": put.texts,
        "put_in_changed": put.changed,
        "put_in_rise": put.difference,
        "taken_out": out.texts,
        "taken_out_changed": out.changed,
    }
