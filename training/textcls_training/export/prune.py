"""Pruning: the lookup tables of a trained model, of what is worth its bytes. Shapes as in `textcls_training.export`."""

from dataclasses import replace
from typing import Final

import numpy as np

from textcls.errors import ConfigError
from textcls_training.config.settings import Size
from textcls_training.data.corpus import Corpus
from textcls_training.export.candidates import Candidates, list_candidates
from textcls_training.export.heads.vector_head import folded_copy
from textcls_training.export.perfect_hash import PerfectHash
from textcls_training.export.tables import LookupTables
from textcls_training.models.ensemble import TrainedModel

# What stands in a file beside the tables: the token rule, the nodes, the metadata.
OVERHEAD_BYTES: Final = 40_000


def budget(size: Size, labels: int) -> int | None:
    """Return the most bytes of a saved model, None for no bound; a row of many labels is longer."""
    more = 100_000 * max(0, labels - 10)
    return {"tiny": 300_000, "small": 1_000_000, "default": 3_000_000 + more, "full": None}[size]


def lookup_tables(model: TrainedModel, corpus: Corpus, max_bytes: int | None = None) -> LookupTables:
    """Return the tables of a saved model of at most about `max_bytes`; None prunes nothing.

    Args:
        model: the trained model.
        corpus: the texts that it was trained on.
        max_bytes: size of the file. What changes answers least for its size is pruned first.

    Raises:
        ConfigError: there are rows, and not one of them fits.
    """
    every = kept = list_candidates(model, corpus)
    if max_bytes is not None:
        kept = _pruned(every, max_bytes - OVERHEAD_BYTES - _head_bytes(model))
    if _rows(kept) == 0 < _rows(every):
        classifier = model.classifiers[0]
        raise ConfigError(
            f"A file of {max_bytes:,} bytes has no room for a single row at dim {classifier.config.dim} with "
            f"{classifier.head.out_features} labels; choose a larger size or a smaller dim."
        )
    return _tables(model, kept)


def _rows(kinds: list[Candidates]) -> int:
    return sum(len(kind.hash_R) for kind in kinds)


def _head_bytes(model: TrainedModel) -> int:
    """At most so many bytes take the weights of the scoring head, and what the metadata say of each label."""
    size = 100 * model.classifiers[0].head.out_features
    if model.foldable:
        return size
    for classifier in model.classifiers:
        size += 4 * sum(weight.numel() for weight in folded_copy(classifier).state_dict().values())
    return size


def _pruned(kinds: list[Candidates], max_bytes: int) -> list[Candidates]:
    """Leave out what is worth least for its bytes, of all kinds alike, until the rest takes at most `max_bytes`."""
    sizes = [len(kind.hash_R) for kind in kinds]
    kind_N = np.repeat(np.arange(len(kinds)), sizes)
    order = np.argsort(-np.concatenate([kind.worth_R / (kind.bytes_each + 2) for kind in kinds]), kind="stable")
    # How many of each kind are among the first so many.
    number = [np.cumsum(kind_N[order] == i) for i in range(len(kinds))]
    size = sum(n * kind.bytes_each for n, kind in zip(number, kinds, strict=True))
    size = size + PerfectHash.size(number[0] + number[1])
    for ngrams in number[2:]:
        size = size + PerfectHash.size(ngrams)
    kept = np.zeros(len(order), np.bool_)
    kept[order[size <= max_bytes]] = True
    parts = np.split(kept, np.cumsum(sizes)[:-1])
    return [kind.take(part) for kind, part in zip(kinds, parts, strict=True)]


def _tables(model: TrainedModel, kinds: list[Candidates]) -> LookupTables:
    words, bigrams, *ngrams = kinds
    # Where a bigram has the hash of a word, which is rare, the word stays.
    bigrams = bigrams.take(~np.isin(bigrams.hash_R, words.hash_R))
    index, (word_W, bigram_R) = PerfectHash.of(words.hash_R, bigrams.hash_R)
    first, last = model.hashed_views[0].space.config, model.hashed_views[-1].space.config
    tables = LookupTables(
        features=replace(last, bigrams=first.bigrams),
        folded=model.foldable,
        index=index,
        word_rows=words.quantized(0, word_W),
        bigram_rows=bigrams.quantized(0, bigram_R),
    )
    if not ngrams:
        return tables
    ngram_index, (ngram_R,) = PerfectHash.of(ngrams[0].hash_R)
    return replace(
        tables,
        piece_rows=words.quantized(1, word_W),
        ngram_index=ngram_index,
        ngram_rows=ngrams[0].quantized(0, ngram_R),
    )
