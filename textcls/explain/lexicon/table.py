"""The model as a table: terms with their weights, the most important first, and how two models differ.

Shapes: W terms, C labels.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, astuple, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcls._util.formulas import without_formula
from textcls.errors import ConfigError
from textcls.explain.columns import column_effects
from textcls.explain.lexicon.terms import COLUMN, HEAD, KINDS, MOST_TERMS, Kind, Terms, counted, mark
from textcls.explain.lexicon.weights import weights
from textcls.model.artifact import ModelInfo
from textcls.model.classifier import Classifier
from textcls.model.columns import Column, named_cell
from textcls.model.labels import label_number

Float32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The weights of words, sequences and pieces in a model, the most important first, then those of column values.

    Attributes:
        labels: the labels of the model.
        kinds: `word`, `pair`, `triple` or `piece` for each term, `column` for the value of a column.
        terms: the text, in lower case (`textcls.explain.lexicon.terms`); for a column `product = lamp`.
        counts: how often each occurs in its source; columns are not counted, and have 0.
        weights: the weight of each for each label [W, C], in logits before the norm; of a column what it adds.
        unknown: for how many of the words and sequences the model has no row.
        dropped: how many were left out because there were too many, the rarest first.
        several: whether labels are independent and do not compete.
        low: the smallest of these weights over several models of the same rows [W, C]; None with only one model.
        high: the largest, likewise.
        columns: the columns beside the text that are included.
    """

    labels: tuple[str, ...]
    kinds: tuple[Kind, ...]
    terms: tuple[str, ...]
    counts: tuple[int, ...]
    weights: Float32
    unknown: int
    dropped: int
    several: bool = False
    low: Float32 | None = None
    high: Float32 | None = None
    columns: tuple[Column, ...] = ()

    @cached_property
    def evidence(self) -> Float32:
        """The evidence of each term for each label minus the mean of all [W, C]; by itself if labels do not compete."""
        return self.weights if self.several else self.weights - self.weights.mean(1, keepdims=True)

    def number(self, kind: Kind) -> int:
        """How many terms of a kind there are."""
        return self.kinds.count(kind)

    def top(self, label: str, k: int, *, against: bool = False) -> list[int]:
        """Return the numbers of the `k` words and sequences that say most for a label, or against it.

        Ranked by evidence times the root of the count, as rows are when a file is made small: a rare word may have a
        large weight by chance.

        Raises:
            ConfigError: there is no such label.
        """
        sign = -1 if against else 1
        value_W = sign * self.evidence[:, label_number(self.labels, label)]
        worth_W = value_W * np.sqrt(np.maximum(1, self.counts)) * ~np.isin(self.kinds, ("piece", COLUMN))
        return [i for i in np.argsort(-worth_W, kind="stable")[:k].tolist() if worth_W[i] > 0]

    def as_csv(self, *, escape_formulas: bool = False) -> str:
        """Return the lexicon as CSV, one term per line, with a column for each label, and for the ends of its range."""
        rows = (
            (kind, term, count, *map(_rounded, values.flatten().tolist())) for kind, term, count, values in self._rows()
        )
        ends = ("", " low", " high")[: 1 if self.low is None else None]
        return _csv([*HEAD, *(f"{label}{end}" for end in ends for label in self.labels)], rows, escape_formulas)

    def as_list(self, info: ModelInfo) -> str:
        """Return only the terms with their counts, without columns, as CSV: what `read_beside` reads for a model."""
        rows = zip(self.kinds, self.terms, self.counts, strict=True)
        return _csv([*HEAD, mark(info)], (row for row in rows if row[0] != COLUMN))

    def as_json(self) -> str:
        """Return the lexicon as a JSON list of objects, one per term."""
        names = ("weights", "low", "high")[: 1 if self.low is None else None]
        found = [
            {"kind": kind, "term": term, "count": count}
            | {name: dict(zip(self.labels, of.tolist(), strict=True)) for name, of in zip(names, values, strict=True)}
            for kind, term, count, values in self._rows()
        ]
        return _json(found)

    def _rows(self) -> Iterator[tuple[str, str, int, Float32]]:
        """Yield each term with its weights, and the ends of their range if there is one [1 or 3, C]."""
        values = [self.weights] if self.low is None or self.high is None else [self.weights, self.low, self.high]
        yield from zip(self.kinds, self.terms, self.counts, np.stack(values, 1), strict=True)

    def with_range(self, others: Iterable[Classifier]) -> "Lexicon":
        """Return the lexicon with the range of its weights over further models of the same rows, with the same labels.

        A term, or a column, that one of them does not know has a weight of 0 there.

        Raises:
            ConfigError: one of them has no values for words.
        """
        low, high = self.weights, self.weights
        for other in others:
            require_rows(other)
            columns = [other.labels.index(label) for label in self.labels]
            found_WC = np.zeros_like(self.weights)
            for kind in KINDS:
                which = [i for i, own in enumerate(self.kinds) if own == kind]
                found_WC[which] = weights(other, kind, [self.terms[i] for i in which])[:, columns]
            beside = dict(_of_columns(other, self.columns))
            for i, (kind, term) in enumerate(_keys(self)):
                if kind == COLUMN:
                    found_WC[i] = beside[term][columns]
            low, high = np.minimum(low, found_WC), np.maximum(high, found_WC)
        return replace(self, low=low, high=high)


def lexicon(classifier: Classifier, texts: Iterable[str], *, most: int = MOST_TERMS) -> Lexicon:
    """Return the weights of the words, sequences and pieces of `texts`, which are read once and not kept.

    Args:
        classifier: the model.
        texts: the source of the words, such as the texts of the training.
        most: at most this many words, and pairs, are counted; beyond that the rarest are dropped.

    Raises:
        ConfigError: the model has no values for words (`ModelInfo.beyond_rows`).
    """
    require_rows(classifier)
    return lexicon_of(classifier, counted(classifier.info, texts, most=most))


def require_rows(classifier: Classifier) -> None:
    """Refuse a model without values for words.

    Raises:
        ConfigError: it has none, as above.
    """
    if not classifier.graph.has_rows:
        raise ConfigError(
            f"{classifier.path} has no weights of words, since it has {classifier.info.beyond_rows}; for a lexicon, "
            "train without."
        )


def lexicon_of(classifier: Classifier, terms: Terms, columns: tuple[Column, ...] | None = None) -> Lexicon:
    """Return the weights in a model with rows of terms, and of the values of its columns, or of another model's."""
    columns = classifier.info.columns if columns is None else columns
    weights_WC = np.concatenate([weights(classifier, kind, [*some]) for kind, some in terms.of_kind.items()])
    kinds = [kind for kind, some in terms.of_kind.items() for _ in some]
    listed = [term for some in terms.of_kind.values() for term in some]
    counts = [count for some in terms.of_kind.values() for count in some.values()]
    largest_W = np.abs(weights_WC).max(1, initial=0.0)
    order = np.argsort(-largest_W, kind="stable")
    order = order[largest_W[order] > 0].tolist()
    asked = sum(kind != "piece" for kind in kinds)
    beside = [*_of_columns(classifier, columns)]
    return Lexicon(
        classifier.labels,
        (*(kinds[i] for i in order), *(COLUMN for _ in beside)),
        (*(listed[i] for i in order), *(name for name, _ in beside)),
        (*(counts[i] for i in order), *[0] * len(beside)),
        np.concatenate([weights_WC[order], *(added_C[None] for _, added_C in beside)]),
        asked - sum(kinds[i] != "piece" for i in order),
        terms.dropped,
        classifier.info.several,
        columns=columns,
    )


def _of_columns(classifier: Classifier, columns: tuple[Column, ...]) -> Iterator[tuple[str, Float32]]:
    """Yield the values of columns, as `product = lamp`, each with what it adds to the labels of a model."""
    for effect in column_effects(classifier, columns):
        for value, added_C in zip(effect.values, effect.added, strict=True):
            yield named_cell(effect.name, value), added_C


@dataclass(frozen=True, slots=True)
class TermChange:
    """The evidence of a term in two models.

    Attributes:
        kind: the kind of the term, or `column`.
        term: as text, or the value of a column, `product = lamp`.
        count: how often it occurs in its source.
        label: the label for which the two differ most.
        before: its evidence in the first, minus the mean over the labels that both know; None if it is unknown there.
        after: likewise in the second.
    """

    kind: Kind
    term: str
    count: int
    label: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float:
        """How much higher the evidence is in the second; that of an unknown term is 0."""
        return (self.after or 0.0) - (self.before or 0.0)


def changes(before: Lexicon, after: Lexicon) -> list[TermChange]:
    """Return the evidence of the same terms in two models, those that changed most relative to their counts first.

    Raises:
        ConfigError: they have no label in common.
    """
    labels = [label for label in after.labels if label in before.labels]
    if not labels:
        raise ConfigError("The two models have no label in common, so their words cannot be compared.")
    sides = [_evidence(found, labels) for found in (before, after)]
    counts = {key: count for found in (before, after) for key, count in zip(_keys(found), found.counts, strict=True)}
    silent = np.zeros(len(labels), np.float32)
    found_changes = []
    for key, count in counts.items():
        first, second = (side.get(key) for side in sides)
        moved = (silent if second is None else second) - (silent if first is None else first)
        most = int(np.abs(moved).argmax())
        values = (None if side is None else float(side[most]) for side in (first, second))
        found_changes.append(TermChange(*key, count, labels[most], *values))
    return sorted(found_changes, key=lambda one: (-abs(one.change) * max(1, one.count) ** 0.5, one.kind, one.term))


def _keys(found: Lexicon) -> Iterator[tuple[Kind, str]]:
    return zip(found.kinds, found.terms, strict=True)


def _evidence(found: Lexicon, labels: list[str]) -> dict[tuple[Kind, str], Float32]:
    weights_WC = found.weights[:, [found.labels.index(label) for label in labels]]
    if not found.several and len(labels) > 1:
        weights_WC = weights_WC - weights_WC.mean(1, keepdims=True)
    return dict(zip(_keys(found), weights_WC, strict=True))


def changes_csv(found: Iterable[TermChange], *, escape_formulas: bool = False) -> str:
    """Return the changes as CSV, one term per line."""
    rows = (
        [_rounded(value) if isinstance(value, float) else "" if value is None else value for value in astuple(one)]
        for one in found
    )
    return _csv([field.name for field in fields(TermChange)], rows, escape_formulas)


def changes_json(found: Iterable[TermChange]) -> str:
    """Return the changes as a JSON list of objects."""
    return _json([asdict(one) for one in found])


def _rounded(weight: float) -> str:
    return f"{weight:.4f}"


def _csv(head: Iterable[str], rows: Iterable[Iterable[object]], escape_formulas: bool = False) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    shown = without_formula if escape_formulas else str
    for row in (head, *rows):
        writer.writerow([shown(value) if isinstance(value, str) else value for value in row])
    return file.getvalue()


def _json(found: list[dict[str, Any]]) -> str:
    return json.dumps(found, ensure_ascii=False, indent=0) + "\n"
