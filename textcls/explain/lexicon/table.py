"""The model as a table: terms with their weights, the most important first.

Shapes: W terms, C labels.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from textcls._util.formulas import without_formula
from textcls.errors import ConfigError
from textcls.explain.columns import column_effects
from textcls.explain.lexicon.terms import COLUMN, HEAD, MOST_TERMS, Kind, Terms, counted, mark
from textcls.explain.lexicon.weights import weights
from textcls.model.artifact import ModelInfo
from textcls.model.classifier import Classifier
from textcls.model.columns import named_cell
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
    """

    labels: tuple[str, ...]
    kinds: tuple[Kind, ...]
    terms: tuple[str, ...]
    counts: tuple[int, ...]
    weights: Float32
    unknown: int
    dropped: int
    several: bool = False

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
        """Return the lexicon as CSV, one term per line, with a column for each label."""
        rows = ((*term, *(f"{weight:.4f}" for weight in values)) for *term, values in self._rows())
        return _csv([*HEAD, *self.labels], rows, escape_formulas)

    def as_list(self, info: ModelInfo) -> str:
        """Return only the terms with their counts, without columns, as CSV: what `read_beside` reads for a model."""
        rows = zip(self.kinds, self.terms, self.counts, strict=True)
        return _csv([*HEAD, mark(info)], (row for row in rows if row[0] != COLUMN))

    def as_json(self) -> str:
        """Return the lexicon as a JSON list of objects, one per term."""
        found = [
            {"kind": kind, "term": term, "count": count, "weights": dict(zip(self.labels, values, strict=True))}
            for kind, term, count, values in self._rows()
        ]
        return json.dumps(found, ensure_ascii=False, indent=0) + "\n"

    def _rows(self) -> Iterator[tuple[str, str, int, list[float]]]:
        yield from zip(self.kinds, self.terms, self.counts, self.weights.tolist(), strict=True)


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


def lexicon_of(classifier: Classifier, terms: Terms) -> Lexicon:
    """Return the weights in a model with rows of terms, and of the values of its columns."""
    weights_WC = np.concatenate([weights(classifier, kind, [*some]) for kind, some in terms.of_kind.items()])
    kinds = [kind for kind, some in terms.of_kind.items() for _ in some]
    listed = [term for some in terms.of_kind.values() for term in some]
    counts = [count for some in terms.of_kind.values() for count in some.values()]
    largest_W = np.abs(weights_WC).max(1, initial=0.0)
    order = np.argsort(-largest_W, kind="stable")
    order = order[largest_W[order] > 0].tolist()
    asked = sum(kind != "piece" for kind in kinds)
    beside = [*_of_columns(classifier)]
    return Lexicon(
        classifier.labels,
        (*(kinds[i] for i in order), *(COLUMN for _ in beside)),
        (*(listed[i] for i in order), *(name for name, _ in beside)),
        (*(counts[i] for i in order), *[0] * len(beside)),
        np.concatenate([weights_WC[order], *(added_C[None] for _, added_C in beside)]),
        asked - sum(kinds[i] != "piece" for i in order),
        terms.dropped,
        classifier.info.several,
    )


def _of_columns(classifier: Classifier) -> Iterator[tuple[str, Float32]]:
    """Yield the values of columns, as `product = lamp`, each with what it adds to the labels."""
    for effect in column_effects(classifier):
        for value, added_C in zip(effect.values, effect.added, strict=True):
            yield named_cell(effect.name, value), added_C


def _csv(head: Iterable[str], rows: Iterable[Iterable[object]], escape_formulas: bool = False) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    shown = without_formula if escape_formulas else str
    for row in (head, *rows):
        writer.writerow([shown(value) if isinstance(value, str) else value for value in row])
    return file.getvalue()
