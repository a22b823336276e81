"""The summary that a model file keeps of the answers to its held-out rows, and of the unknown words to be expected.

The file of a model that was fitted on all rows knows every word in them, except those that pruning left out. The share
of tokens of a new row that it will not know is therefore measured as if each row had been left out in turn: a word that
occurs in only one row would be unknown there. Counted by tokens of a stream, this is the estimate of Good (1953) and
Turing of what has not been seen; by rows, it counts a word that a text repeats as the text does.

Shapes: R rows, N tokens of them, U types.
"""

import math
from collections.abc import Sequence

import numpy as np

from textcls.evaluation.drift.summary import DIGITS, HeldOutSummary, UnknownShare
from textcls.model.artifact import HELD_OUT
from textcls_training.data.arrays import Bools, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.export.save import Tables
from textcls_training.export.tables import LookupTables
from textcls_training.fit.label_set_calibration import HeldOutDecisions
from textcls_training.fit.selection import SelectionResult
from textcls_training.fit.validation import LabelSetValidation
from textcls_training.models.ensemble import TrainedModel


def held_out_summary(
    selected: SelectionResult,
    decisions: HeldOutDecisions | None,
    model: TrainedModel,
    corpus: Corpus,
    tables: Tables,
    names: Sequence[str],
) -> dict[str, dict[str, object]]:
    """Return the additional metadata of the training; nothing without held-out rows.

    Args:
        selected: the selection, with the answers to the held-out rows.
        decisions: the decisions on these, if rows may have several labels, as in the report of the training.
        model: the trained model.
        corpus: the texts that it was trained on.
        tables: the tables that its file reads.
        names: the names of the labels, in their order.
    """
    if not len(selected.validation):
        return {}
    unknown = None
    if isinstance(tables, LookupTables):
        known_U = tables.knows(corpus.types)
        alone_U = in_one_row(corpus)
        if model.vector_view is not None:
            alone_U &= model.vector_view.space.encode(corpus).row_of_type == 0
        unknown = unknown_share(corpus, ~known_U | alone_U)
    validation, lengths = selected.validation, corpus.lengths()
    if decisions is not None and isinstance(validation, LabelSetValidation):
        gold = validation.target_RC >= 0.5
        found = HeldOutSummary.of_sets(*decisions, gold, lengths, unknown, names)
    else:
        probabilities = selected.calibration.probabilities(selected.logits)
        found = HeldOutSummary.of(probabilities, selected.labels, lengths, unknown, names)
    return {HELD_OUT: found.to_json()}


def in_one_row(corpus: Corpus) -> Bools:
    """Return which types [U] occur in only one row, earlier texts included."""
    first_U, last_U = np.full(len(corpus.types), len(corpus)), np.full(len(corpus.types), -1)
    before = 0
    for part in corpus.parts():
        row_N = before + _rows(part)
        np.minimum.at(first_U, part.token, row_N)
        np.maximum.at(last_U, part.token, row_N)
        before += len(part)
    alone_U: Bools = first_U == last_U
    return alone_U if corpus.earlier is None else alone_U & (corpus.earlier.count == 0)


def unknown_share(corpus: Corpus, unknown_U: Bools) -> UnknownShare:
    """Return the share of the tokens of given types, with its standard error as that of a ratio over rows."""
    parts = [np.bincount(_rows(part)[unknown_U[part.token]], minlength=len(part)) for part in corpus.parts()]
    unknown_R: Int64 = np.concatenate([np.zeros(0, np.int64), *parts])
    tokens_R = corpus.lengths()
    tokens = int(tokens_R.sum())
    share = int(unknown_R.sum()) / tokens
    error = math.sqrt(float(((unknown_R - share * tokens_R) ** 2).sum())) / tokens
    return UnknownShare(round(share, DIGITS), round(error, DIGITS))


def _rows(corpus: Corpus) -> Int64:
    """Return the row of each token [N]."""
    return np.repeat(np.arange(len(corpus)), corpus.lengths())
