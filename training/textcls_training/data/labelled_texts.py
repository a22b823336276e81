"""Labelled texts as they are given, before anything is counted in them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from textcls.errors import InputError
from textcls.labels import label_problem, labels_problem
from textcls_training.data.rationales import Spans


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledTexts:
    """Labelled texts, and the names of the columns they came from.

    Attributes:
        texts: one a row.
        labels: one a text.
        rationales: human rationales of each text, the reasons for its label, as spans of characters; None for none.
        text_columns: where the texts came from; several columns are joined.
        label_column: where the labels came from.
    """

    texts: Sequence[str]
    labels: Sequence[str]
    rationales: Sequence[Spans] | None = None
    text_columns: tuple[str, ...] = ("text",)
    label_column: str = "label"

    def label_names(self) -> list[str]:
        """Return the distinct labels, sorted.

        Raises:
            InputError: there are fewer than two, or a model file could not hold them.
        """
        names = sorted(set(self.labels))
        # What a model file cannot hold is told before the work.
        for name in names:
            if why := label_problem(name):
                raise InputError(f"The label of training row {self.labels.index(name)} {why}.")
        if len(names) > 1 and (why := labels_problem(names)):
            raise InputError(f"Of the training rows {why}: is their column the right one?")
        if len(names) < 2:
            only = f"only the label {names[0]!r}" if names else "no labels"
            raise InputError(f"The training rows have {only}; a classifier needs at least two.")
        return names

    def sha256(self) -> str:
        """Return a hash of all texts and labels, in their order."""
        digest = hashlib.sha256()
        for text, label in zip(self.texts, self.labels, strict=True):
            for part in (label, text):
                encoded = part.encode("utf-8", "surrogatepass")
                digest.update(len(encoded).to_bytes(8, "big") + encoded)
        return digest.hexdigest()
