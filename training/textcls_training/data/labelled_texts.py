"""Labelled texts as they are given, before anything in them is counted."""

import hashlib
import json
import struct
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from textcls.data import Labelled, LabelledSets, TargetOptions
from textcls.data.column_kinds import cells_of_rows
from textcls.errors import InputError
from textcls.model.columns import Column, pack
from textcls.model.label_sets import LabelSet
from textcls.model.labels import label_problem, labels_problem
from textcls_training.data.rationales import Spans

Rows = Labelled | LabelledSets
ONE_COLUMN: Final = TargetOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledTexts:
    """Labelled texts, and the names of the columns they came from.

    Attributes:
        texts: one per row.
        labels: one per text; none if texts have several.
        label_sets: if a text may have several labels, or none: those of each, with their probabilities.
        names: with label sets: the labels beyond those in them, such as columns without a positive row.
        weights: the weight of each row, at least 0; None if each is 1.
        rationales: human rationales of each text, the reasons for its label, as spans of characters; None for none.
        columns: the columns besides the text that the model reads.
        cells: their contents (`textcls.model.columns`), one line per row; empty without columns.
        text_columns: where the texts came from; several columns are joined.
        label_column: where the labels came from.
        written: how labels are written there, if a text may have several.
        renamed: if labels were renamed, the label for each other name that the rows use for it.
    """

    texts: Sequence[str]
    labels: Sequence[str] = ()
    label_sets: Sequence[LabelSet] | None = None
    names: Sequence[str] = ()
    weights: Sequence[float] | None = None
    rationales: Sequence[Spans] | None = None
    columns: tuple[Column, ...] = ()
    cells: Sequence[Sequence[str]] = ()
    text_columns: tuple[str, ...] = ("text",)
    label_column: str = "label"
    written: TargetOptions = ONE_COLUMN
    renamed: Mapping[str, str] = field(default_factory=dict)

    def labels_in_use(self) -> set[str]:
        """Return the distinct labels of all rows."""
        return set(self.labels) if self.label_sets is None else set().union(*self.label_sets)

    def only(self, numbers: Sequence[int]) -> "LabelledTexts":
        """Return the rows of these numbers."""
        return replace(
            self,
            texts=[self.texts[i] for i in numbers],
            labels=[self.labels[i] for i in numbers] if self.label_sets is None else (),
            label_sets=None if self.label_sets is None else [self.label_sets[i] for i in numbers],
            weights=None if self.weights is None else [self.weights[i] for i in numbers],
            cells=[self.cells[i] for i in numbers] if self.columns else (),
            rationales=None if self.rationales is None else [self.rationales[i] for i in numbers],
        )

    def counting(self) -> "LabelledTexts":
        """Return the rows that count: one of weight 0 is treated as absent. If none counts, return all."""
        if self.weights is None or all(self.weights) or not any(self.weights):
            return self
        return self.only([i for i, weight in enumerate(self.weights) if weight])

    def followed_by(self, rows: Sequence[tuple[str, str]]) -> "LabelledTexts":
        """Return these rows followed by more, each a label and a text, which have the mean weight of the rows and
        nothing in the columns besides the text.
        """
        texts, labels = [text for _, text in rows], [label for label, _ in rows]
        sets, weights = self.label_sets, self.weights
        return replace(
            self,
            texts=[*self.texts, *texts],
            labels=[*self.labels, *labels] if sets is None else (),
            label_sets=None if sets is None else [*sets, *({label: 1.0} for label in labels)],
            weights=None if weights is None else [*weights, *[sum(weights) / len(weights)] * len(texts)],
            rationales=None if self.rationales is None else [*self.rationales, *(() for _ in texts)],
            cells=[*self.cells, *([""] * len(self.columns) for _ in texts)] if self.columns else (),
        )

    def label_names(self) -> list[str]:
        """Return the distinct labels, sorted.

        Raises:
            InputError: there are too few, a model file could not store them, or no row has one of them.
        """
        found = self.labels_in_use()
        names = sorted(found.union(self.names))
        # What a model file cannot store is reported before the work.
        for name in names:
            if why := label_problem(name):
                raise InputError(f"The label of training row {self._first_row_of(name)} {why}.")
        if len(names) > 1 and (why := labels_problem(names)):
            raise InputError(f"Of the training rows {why}: is this the right label column?")
        if unused := sorted(set(names) - found):
            raise InputError(f"No training row has the label {unused[0]!r}; leave it out, or add rows that have it.")
        if self.weights is not None and not any(self.weights):
            raise InputError("All weights of the training rows are 0; a row counts only with a weight above 0.")
        least = 2 if self.label_sets is None else 1
        if len(names) < least:
            only = f"only the label {names[0]!r}" if names else "no labels"
            needed = "two labels" if least == 2 else "one label"
            raise InputError(f"The training rows have {only}; a classifier needs at least {needed}.")
        return names

    def _first_row_of(self, name: str) -> int:
        rows: Sequence[Container[str]] = [(label,) for label in self.labels]
        if self.label_sets is not None:
            rows = self.label_sets
        return next((i for i, labels in enumerate(rows) if name in labels), 0)

    def rows(self) -> Sequence[str]:
        """Return the rows as a model reads them: the texts, with their cells if there are columns."""
        if not self.columns:
            return self.texts
        return [pack(cells, text) for cells, text in zip(self.cells, self.texts, strict=True)]

    def sha256(self) -> str:
        """Return a hash of all texts and labels, in order, and of their weights."""
        digest = hashlib.sha256()
        targets: Sequence[Any] = self.labels if self.label_sets is None else self.label_sets
        for text, target in zip(self.rows(), targets, strict=True):
            for part in (target if isinstance(target, str) else json.dumps(sorted(target.items())), text):
                encoded = part.encode("utf-8", "surrogatepass")
                digest.update(len(encoded).to_bytes(8, "big") + encoded)
        for weight in self.weights or ():
            digest.update(struct.pack(">d", weight))
        return digest.hexdigest()


def labelled_texts_of(
    rows: Rows, targets: TargetOptions, spans: Sequence[Spans] | None = None, columns: Sequence[Column] = ()
) -> LabelledTexts:
    """Return the rows of files that are trained on, with the contents of the `columns` besides the text."""
    found = LabelledTexts(
        texts=rows.texts,
        labels=() if isinstance(rows, LabelledSets) else rows.labels,
        label_sets=rows.labels if isinstance(rows, LabelledSets) else None,
        names=rows.label_columns if isinstance(rows, LabelledSets) else (),
        weights=rows.weights,
        rationales=spans,
        text_columns=rows.text_columns,
        label_column=rows.label_column,
        written=targets,
        renamed=rows.renamed,
        columns=tuple(columns),
        cells=cells_of_rows(columns, rows.more) if columns else (),
    )
    return found.counting()
