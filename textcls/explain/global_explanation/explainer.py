"""Turn explanations, one at a time, into a global explanation."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from numbers import Real
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.data.given_labels import Labels, with_labels_if_known
from textcls.errors import ConfigError, InputError
from textcls.explain.global_explanation.decisions import Decisions
from textcls.explain.global_explanation.summary import DecidingWord, GlobalExplanation, LabelExplanation
from textcls.explain.global_explanation.sums import KEYS, Sums
from textcls.explain.shortcuts.audit import ShortcutAuditor
from textcls.explain.telling_columns import TellingColumns
from textcls.model import tokenizer
from textcls.model.artifact import ModelInfo
from textcls.model.classifier import Classifier, Text, require_classifier
from textcls.model.columns import named_cell
from textcls.model.explanation import Explanation, added_by_parts
from textcls.model.labels import label_number
from textcls.model.sequences import require_top

# A deciding word decides more than this share of the answers of its label, and at least this many of them.
DECIDING_SHARE: Final = 0.10
DECIDED_ANSWERS: Final = 5
# A pair that occurs only once in all texts is an accident.
PAIR_COUNT: Final = 2
# Explained answers in memory at once: with many labels and long texts each takes half a megabyte.
CHUNK: Final = 128


def explain_globally(
    classifier: Classifier,
    rows: Iterable[tuple[Text, str | Labels | None]],
    *,
    top: int = 10,
    deciding_share: float = DECIDING_SHARE,
    labels: Sequence[str] | None = None,
    each: Callable[[Explanation], None] | None = None,
) -> GlobalExplanation:
    """Return what `classifier` relies on over many texts: words and pairs for and against each label, and shortcuts.

    Args:
        classifier: the model.
        rows: texts with their labels, None if a text has none; read once. A bounded sample of them is kept in memory to
            look for shortcuts. If a text may have several labels: with all of its labels, or the probability of each,
            of which those from 1/2 on count; None if they are not known.
        top: words, and pairs, for and against each label.
        deciding_share: a word that decides more than this share of a label's answers is reported as deciding.
        labels: those to explain, in this order; all by default.
        each: is called with the explanation of each text in turn, by tokens, for further use.

    Raises:
        ConfigError: there is no such label, or `top` or `deciding_share` is out of its range.
        InputError: there are no rows, or one is not a pair of a text and its label, or its labels, or None.

    Examples:
        >>> rows = zip(*textcls.read("tickets.csv"))
        >>> found = textcls.explain_globally(textcls.Classifier.load("tickets.onnx"), rows, top=3)
        >>> found.texts, found.labelled
        (875, 875)
    """
    require_classifier(classifier)
    require_top(top)
    if not isinstance(deciding_share, Real) or not 0 <= deciding_share < 1:
        raise ConfigError(f"deciding_share is a share from 0 and below 1, not {deciding_share!r}.")
    if isinstance(labels, str):
        raise ConfigError(f"labels are a list of labels, as in [{labels!r}], not one string.")
    explainer = GlobalExplainer(classifier.labels, cuts=assigned_from(classifier.info), curves=curves(classifier.info))
    auditor, telling = ShortcutAuditor(classifier), TellingColumns(classifier.info.columns)
    for name in labels or ():
        label_number(classifier.labels, name)  # Refused before the rows are read.
    remaining = with_labels_if_known(rows, classifier.info)
    while chunk := list(islice(remaining, CHUNK)):
        explanations = classifier.explain([text for text, _ in chunk])
        for explanation, (_, label) in zip(explanations, chunk, strict=True):
            carried = {label} if isinstance(label, str) else label
            answers = explainer.add(explanation.readable(), carried)
            if each is not None:
                each(explanation)
            auditor.add(explanation.text, carried, answers)
            if isinstance(label, str):
                telling.add([cell.cell for cell in explanation.cells], label)
    found = explainer.summary(top, deciding_share, labels)
    if not found.texts:
        raise InputError("There are no rows.")
    return replace(found, audit=auditor.audit(), told_by=telling.sentences())


def assigned_from(info: ModelInfo) -> NDArray[np.float64] | None:
    """Return the logits from which on labels are assigned [labels] if a text may have several; None otherwise."""
    if info.thresholds is None or info.scale is None or info.shift is None:
        return None
    threshold = np.array(info.thresholds, np.float64)
    with np.errstate(divide="ignore"):
        log_odds = np.log(threshold) - np.log1p(-threshold)
    return np.asarray((log_odds - np.array(info.shift)) / np.array(info.scale))


def answers_of(explanation: Explanation, cuts: NDArray[np.float64] | None) -> list[int]:
    """Return the numbers of the labels that a text was answered with; `cuts` as `assigned_from` returns them."""
    if cuts is None:
        return [int(explanation.probability_values.argmax())]
    found: list[int] = np.flatnonzero(explanation.logit_values >= cuts).tolist()
    return found


def curves(info: ModelInfo) -> frozenset[str]:
    """Return the columns beside the text that are numbers or dates: each counts as one, whatever its values."""
    return frozenset(column.name for column in info.columns if column.numbers)


def named_parts(explanation: Explanation, curves: Collection[str] = ()) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the summands of an answer: words in lower case, then cells, `product = lamp`, those of `curves` by name.

    The second list contains the place of each in the text; a cell has none, and gets the beginning.
    """
    text = tokenizer.lower(tokenizer.clean(explanation.text))
    names = [text[start:end] for start, end in explanation.spans]
    names += [c.name if c.name in curves else named_cell(c.name, c.value) for c in explanation.cells]
    return names, [*explanation.spans, *[(0, 0)] * len(explanation.cells)]


class GlobalExplainer:
    """Add up explanations, one at a time.

    Args:
        labels: the model's labels, in its order.
        keys: the most words, and pairs, that are kept; fewer if there are many labels (`CELLS`).
        cuts: if a text may have several labels, the logit from which on each is assigned [labels]; None if a text has
            one.
        curves: as `named_parts` takes them.
    """

    def __init__(
        self,
        labels: Sequence[str],
        keys: int = KEYS,
        cuts: NDArray[np.float64] | None = None,
        curves: Collection[str] = (),
    ) -> None:
        self.labels, self._cuts, self._curves = tuple(labels), cuts, set(curves)
        self._words, self._pairs = Sums(len(labels), keys), Sums(len(labels), keys)
        self._decisions = Decisions(keys)
        self._answers = np.zeros(len(labels), np.int64)
        self._texts = self._tokens = self._labelled = self._right = 0

    def add(self, explanation: Explanation, right: str | Collection[str] | None = None) -> list[int]:
        """Add one text, and return the numbers of its answers.

        Args:
            explanation: the explanation of the text.
            right: its label, or labels; None if that is not known.
        """
        answers = answers_of(explanation, self._cuts)
        carried = {right} if isinstance(right, str) else set(right or ())
        self._texts += 1
        self._tokens += int(explanation.sizes.sum())
        self._answers[answers] += 1
        self._labelled += right is not None
        self._right += right is not None and {self.labels[answer] for answer in answers} == carried
        spans = explanation.spans
        if not spans and not explanation.cells:
            return answers
        parts, parts_at = named_parts(explanation, self._curves)
        words, evidence = parts[: len(spans)], explanation.evidence_of_all()
        # Tokens contain no white space, so a pair has one spelling.
        pairs = [f"{a} {b}" for a, b in pairwise(words)]
        places = [(a, b) for (a, _), (_, b) in pairwise(spans)]
        of_words = evidence[: len(spans)]
        self._pairs.add(pairs, of_words[:-1] + of_words[1:], explanation.text, places)
        self._words.add(parts, evidence, explanation.text, parts_at)
        added = added_by_parts(explanation)
        for answer in answers:
            wrong = right is not None and self.labels[answer] not in carried
            cut = None if self._cuts is None else float(self._cuts[answer])
            self._decisions.add(parts, added, explanation.logit_values, answer, wrong=wrong, cut=cut)
        return answers

    def summary(
        self, top: int = 10, deciding_share: float = DECIDING_SHARE, labels: Sequence[str] | None = None
    ) -> GlobalExplanation:
        """Return the global explanation.

        Args:
            top: words, and pairs, for and against each label.
            deciding_share: a word that decides more than this share of a label's answers is reported as deciding.
            labels: those to explain, in this order; all by default.

        Raises:
            ConfigError: there is no such label.
        """
        names = self.labels if labels is None else tuple(dict.fromkeys(labels))
        wanted = [label_number(self.labels, name) for name in names]
        explained = tuple(
            LabelExplanation(
                self.labels[i],
                int(self._answers[i]),
                self._words.ranked(i, 1, top, 1),
                self._words.ranked(i, -1, top, 1),
                self._pairs.ranked(i, 1, top, PAIR_COUNT),
                self._pairs.ranked(i, -1, top, PAIR_COUNT),
            )
            for i in wanted
        )
        return GlobalExplanation(
            texts=self._texts,
            tokens=self._tokens,
            labelled=self._labelled,
            right=self._right,
            dropped=self._words.dropped + self._pairs.dropped,
            deciding=self._deciding(deciding_share, set(wanted)),
            labels=explained,
            deciding_share=deciding_share,
            mirrored=len(wanted) == len(self.labels) == 2 and self._cuts is None,
            several=self._cuts is not None,
        )

    def _deciding(self, share: float, wanted: Collection[int]) -> tuple[DecidingWord, ...]:
        found = [
            DecidingWord(
                label=self.labels[label],
                text=word,
                share=decided / int(self._answers[label]),
                decided=decided,
                holding=self._decisions.holding[label, word],
                answers=int(self._answers[label]),
                wrong=self._decisions.wrong[label, word] if self._labelled else None,
                example=self._words.example(self._words.number[word], label, 1),
            )
            for (label, word), decided in self._decisions.decided.items()
            if label in wanted
            and decided >= DECIDED_ANSWERS
            and decided > share * int(self._answers[label])
            and word in self._words.number
        ]
        return tuple(sorted(found, key=lambda s: (-s.share, s.label, s.text)))
