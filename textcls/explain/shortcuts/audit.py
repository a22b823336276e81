"""Find shortcuts of a model in labelled texts, and determine what could have been found."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from textcls.explain.shortcuts.corpus import NUMBER, Corpus, Sample, numbers_alike
from textcls.explain.shortcuts.doubts import Judged, judged
from textcls.explain.shortcuts.lengths import LengthCue, length_cue
from textcls.explain.shortcuts.reliance import Reliance, places_of, put_in, spelt, taken_out
from textcls.explain.shortcuts.terms import FIXED, Term, candidates, least_texts
from textcls.explain.shortcuts.trial import Trial, trials
from textcls.model import tokenizer
from textcls.model.classifier import Classifier
from textcls.model.excerpts import Excerpt, excerpt

# Put into texts of other labels, a shortcut raises the probability of its label by at least this much on average.
RISE: Final = 0.03
# With fewer texts nothing can be found.
LEAST_TEXTS: Final = 100
# The model is asked about this many undoubted terms, the most frequent first, and this many doubted ones, the least
# doubted first; of the latter, this many are reported.
MOST_CALLED: Final = 100
MOST_ASKED: Final = 30
MOST_POSSIBLE: Final = 10


@dataclass(frozen=True, slots=True)
class Shortcut:
    """Words that predict a label, that nothing around them calls for, and that the model relies on.

    Attributes:
        label: the label.
        text: the word, pair or phrase, in lower case; for a length its description.
        kind: `words` or `length`.
        texts: how many contain it.
        of_label: how many of them have the label.
        share: the share of all texts that have the label.
        place: its position in nearly all of its texts: `start`, `end`, or anywhere.
        put_in: texts of other labels that were asked about with it; `put_in_changed` of them got the label as a result,
            and its probability rose by `put_in_rise` on average.
        taken_out: texts of the label that were asked about without it; `taken_out_changed` of them got another answer.
        example: an occurrence.
        doubt: why it may not be one: `belongs` (its context calls for it), `alike` (its texts have a subject in
            common), `few` (it is in few texts), `others` (texts of other labels contain it, too), `length` (lengths may
            belong to what is said); None if nothing speaks against it.
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
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class ShortcutAudit:
    """What an audit found, and what it could have found.

    Attributes:
        shortcuts: the most frequent first.
        possible: what predicts a label and moves the model, but may belong to what is said; the least doubted first.
        texts: how many were examined.
        of_texts: how many there were; more than `texts` if only a sample fitted in memory.
        labels_from: `file` if texts had labels, `answers` if those of the model were used instead.
        terms: the number of words, pairs and phrases examined.
        least_texts: the number of texts of a label that a term had to be in, for the label with the smallest number.
        lengths: whether there were enough texts to examine their lengths.
        trials: what was put into copies of the texts, and whether it would have been found.
        labels: the number of labels of the texts; if there is only one, nothing can predict it.
        left_out: texts that have no label that the model knows, if most do, or the reverse.
    """

    shortcuts: tuple[Shortcut, ...]
    possible: tuple[Shortcut, ...]
    texts: int
    of_texts: int
    labels_from: str
    terms: int
    least_texts: int
    lengths: bool
    trials: tuple[Trial, ...] = ()
    labels: int = 2
    left_out: int = 0

    @property
    def could_find(self) -> bool:
        """Whether there were enough texts and labels to find anything."""
        return self.texts >= LEAST_TEXTS and self.labels > 1


class ShortcutAuditor:
    """Collect texts one at a time, and look for shortcuts in all of them.

    Args:
        classifier: the model.
    """

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self._labelled, self._answered = Sample(), Sample()
        self._number = {name: i for i, name in enumerate(classifier.labels)}

    def add(self, text: str, labels: Collection[str] | None, answers: Sequence[int]) -> None:
        """Add a text with its labels, None if they are not known, and the numbers of its answers."""
        known = tuple(self._number[label] for label in labels or () if label in self._number)
        if labels is not None and len(known) == len(labels):
            self._labelled.add(text, known)
        else:
            self._answered.add(text, tuple(answers))

    def audit(self) -> ShortcutAudit:
        """Return the audit: by the labels of the texts if at least half have one, else by the model's answers."""
        by_file = self._labelled.seen >= self._answered.seen
        sample, others = (self._labelled, self._answered) if by_file else (self._answered, self._labelled)
        names, classifier = self.classifier.labels, self.classifier
        corpus = Corpus.of(sample.rows, len(names), classifier.info.max_tokens)
        source = "file" if by_file else "answers"
        labels = int((corpus.priors > 0).sum())
        if len(corpus.texts) < LEAST_TEXTS or labels < 2:
            return ShortcutAudit((), (), len(corpus.texts), sample.seen, source, 0, 0, False, labels=labels)
        terms, tested = candidates(corpus)
        found = [(corpus, one) for one in judged(corpus, terms)]
        alike = corpus.read_again(numbers_alike)
        numbered = _with_numbers(alike, corpus, [one.term for _, one in found if one.doubt is None])
        whole = [_words(*one) for one in numbered]
        # A sign before numbers is doubted by itself, and reported together with them.
        found = [one for one in found if one[1].doubt is None or not any(_words(*one) <= words for words in whole)]
        found += numbered
        called = sorted((one for one in found if one[1].doubt is None), key=lambda one: -one[1].term.texts)
        shortcuts = self._shortcuts(called[:MOST_CALLED])
        doubted = sorted((one for one in found if one[1].doubt is not None), key=lambda one: one[1].strength)
        possible = self._shortcuts(doubted[:MOST_ASKED])
        cue = length_cue(classifier, corpus)
        if cue is not None:
            (shortcuts if cue.sure else possible).insert(0, _of_length(names[cue.label], cue))
        least = min(least_texts(float(prior), len(corpus.texts), tested) for prior in corpus.priors if prior)
        enough = len(corpus.texts) >= 1_000
        lists = tuple(shortcuts), tuple(possible[:MOST_POSSIBLE])
        texts = len(corpus.texts)
        return ShortcutAudit(
            *lists, texts, sample.seen, source, tested, least, enough, trials(alike), labels, others.seen
        )

    def _shortcuts(self, found: Sequence[tuple[Corpus, Judged]]) -> list[Shortcut]:
        """Return the terms that the model relies on."""
        every = (self._shortcut(corpus, one.term, one.doubt) for corpus, one in found)
        return [shortcut for shortcut in every if shortcut is not None]

    def _shortcut(self, corpus: Corpus, term: Term, doubt: str | None) -> Shortcut | None:
        """Return a term as a shortcut if the model relies on it."""
        put = put_in(self.classifier, corpus, term)
        if put.difference < RISE:
            return None
        out = taken_out(self.classifier, corpus, term)
        words = [corpus.words[word] for word in term.words]
        text = corpus.texts[int(corpus.text_T[term.first_O[0]])]
        spans = list(tokenizer.token_spans(text))
        at = min(places_of(words, text, spans, corpus.reading))
        return Shortcut(
            label=self.classifier.labels[term.label],
            text=" ".join(words) if any(NUMBER in word for word in words) else spelt(text, spans, at, len(words)),
            kind="words",
            texts=term.texts,
            of_label=term.of_label,
            share=float(corpus.priors[term.label]),
            place=term.place(corpus),
            **_reliances(put, out),
            example=excerpt(text, spans[at][0], spans[at + len(words) - 1][1]),
            doubt=doubt,
        )


def _with_numbers(alike: Corpus, corpus: Corpus, known: Sequence[Term]) -> list[tuple[Corpus, Judged]]:
    """Return the undoubted terms of numbers that vary between texts, from the texts with all numbers read as one.

    Terms whose texts contain one of the `known` of `corpus`, whose number is nearly always the same, are left out.
    """
    terms = [term for term in candidates(alike)[0] if any(NUMBER in alike.words[word] for word in term.words)]
    held = [term.rows(corpus) for term in known]
    new = [term for term in terms if not any(np.isin(term.rows(alike), rows).mean() > FIXED for rows in held)]
    return [(alike, one) for one in judged(alike, new) if one.doubt is None]


def _words(corpus: Corpus, judged: Judged) -> set[str]:
    return {corpus.words[word] for word in judged.term.words}


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
    doubt = None if cue.sure else "length"
    return Shortcut(
        label, text, "length", cue.texts, cue.of_label, cue.share, "anywhere", **reliances, example=None, doubt=doubt
    )


def _reliances(put: Reliance, out: Reliance) -> dict[str, Any]:
    return {
        "put_in": put.texts,
        "put_in_changed": put.changed,
        "put_in_rise": put.difference,
        "taken_out": out.texts,
        "taken_out_changed": out.changed,
    }
