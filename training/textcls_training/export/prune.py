"""Pruning: lookup tables of the features that are worth their bytes. Shapes as in `textcls_training.export`."""

from dataclasses import replace
from typing import Final

import numpy as np

from textcls.errors import ConfigError
from textcls_training.config.settings import Size
from textcls_training.data.corpus import Corpus
from textcls_training.export.candidates import CandidateKinds, Candidates, list_candidates
from textcls_training.export.heads.linear_head import LinearHead
from textcls_training.export.perfect_hash import PerfectHash
from textcls_training.export.tables import LookupTables
from textcls_training.models.ensemble import TrainedModel
from textcls_training.torch_parts import torch_part

# The bytes of a file besides the tables: the token rule, the nodes, the metadata.
OVERHEAD_BYTES: Final = 43_000
# The bytes of the nodes of a third view, and of the metadata on its vectors.
VECTORS_BYTES: Final = 10_000
# The bytes of the nodes that count each distinct token once.
DISTINCT_BYTES: Final = 2_000


def budget(size: Size, labels: int) -> int | None:
    """Return the most bytes of a saved model, None for no limit; a row is longer with many labels."""
    more = 100_000 * max(0, labels - 10)
    return {"tiny": 300_000, "small": 1_000_000, "default": 3_000_000 + more, "full": None}[size]


def lookup_tables(model: TrainedModel, corpus: Corpus, max_bytes: int | None = None) -> LookupTables:
    """Return the tables of a saved model of at most about `max_bytes`; None prunes nothing.

    Args:
        model: the trained model.
        corpus: the texts that it was trained on.
        max_bytes: size of the file. The features that change answers least for their size are pruned first.

    Raises:
        ConfigError: there are rows, but not one of them fits.
    """
    every = kept = list_candidates(model, corpus)
    if max_bytes is not None:
        kept = _pruned(every, max_bytes - OVERHEAD_BYTES - _head_bytes(model))
    if _rows(kept.all) == 0 < _rows(every.all):
        classifier = model.classifiers[0]
        raise ConfigError(
            f"A file of {max_bytes:,} bytes cannot hold a single embedding row at dim {classifier.config.dim} "
            f"with {classifier.labels} labels; choose a larger size or a smaller dim."
        )
    return _tables(model, kept)


def _rows(kinds: list[Candidates]) -> int:
    return sum(len(kind.hash_R) for kind in kinds)


def _head_bytes(model: TrainedModel) -> int:
    """Return an upper bound of the bytes of the scoring head's weights, the metadata per label, and vectors."""
    size = 100 * model.classifiers[0].labels
    if model.vector_view is not None:
        size += VECTORS_BYTES
    if any(model.distinct):
        size += DISTINCT_BYTES
    if model.foldable:
        return size
    if model.linear:
        return size + LinearHead.bytes_of(model.classifiers)
    found: int = torch_part("export.heads.vector_head").bytes_of(model.classifiers)
    return size + found


def _pruned(every: CandidateKinds, max_bytes: int) -> CandidateKinds:
    """Leave out the features with the least worth per byte, of any kind, until the rest takes at most `max_bytes`."""
    kinds = every.all
    sizes = [len(kind.hash_R) for kind in kinds]
    kind_N = np.repeat(np.arange(len(kinds)), sizes)
    order = np.argsort(-np.concatenate([kind.worth_R / (kind.bytes_each + 2) for kind in kinds]), kind="stable")
    # How many of each kind are among the first so many.
    number = [np.cumsum(kind_N[order] == i) for i in range(len(kinds))]
    size = sum(n * kind.bytes_each for n, kind in zip(number, kinds, strict=True))
    indexed = len(every.indexed)
    size = size + PerfectHash.size(np.sum(number[:indexed], axis=0), indexed)
    for ngrams in number[indexed:]:
        size = size + PerfectHash.size(ngrams)
    kept = np.zeros(len(order), np.bool_)
    kept[order[size <= max_bytes]] = True
    return every.take(np.split(kept, np.cumsum(sizes)[:-1]))


def _tables(model: TrainedModel, kinds: CandidateKinds) -> LookupTables:
    # Where a sequence has the hash of a word, which is rare, the word stays.
    words = [kind.hash_R for kind in (kinds.words, kinds.unseen) if kind is not None]
    kinds = kinds._replace(sequences=kinds.sequences.take(~np.isin(kinds.sequences.hash_R, np.concatenate(words))))
    index, which = PerfectHash.of(*(kind.hash_R for kind in kinds.indexed))
    views = range(len(model.table_views))
    first, last = model.hashed_views[0].space.config, model.hashed_views[-1].space.config
    tables = LookupTables(
        features=replace(last, bigrams=first.bigrams),
        folded=model.foldable,
        index=index,
        kinds=[[kind.quantized(view, rows) for view in views] for kind, rows in zip(kinds.indexed, which, strict=True)],
        distinct=model.distinct,
    )
    if kinds.ngrams is None:
        return tables
    ngram_index, (ngram_R,) = PerfectHash.of(kinds.ngrams.hash_R)
    return replace(tables, ngram_index=ngram_index, ngram_rows=kinds.ngrams.quantized(views[-1], ngram_R))
