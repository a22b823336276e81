"""The train-valid split, the same on every run and in every order of rows.

It depends on hashes, so copies of a text stay together: what is learned is judged on texts that were not learned from.
If later rows will mostly have the very same texts, as with templates, copies are split up (`told_apart`).
"""

from collections.abc import Iterator, Sequence

import mmh3
import numpy as np

from textcls.model.tokenizer import tokenize
from textcls_training.config.resolve import FEW_ROWS, MANY_ROWS
from textcls_training.data.arrays import Bools, Int64
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.data.labelled_texts import LabelledTexts

SPLIT_SEED = 2021
# One tenth is held out for validation; with few rows, each of five parts in turn (cross-fitting).
PARTS, CROSS_FIT_PARTS, CROSS_FIT_BELOW = 10, 5, FEW_ROWS
# Texts count as templates up to this many different ones, each occurring at least this often on average.
MOST_TEMPLATES, LEAST_COPIES = 50, 10
# The share of rows whose text occurs once estimates that of new texts among later rows (Good 1953). If texts are drawn,
# the variance of their counts equals the mean; if a file was doubled, or texts have a few annotators each, it is 0.
MOST_NEW, LEAST_DISPERSION = 0.1, 0.5
# More validation rows than this add no information, and take time after each epoch.
MOST_VALIDATION_ROWS = MANY_ROWS // PARTS
# The same holds for validation rows times labels, each of which is a 32-bit number per view.
MOST_VALIDATION_NUMBERS = 25_000_000


def hash_of(text: str) -> int:
    """Return a 32-bit hash of a text. Texts are copies if their tokens are the same."""
    return hash_of_tokens(tokenize(text))


def hash_of_tokens(tokens: Sequence[str]) -> int:
    """Return the hash of a text that has these tokens."""
    return mmh3.hash(" ".join(tokens), SPLIT_SEED, signed=False)


def hashes_of(texts: Sequence[str]) -> Int64:
    """Return the hash of each text."""
    return np.fromiter(map(hash_of, texts), np.int64, len(texts))


def told_apart(hashes: Int64) -> Int64:
    """Return hashes by which rows are assigned: those of their texts, or of each row if later rows will mostly have
    these very texts.
    """
    if not _recurs(hashes):
        return hashes
    found = np.empty_like(hashes)
    found[np.argsort(hashes, kind="stable")] = np.random.default_rng(SPLIT_SEED).permutation(len(hashes))
    return found


def _recurs(hashes: Int64) -> bool:
    count = np.unique(hashes, return_counts=True)[1]
    if len(count) <= min(MOST_TEMPLATES, len(hashes) // LEAST_COPIES):
        return True
    drawn = bool(count.var() >= LEAST_DISPERSION * count.mean())
    return drawn and (count == 1).sum() <= MOST_NEW * len(hashes)


def parts_of(hashes: Int64, labels: Int64, parts: int) -> Int64:
    """Return the part of each row: within a label, texts are assigned evenly in the order of their hashes.

    A text that occurs under several labels counts for the first of them, so that its copies stay together.
    """
    unique, row = np.unique(hashes, return_inverse=True)
    label = np.full(len(unique), np.iinfo(np.int64).max)
    np.minimum.at(label, row, labels)
    order = np.lexsort((unique, label))
    size = np.unique(label, return_counts=True)[1]
    first = np.repeat(np.cumsum(size) - size, size)
    part = np.empty(len(unique), np.int64)
    part[order] = (np.arange(len(unique)) - first) * parts // np.repeat(size, size)
    return part[row]


def part_of_rows(given: LabelledTexts, parts: int) -> Int64:
    """Return the part [rows] of each row: within a label parts are alike; copies are in one part unless texts recur.

    A row of several labels counts for the rarest of them.
    """
    number = {name: i for i, name in enumerate(sorted(given.labels_in_use()))}
    if given.label_sets is None:
        label_R = np.array([number[label] for label in given.labels], np.int64)
    else:
        label_R = LabelMatrix.of(given.label_sets, list(number)).rarest()
    return parts_of(told_apart(hashes_of(given.texts)), label_R, parts)


def masks_of(
    hashes: Int64, labels: Int64, *, few: bool | None = None, sets: LabelMatrix | None = None
) -> Iterator[Bools]:
    """Yield masks of validation rows by the hash of each text: one mask, or several if rows are, or are declared to be,
    few.

    A row is never held out if no other row would be left to teach its label, or one of several of `sets`; these are
    assigned by the rarest label, which `labels` contains.
    """
    few = len(hashes) < CROSS_FIT_BELOW if few is None else few
    hashes = told_apart(hashes)
    parts = CROSS_FIT_PARTS if few else max(PARTS, -(-len(hashes) // MOST_VALIDATION_ROWS))
    part = parts_of(hashes, labels, parts)
    for i in range(CROSS_FIT_PARTS if few else 1):
        mask = part == i
        # A text that must stay in training takes all its copies along, whatever their labels.
        mask &= ~np.isin(hashes, hashes[_alone(mask, labels, sets)])
        classes = labels.max(initial=0) + 1 if sets is None else sets.classes
        yield mask if few else _some(mask, hashes, MOST_VALIDATION_NUMBERS // classes)


def _some(mask: Bools, hashes: Int64, most: int) -> Bools:
    """Return at most `most` rows of a mask, if there are texts with few copies: with very many labels, one row of each
    would be more.
    """
    if mask.sum() <= most:
        return mask
    hash_U, copies_U = np.unique(hashes[mask], return_counts=True)
    # A text with more copies would be a large part of the result.
    few_U = copies_U <= max(1, most // 10)
    kept = hash_U[few_U][copies_U[few_U].cumsum() <= most]
    return mask & np.isin(hashes, kept) if len(kept) else mask


def _alone(mask: Bools, labels: Int64, sets: LabelMatrix | None) -> Bools:
    """Return which rows of a mask have a label that no row outside it has."""
    if sets is None:
        left_C = np.bincount(labels[~mask], minlength=labels.max(initial=0) + 1)
        return np.asarray(mask & (left_C[labels] == 0))
    row_N = np.repeat(np.arange(len(mask)), sets.lengths())
    left_C = np.bincount(sets.label[~mask[row_N]], minlength=sets.classes)
    return np.asarray(mask & np.isin(np.arange(len(mask)), row_N[left_C[sets.label] == 0]))
