"""Find what would change the answer: the fewest tokens to leave out or exchange for another label, or else sentences.

The model itself is asked about every changed text, so what is found is exact for it. The search is bounded, and its
bounds are stated: each token by itself, then any two of the strongest, then more of them by a beam. If so few tokens
change nothing, as in long texts, whole sentences are left out, the strongest first, and put back if they need not go;
if no sentences do, tokens likewise.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from time import monotonic
from typing import Any, Final

import numpy as np

from textcls.errors import InputError, TooLargeError
from textcls.explain.column_changes import MOST_TRIED, ColumnChange, column_changes
from textcls.explain.intervention import Span, exchange
from textcls.explain.wanted_answer import WantedAnswer
from textcls.explain.word_groups import Groups
from textcls.model import tokenizer
from textcls.model.classifier import Classifier
from textcls.model.explanation import Explanation
from textcls.model.prediction import explanation_of
from textcls.model.units import Unit

# The number of tokens, the strongest first, that are left out singly, then in pairs, and in larger sets.
SINGLY: Final = 200
PAIRED: Final = 20
BEAM: Final = 8
MOST_CHANGES: Final = 8
# Texts that the model is asked about between two checks of the deadline.
AT_ONCE: Final = 64
# The most texts that the model is asked about if nothing is exchanged.
MOST_ASKED: Final = (
    SINGLY + PAIRED * (PAIRED - 1) // 2 + (MOST_CHANGES - 2) * BEAM * PAIRED + 2 * (2 * SINGLY + PAIRED**2) + MOST_TRIED
)

# A token, and what replaces it: None for nothing.
Option = tuple[int, str | None]
Options = tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A token that is left out or exchanged, or a sentence that is left out.

    Attributes:
        token: its number among all tokens or all sentences.
        start: where it starts in the text.
        end: where it ends.
        text: the original passage.
        by: its replacement; None if it is left out.
    """

    token: int
    start: int
    end: int
    text: str
    by: str | None


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A change of a text that changes its answer.

    Attributes:
        changes: in reading order.
        text: the changed text.
        label: the new answer; if a text may have several labels, the one that was wanted, or the most probable; if a
            node was wanted, that node.
        score: the probability of that.
        before: the label that was answered, or explained, before; or the node above it that was to be lost.
        before_score: its probability after the change.
        smallest: whether no smaller change is known to suffice: every single one was tried, and for two every pair of
            the strongest; for sentences, whether one is enough.
        several: whether a text may have several labels: `before` is then no longer assigned.
    """

    changes: tuple[Change, ...]
    text: str
    label: str
    score: float
    before: str
    before_score: float
    smallest: bool
    several: bool = False

    def as_json(self) -> dict[str, Any]:
        """The change as plain data."""
        found = asdict(self) | {"changes": [asdict(change) for change in self.changes]}
        del found["several"]
        return found


@dataclass(frozen=True, slots=True)
class Search:
    """The extent of a search, and its result.

    Attributes:
        text: the part of the text that was read.
        found: the smallest change found; None if there is none within the search.
        tokens: how many tokens, or words, were tried singly.
        asked: about how many texts the model was asked.
        unit: what was left out: `token`, or `word` if tokens are letters; `sentence` if no small set of them was found.
        sentences: how many there were to leave out; 0 if that was not tried.
        against: the label, or node, that was wanted instead; None for any.
        node: the node above labels that was to be lost; None if it was a label.
        columns: other categories beside the text that would change the answer, with the same text.
        cut: whether the text continues beyond what was read; the rest does not move up to replace what is left out.
        together: whether several tokens were tried at once.
        one_by_one: whether they were left out one after another, however many.
        by: what is tried first: `token`, or `word` if tokens are letters.
    """

    text: str
    found: Counterfactual | None
    tokens: int
    asked: int
    unit: Unit = "token"
    sentences: int = 0
    against: str | None = None
    node: str | None = None
    columns: tuple[ColumnChange, ...] = ()
    cut: bool = False
    together: bool = False
    one_by_one: bool = False
    by: Unit = "token"

    def as_json(self) -> dict[str, Any]:
        """The search as plain data."""
        found = None if self.found is None else self.found.as_json()
        told = {"found": found, "tokens": self.tokens, "asked": self.asked, "unit": self.unit}
        return told | ({"columns": [change.as_json() for change in self.columns]} if self.columns else {})


def counterfactual(
    classifier: Classifier,
    text: str,
    *,
    label: str | None = None,
    against: str | None = None,
    groups: Groups = (),
    seconds: float | None = None,
    threshold: float | None = None,
) -> Search:
    """Search for the smallest change of `text` that changes its answer.

    Args:
        classifier: the model.
        text: the text; its row, if there are columns beside it.
        label: if a text may have several labels, the one to be lost, by default the most probable; if labels are paths
            of a tree, a node: the labels below it, together more probable than all others, are to be so no longer.
            Otherwise the answer itself is to be lost, whichever label is named.
        against: the label, or node, to be answered instead; by default any other.
        groups: words that may be exchanged for each other; without any, tokens are only left out.
        seconds: the time limit of the search; None for no limit.
        threshold: if a text may have several labels, the threshold of each; by default the model's own.

    Raises:
        ConfigError: there is no such label or node, it is not in the answer, or `against` is the answer already.
        InputError: something other than a text was given.
        TooLargeError: the search took longer than allowed.
    """
    if isinstance(text, list | tuple):
        raise InputError(f"A {type(text).__name__} is not one text: pass one of its items.")
    deadline = math.inf if seconds is None else monotonic() + seconds
    prediction = classifier.predict(text, explain=True, threshold=threshold)
    wanted = WantedAnswer.of(classifier, prediction, label, against)
    explanation = explanation_of(prediction)
    readable = explanation.readable()
    tokens = _Searching(classifier, readable, wanted, groups, deadline)
    by_token = replace(tokens.run(), cut=prediction.truncated, by=readable.unit, unit=readable.unit)
    if explanation.cells:
        by_token = replace(by_token, columns=column_changes(classifier, explanation, wanted))
    if by_token.found is not None:
        return by_token
    sentences = explanation.grouped("sentence")
    by_sentence = _Searching(classifier, sentences, wanted, (), deadline)
    if (found := by_sentence.left_out()) is not None:
        by_token = replace(by_token, found=found, unit="sentence")
    else:
        asked = tokens.asked
        by_token = replace(by_token, found=tokens.left_out(), one_by_one=tokens.asked > asked)
    tried = len(sentences.spans) if len(sentences.spans) > 1 else 0
    return replace(by_token, asked=tokens.asked + by_sentence.asked, sentences=tried)


class _Searching:
    """A search: options, each a token with its replacement, and sets of options that were asked about."""

    def __init__(
        self, classifier: Classifier, explanation: Explanation, wanted: WantedAnswer, groups: Groups, deadline: float
    ) -> None:
        self.classifier, self.wanted, self.deadline = classifier, wanted, deadline
        self.spans: tuple[Span, ...] = explanation.spans
        # What was not read is excluded: nothing may move up from behind.
        self.text = explanation.text[: self.spans[-1][1]] if self.spans else ""
        self.row_with = explanation.row_with
        against = None if wanted.against is None else wanted.against.name
        self.values = explanation.attribution(wanted.before.name, against).values
        strongest = np.argsort(-self.values, kind="stable")[:SINGLY].tolist()
        self.options: list[Option] = [(i, None) for i in strongest]
        self.options += [(i, word) for i in strongest for word in _others(self.text, self.spans[i], groups)]
        self.tokens, self.asked, self.together = len(strongest), 0, False

    def run(self) -> Search:
        found = None
        margins = self._ask([(option,) for option in self.options])
        ranked = [self.options[i] for i in np.argsort(margins, kind="stable").tolist()]
        if margins and min(margins) < 0:
            found = self._counterfactual((ranked[0],), smallest=self.tokens == len(self.spans))
        elif margins:
            found = self._more(ranked[:PAIRED])
        before, wanted = self.wanted.before, self.wanted.against
        node, against = before.name if before.node else None, None if wanted is None else wanted.name
        return Search(self.text, found, self.tokens, self.asked, against=against, node=node, together=self.together)

    def left_out(self) -> Counterfactual | None:
        """Leave out the strongest until the answer changes, then put back each that need not go."""
        speaking = [option for option in self.options[: self.tokens] if self.values[option[0]] > 0]
        # An answer to a text without tokens means nothing.
        sizes = range(1, min(len(speaking), len(self.spans) - 1) + 1)
        margins = self._ask([tuple(speaking[:size]) for size in sizes])
        size = next((i + 1 for i, margin in enumerate(margins) if margin < 0), None)
        left = self._with_others(speaking) if size is None else speaking[:size]
        if left is None:
            return None
        for option in reversed(left):
            fewer = [other for other in left if other != option]
            if fewer and self._ask([tuple(fewer)])[0] < 0:
                left = fewer
        return self._counterfactual(tuple(left), smallest=len(left) == 1)

    def _with_others(self, left: Sequence[Option]) -> list[Option] | None:
        """Leave out more, the best of the others one at a time: without what supported it, another one may succeed."""
        left, others = list(left), [option for option in self.options[: self.tokens] if option not in left][:PAIRED]
        while len(others) > 1 or len(left) + len(others) < len(self.spans):
            margins = self._ask([(*left, option) for option in others])
            if not margins:
                return None
            best = int(np.argmin(margins))
            left.append(others.pop(best))
            if margins[best] < 0:
                return left
        return None

    def _more(self, strongest: Sequence[Option]) -> Counterfactual | None:
        """Try two changes at once, then a few more."""
        sets: list[Options] = [pair for pair in combinations(strongest, 2) if pair[0][0] != pair[1][0]]
        self.together = bool(sets)
        for size in range(2, MOST_CHANGES + 1):
            margins = self._ask(sets)
            if not margins:
                return None
            best = np.argsort(margins, kind="stable").tolist()
            if margins[best[0]] < 0:
                return self._counterfactual(sets[best[0]], smallest=size == 2 and self.tokens == len(self.spans))
            sets = self._longer([sets[i] for i in best[:BEAM]], strongest)
        return None

    def _longer(self, sets: Sequence[Options], strongest: Sequence[Option]) -> list[Options]:
        found: dict[Options, None] = {}
        for some in sets:
            for option in strongest:
                if option[0] not in {token for token, _ in some}:
                    longer = tuple(sorted((*some, option), key=lambda one: (one[0], one[1] or "")))
                    found[longer] = None
        return list(found)

    def _ask(self, sets: Sequence[Options]) -> list[float]:
        """Return how far each changed text is from another answer; below 0 it has another one."""
        self.asked += len(sets)
        margins: list[float] = []
        for first in range(0, len(sets), AT_ONCE):
            if monotonic() > self.deadline:
                raise TooLargeError(
                    f"The search for a change took too long after {first:,} of {len(sets):,} texts; give a shorter one."
                )
            changed = [self.row_with(self._changed(some)) for some in sets[first : first + AT_ONCE]]
            margins += [self.wanted.margin(answer) for answer in self.classifier.predict(changed)]
        return margins

    def _changed(self, some: Options) -> str:
        by = {token: word if word is not None else _blank(self.spans[token]) for token, word in some}
        return exchange(self.text, self.spans, by)

    def _counterfactual(self, some: Options, *, smallest: bool) -> Counterfactual:
        text = self._changed(some)
        answer = self.classifier.predict(self.row_with(text))
        changes = tuple(
            Change(token, *self.spans[token], self.text[slice(*self.spans[token])], word)
            for token, word in sorted(some, key=lambda one: one[0])
        )
        label, score, before_score = self.wanted.told(answer)
        before = self.wanted.before.name
        return Counterfactual(
            changes, text, label, score, before, before_score, smallest=smallest, several=answer.several
        )


def _blank(span: Span) -> str:
    return " " * (span[1] - span[0])


def _others(text: str, span: Span, groups: Groups) -> list[str]:
    """Return the single-token words that the token may be exchanged for."""
    token = tokenizer.lower(text[slice(*span)])
    found = [word for group in groups if (token,) in group for word in group if word != (token,) and len(word) == 1]
    return [word[0] for word in found]
