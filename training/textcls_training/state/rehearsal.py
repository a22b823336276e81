"""The rows that a state keeps, to be rehearsed when training continues: all rows, or a sample of them.

The sample contains the rows with the smallest hashes, and some rows of each label whatever their hashes. So it depends
only on the rows, and a sample of a sample and of new rows is a sample of all rows of all trainings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import mmh3
import numpy as np
from numpy.typing import NDArray

from textcls_training.data.arrays import Float32, Int32, Int64, starts
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.state.arrays_file import Arrays

# A different seed than that of splits, whose validation rows are those with the smallest hashes.
_SEED: Final = 2027
# The least number of rows of each label in the sample, as far as there are any.
LEAST_OF_A_LABEL: Final = 20
# The part number of a row that no split held out.
NO_PART: Final = -1


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Rows that are kept.

    Attributes:
        rows: the rows, in their order.
        part: which split held each out [R], from 0; `NO_PART` for none.
        whole: whether these are all rows that there were.
    """

    rows: LabelledTexts
    part: Int64
    whole: bool

    @classmethod
    def of(cls, given: LabelledTexts, labels: Int64, part: Int64, limit: int) -> "Rehearsal":
        """Keep at most `limit` rows.

        Args:
            given: the rows.
            labels: a number of the label of each, by which labels get their rows; with several, that of the rarest.
            part: as in the attribute.
            limit: how many are kept.
        """
        which = np.arange(len(given.texts)) if len(given.texts) <= limit else _sample(given.texts, labels, limit)
        return cls(given.only(which.tolist()), part[which], len(which) == len(given.texts))

    def arrays(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return the rows as arrays, their labels as numbers of `names`."""
        rows, found = self.rows, {**text_arrays("text", self.rows.texts), "part": self.part}
        if rows.label_sets is None:
            number = {name: i for i, name in enumerate(names)}
            found["label"] = np.array([number[label] for label in rows.labels], np.int64)
        else:
            sets = LabelMatrix.of(rows.label_sets, names)
            found |= {"set_start": sets.start, "set_label": sets.label, "set_probability": sets.probability}
        if rows.weights is not None:
            found["weight"] = np.array(rows.weights, np.float64)
        return found

    @classmethod
    def of_arrays(cls, arrays: Arrays, names: Sequence[str], *, whole: bool) -> "Rehearsal":
        """Return the rows from the arrays that `arrays` returns."""
        rows = LabelledTexts(texts=texts_of("text", arrays))
        if any(len(arrays[name]) != len(rows.texts) for name in ("weight", "label", "part") if name in arrays):
            raise ValueError("what is said of rows is not as many as they are")
        if "weight" in arrays:
            rows = replace(rows, weights=arrays["weight"].tolist())
        if "label" in arrays:
            rows = replace(rows, labels=[names[i] for i in _numbers(arrays["label"], len(names))])
        else:
            sets = _sets(arrays["set_start"], arrays["set_label"], arrays["set_probability"], names)
            rows = replace(rows, label_sets=sets)
        return cls(rows, arrays["part"], whole)


def joined(earlier: LabelledTexts, new: LabelledTexts) -> LabelledTexts:
    """Return earlier rows and new ones, with the columns of the new ones."""
    weights = None
    if earlier.weights is not None or new.weights is not None:
        weights = [weight for rows in (earlier, new) for weight in rows.weights or [1.0] * len(rows.texts)]
    return replace(
        new,
        texts=[*earlier.texts, *new.texts],
        labels=[*earlier.labels, *new.labels],
        label_sets=None if new.label_sets is None else [*(earlier.label_sets or ()), *new.label_sets],
        weights=weights,
    )


def _sample(texts: Sequence[str], labels: Int64, limit: int) -> Int64:
    hash_R = np.array([mmh3.hash(text.encode("utf-8", "surrogatepass"), _SEED, signed=False) for text in texts])
    by_label = np.lexsort((hash_R, labels))
    size = np.unique(labels[by_label], return_counts=True)[1]
    rank_R = np.empty(len(texts), np.int64)
    rank_R[by_label] = np.arange(len(texts)) - np.repeat(np.cumsum(size) - size, size)
    first = np.lexsort((hash_R, rank_R >= LEAST_OF_A_LABEL))[:limit]
    return np.sort(first)


def _sets(start: Int64, label: Int32, probability: Float32, names: Sequence[str]) -> list[dict[str, float]]:
    flat = [(names[i], share) for i, share in zip(_numbers(label, len(names)), probability.tolist(), strict=True)]
    return [dict(flat[begin:end]) for begin, end in pairwise(_ends(start, len(flat)))]


def _numbers(number: NDArray[Any], most: int) -> list[int]:
    """Return numbers that count from 0.

    Raises:
        ValueError: one of them is negative, or `most` or more.
    """
    if number.size and not (number.min() >= 0 and number.max() < most):
        raise ValueError("a number of nothing")
    found: list[int] = number.tolist()
    return found


def _ends(start: NDArray[Any], length: int) -> list[int]:
    """Return the offsets at which items stored end to end begin, and the end of the last one.

    Raises:
        ValueError: they do not rise from 0 to `length`.
    """
    if start.ndim != 1 or not len(start) or start[0] != 0 or start[-1] != length or (np.diff(start) < 0).any():
        raise ValueError("starts that do not rise")
    found: list[int] = start.tolist()
    return found


def text_arrays(name: str, texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return texts as arrays: their bytes in UTF-8, and where each begins."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    length = np.fromiter(map(len, encoded), np.int64, len(encoded))
    return {name: np.frombuffer(b"".join(encoded), np.uint8), f"{name}_start": starts(length)}


def texts_of(name: str, arrays: Arrays) -> list[str]:
    """Return the texts from the arrays that `text_arrays` returns."""
    content = arrays[name].tobytes()
    ends = _ends(arrays[f"{name}_start"], len(content))
    return [content[begin:end].decode("utf-8", "surrogatepass") for begin, end in pairwise(ends)]
