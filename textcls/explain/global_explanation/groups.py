"""Compare two groups of texts: which words count more for a label in one of them than in the other, exactly.

The evidence of a text for a label is a sum over its words, so the difference of two groups' means is one, too: what
each word adds to a text here, minus what it adds there. This finds both a word that occurs in more texts of one group
and one that counts more when it occurs. Differences that chance would produce are left out: with m words, those below
the quantile 1 - 0.05 / (2 m) of the normal distribution, in standard errors (Student; Bonferroni over the words).
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls.errors import InputError
from textcls.explain.global_explanation.explainer import CHUNK, answers_of, assigned_from, curves, named_parts
from textcls.explain.global_explanation.sums import CELLS, KEYS, Sums
from textcls.model.classifier import Classifier, require_classifier
from textcls.model.excerpts import Excerpt
from textcls.model.explanation import Explanation
from textcls.model.labels import label_number
from textcls.model.sequences import require_texts, require_top

# In one of twenty comparisons of groups that differ by chance alone, a label lists a word falsely.
LEVEL: Final = 0.05
# A word is compared if this many texts of the smaller group contain it, or would if it were as frequent as in the
# other: the standard error of rarer ones is meaningless.
LEAST_TEXTS: Final = 10
Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TermDifference:
    """How much more a word adds for a label to a text of the first group than to one of the second.

    Attributes:
        text: the word, in lower case.
        difference: between the means over all texts of each group, in logits; negative if it adds more in the second.
        error: the standard error of the difference.
        in_first: the share of the first group's texts that contain the word.
        in_second: the share of the second group's texts that do.
        example: an occurrence in the group in which it adds more, or subtracts less.
    """

    text: str
    difference: float
    error: float
    in_first: float
    in_second: float
    example: Excerpt


@dataclass(frozen=True, slots=True)
class LabelDifference:
    """A label in both groups.

    Attributes:
        label: the label.
        answered_first: the share of the first group's texts that are answered with it.
        answered_second: the share of the second group's texts that are.
        difference: the difference of the mean evidence of all words, in logits; the differences of all terms, listed or
            not, add up to it.
        more: words that add more in the first group, the largest difference first.
        less: words that add more in the second group, likewise.
    """

    label: str
    answered_first: float
    answered_second: float
    difference: float
    more: tuple[TermDifference, ...]
    less: tuple[TermDifference, ...]


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """What a model relies on in one group of texts, compared with another.

    Attributes:
        first: how many texts the first group has.
        second: how many the second has.
        words: how many words, those in enough texts, were compared.
        labels: each label, or each requested one.
        dropped: rare words that were forgotten to bound memory.
        mirrored: whether these are the model's only two labels, and none was requested: what counts for one counts
            against the other.

    Examples:
        >>> classifier = textcls.Classifier.load("tickets.onnx")
        >>> textcls.compare_groups(classifier, ["where is my parcel"] * 30, ["my card was charged"] * 30).second
        30
    """

    first: int
    second: int
    words: int
    labels: tuple[LabelDifference, ...]
    dropped: int
    mirrored: bool

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return asdict(self)


def compare_groups(
    classifier: Classifier,
    first: Iterable[str],
    second: Iterable[str],
    *,
    top: int = 10,
    labels: Sequence[str] | None = None,
) -> GroupComparison:
    """Return which words count more for each label in the first group of texts than in the second.

    Args:
        classifier: the model.
        first: texts, read once.
        second: others, likewise.
        top: the number of words for each label and side.
        labels: those to compare; all by default.

    Raises:
        ConfigError: there is no such label, or `top` is not a number.
        InputError: a group has no texts, or is a table, a set or one text.

    Examples:
        >>> texts, _ = textcls.read("tickets.csv")
        >>> found = textcls.compare_groups(textcls.Classifier.load("tickets.onnx"), texts[:200], texts[200:400])
        >>> found.first, found.second
        (200, 200)
    """
    require_classifier(classifier)
    require_top(top)
    for texts in (first, second):
        require_texts(texts)
    names = tuple(dict.fromkeys(classifier.labels if labels is None else labels))
    wanted = [label_number(classifier.labels, name) for name in names]
    sums = _GroupSums(classifier, wanted)
    for group, (name, texts) in enumerate((("first", first), ("second", second))):
        sums.read(group, texts)
        if not sums.texts[group]:
            raise InputError(f"The {name} group has no texts, so that there is nothing to compare.")
    compared = sums.terms()
    return GroupComparison(
        first=int(sums.texts[0]),
        second=int(sums.texts[1]),
        words=len(compared),
        labels=tuple(sums.difference(compared, i, name, top) for i, name in enumerate(names)),
        dropped=sums.dropped,
        mirrored=labels is None and len(names) == 2 and not classifier.info.several,
    )


class _GroupSums:
    """Sums over the texts of two groups (G), with each word counted once per text, for some labels (L)."""

    def __init__(self, classifier: Classifier, wanted: Sequence[int]) -> None:
        self._classifier, self._wanted = classifier, np.array(wanted, np.intp)
        self._cuts, self._curves = assigned_from(classifier.info), curves(classifier.info)
        # For each word: evidence and its square [G, L], then how many texts of each group contain it [G]. One table,
        # so that a word that is rare in one group and frequent in the other is not forgotten.
        self._sums = Sums(4 * len(wanted) + 2, KEYS, cells=4 * CELLS)
        self.texts = np.zeros(2, np.int64)
        self._answers_GL, self._evidence_GL = np.zeros((2, len(wanted))), np.zeros((2, len(wanted)))

    @property
    def dropped(self) -> int:
        """How many words were forgotten."""
        return self._sums.dropped

    def read(self, group: int, texts: Iterable[str]) -> None:
        """Add the texts of a group."""
        remaining = iter(texts)
        while chunk := list(islice(remaining, CHUNK)):
            for explanation in self._classifier.explain(chunk):
                self._add(group, explanation.readable())

    def _add(self, group: int, explanation: Explanation) -> None:
        self.texts[group] += 1
        self._answers_GL[group] += np.isin(self._wanted, answers_of(explanation, self._cuts))
        if not explanation.spans and not explanation.cells:
            return
        evidence_TL = explanation.evidence_of_all()[:, self._wanted]
        self._evidence_GL[group] += evidence_TL.sum(0)
        words, places = named_parts(explanation, self._curves)
        spans = dict(zip(reversed(words), reversed(places), strict=True))  # Where each stands first.
        number = {word: i for i, word in enumerate(spans)}
        evidence_WL = np.zeros((len(spans), len(self._wanted)))
        np.add.at(evidence_WL, [number[word] for word in words], evidence_TL)
        added = np.zeros((len(spans), 2, 2, len(self._wanted)))
        added[:, 0, group], added[:, 1, group] = evidence_WL, evidence_WL**2
        stands = np.zeros((len(spans), 2))
        stands[:, group] = 1
        columns = np.concatenate([added.reshape(len(spans), -1), stands], 1)
        self._sums.add(list(spans), columns, explanation.text, list(spans.values()))

    def terms(self) -> NDArray[np.intp]:
        """Return the numbers of the words that are compared."""
        expected = (self._stands / self.texts * self.texts.min()).max(1)
        return np.flatnonzero(expected >= LEAST_TEXTS)

    @property
    def _stands(self) -> Float64:
        """How many texts of each group contain each word [words, 2]."""
        return self._sums.evidence[: len(self._sums.number), -2:]

    def difference(self, compared: NDArray[np.intp], label: int, name: str, top: int) -> LabelDifference:
        """Return the differences for one label, the `label`-th of the requested ones."""
        texts_G = self.texts
        table = self._sums.evidence[compared, :-2].reshape(len(compared), 2, 2, len(self._wanted))[..., label]
        means_WG = table[:, 0] / texts_G
        # The variance of texts that differ by chance alone: a group without the word would have none of its own.
        mean_W, square_W = (table[:, i].sum(1) / texts_G.sum() for i in (0, 1))
        errors_W = np.sqrt(np.maximum(square_W - mean_W**2, 0) * (1 / texts_G).sum())
        differences_W = means_WG[:, 0] - means_WG[:, 1]
        asked = int((self._stands.sum(1) >= LEAST_TEXTS).sum())  # Any of these might have been among those compared.
        quantile = NormalDist().inv_cdf(1 - LEVEL / 2 / max(1, asked))
        sure = np.flatnonzero(np.abs(differences_W) > quantile * errors_W)
        order = sure[np.argsort(-np.abs(differences_W[sure]), kind="stable")]
        words, stands_WG = list(self._sums.number), self._stands[compared] / texts_G

        def side(sign: int) -> tuple[TermDifference, ...]:
            chosen = order[sign * differences_W[order] > 0][:top].tolist()
            return tuple(
                TermDifference(
                    words[compared[i]],
                    float(differences_W[i]),
                    float(errors_W[i]),
                    float(stands_WG[i, 0]),
                    float(stands_WG[i, 1]),
                    self._sums.example(int(compared[i]), label + (sign < 0) * len(self._wanted), 1),
                )
                for i in chosen
            )

        first, second = (self._answers_GL[:, label] / texts_G).tolist()
        evidence = self._evidence_GL[:, label] / texts_G
        return LabelDifference(name, first, second, float(evidence[0] - evidence[1]), side(1), side(-1))
