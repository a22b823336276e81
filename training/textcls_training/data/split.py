"""The train-valid split, the same on every run and in every order of rows.

It depends on hashes, so copies of a text stay together: what is learned is judged by texts that were not. Where later
rows will mostly have the very same texts, as where these are templates, copies are split up (`told_apart`).
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
# One part of ten is held out for validation; with few rows each of five parts in turn (cross-fitting).
PARTS, CROSS_FIT_PARTS, CROSS_FIT_BELOW = 10, 5, FEW_ROWS
# At most so many different texts, each so often in the mean, are templates.
MOST_TEMPLATES, LEAST_COPIES = 50, 10
# The share of rows whose text comes once is that of new texts among later rows (Good 1953). Where texts are drawn, the
# variance of their counts is as large as the mean; where a file was doubled, or texts have a few judges each, it is 0.
MOST_NEW, LEAST_DISPERSION = 0.1, 0.5
# More validation rows than this tell no more, and take time after each epoch.
MOST_VALIDATION_ROWS = MANY_ROWS // PARTS
# Nor do more of them times labels, each of which is a number of 32 bits a view.
MOST_VALIDATION_NUMBERS = 25_000_000


def hash_of(text: str) -> int:
    """Return 32 bits of a text. Texts are copies when their tokens are the same."""
    return hash_of_tokens(tokenize(text))


def hash_of_tokens(tokens: Sequence[str]) -> int:
    """Return the hash of a text that has these tokens."""
    return mmh3.hash(" ".join(tokens), SPLIT_SEED, signed=False)


def hashes_of(texts: Sequence[str]) -> Int64:
    """Return the hash of each text."""
    return np.fromiter(map(hash_of, texts), np.int64, len(texts))


def told_apart(hashes: Int64) -> Int64:
    """Return hashes by which rows are dealt out: those of their texts, or of each row where later rows will mostly have
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
    """Return the part of each row: within a label, texts in the order of their hashes are dealt out evenly.

    A text that stands under several labels counts for the first of them, so that its copies stay together.
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
    """Yield masks of validation rows by the hash of each text: one mask, or several when rows are, or are said to be,
    few.

    A row is never held out when no other row would be left to teach its label, or one of several of `sets`; these are
    dealt out by the rarest, as `labels` has it.
    """
    few = len(hashes) < CROSS_FIT_BELOW if few is None else few
    hashes = told_apart(hashes)
    parts = CROSS_FIT_PARTS if few else max(PARTS, -(-len(hashes) // MOST_VALIDATION_ROWS))
    part = parts_of(hashes, labels, parts)
    for i in range(CROSS_FIT_PARTS if few else 1):
        mask = part == i
        # A text that must teach takes all its copies along, whatever their labels.
        mask &= ~np.isin(hashes, hashes[_alone(mask, labels, sets)])
        classes = labels.max(initial=0) + 1 if sets is None else sets.classes
        yield mask if few else _some(mask, hashes, MOST_VALIDATION_NUMBERS // classes)


def _some(mask: Bools, hashes: Int64, most: int) -> Bools:
    """Return so many rows of a mask at most, if there are texts with few copies: where labels are very many, a row of
    each would be more.
    """
    if mask.sum() <= most:
        return mask
    hash_U, copies_U = np.unique(hashes[mask], return_counts=True)
    # A text with more copies would be a large part of what is left.
    few_U = copies_U <= max(1, most // 10)
    kept = hash_U[few_U][copies_U[few_U].cumsum() <= most]
    return mask & np.isin(hashes, kept) if len(kept) else mask


def _alone(mask: Bools, labels: Int64, sets: LabelMatrix | None) -> Bools:
    """Return which rows of a mask have a label that no row beyond it has."""
    if sets is None:
        left_C = np.bincount(labels[~mask], minlength=labels.max(initial=0) + 1)
        return np.asarray(mask & (left_C[labels] == 0))
    row_N = np.repeat(np.arange(len(mask)), sets.lengths())
    left_C = np.bincount(sets.label[~mask[row_N]], minlength=sets.classes)
    return np.asarray(mask & np.isin(np.arange(len(mask)), row_N[left_C[sets.label] == 0]))
