"""The tables of a trained model, of what is worth its bytes. Shapes as in `textcls_training.lexicon`."""

from dataclasses import replace
from typing import Final

import numpy as np
from torch import Tensor

from textcls.errors import ConfigError
from textcls_training.choices import Size
from textcls_training.core import folded_copy
from textcls_training.encoding import Corpus
from textcls_training.lexicon.candidates import Candidates, list_candidates
from textcls_training.lexicon.directory import Directory
from textcls_training.lexicon.tables import Lexicon
from textcls_training.views import Fitted

# What stands in a file beside the tables: the token rule, the nodes, the metadata.
OVERHEAD_BYTES: Final = 40_000


def budget(size: Size, labels: int) -> int | None:
    """Return the most bytes of a saved model, None for no bound; a row of many labels is longer."""
    more = 100_000 * max(0, labels - 10)
    return {"tiny": 300_000, "small": 1_000_000, "default": 3_000_000 + more, "full": None}[size]


def build(fitted: Fitted, corpus: Corpus, max_bytes: int | None = None) -> Lexicon:
    """Return the tables of a saved model of at most about `max_bytes`; None leaves nothing out.

    Args:
        fitted: the trained model.
        corpus: the texts that it was trained on.
        max_bytes: size of the file. What changes answers least for its size is left out first.

    Raises:
        ConfigError: there are rows, and not one of them fits.
    """
    every = kinds = list_candidates(fitted, corpus)
    if max_bytes is not None:
        kinds = _within(every, max_bytes - OVERHEAD_BYTES - _core_bytes(fitted))
    if sum(len(kind.hash_R) for kind in kinds) == 0 < sum(len(kind.hash_R) for kind in every):
        classifier = fitted.views[0].classifier
        raise ConfigError(
            f"A file of {max_bytes:,} bytes has no room for a single row at dim {classifier.config.dim} with "
            f"{classifier.head.out_features} labels; choose a larger size or a smaller dim."
        )
    return _lexicon(fitted, kinds)


def _core_bytes(fitted: Fitted) -> int:
    """At most so many bytes take the weights of the core, and what the metadata say of each label."""
    labels = fitted.views[0].classifier.head.out_features
    if _folded(fitted):
        return 100 * labels
    saved: list[Tensor] = []
    for view in fitted.views:
        saved += folded_copy(view.classifier).state_dict().values()
    return 100 * labels + 4 * sum(weight.numel() for weight in saved)


def _folded(fitted: Fitted) -> bool:
    """Whether rows are stored as what they say."""
    return all(view.classifier.foldable for view in fitted.views)


def _within(kinds: list[Candidates], max_bytes: int) -> list[Candidates]:
    """Leave out what is worth least for its bytes, of all kinds alike, until the rest takes at most `max_bytes`."""
    sizes = [len(kind.hash_R) for kind in kinds]
    kind_N = np.repeat(np.arange(len(kinds)), sizes)
    order = np.argsort(-np.concatenate([kind.worth_R / (kind.bytes_each + 2) for kind in kinds]), kind="stable")
    # How many of each kind are among the first so many.
    number = [np.cumsum(kind_N[order] == i) for i in range(len(kinds))]
    size = sum(n * kind.bytes_each for n, kind in zip(number, kinds, strict=True))
    size = size + Directory.size(number[0] + number[1])
    for ngrams in number[2:]:
        size = size + Directory.size(ngrams)
    kept = np.zeros(len(order), np.bool_)
    kept[order[size <= max_bytes]] = True
    parts = np.split(kept, np.cumsum(sizes)[:-1])
    return [kind.take(part) for kind, part in zip(kinds, parts, strict=True)]


def _lexicon(fitted: Fitted, kinds: list[Candidates]) -> Lexicon:
    words, bigrams, *ngrams = kinds
    # Where a bigram has the hash of a word, which is rare, the word stays.
    bigrams = bigrams.take(~np.isin(bigrams.hash_R, words.hash_R))
    directory, (word_W, bigram_R) = Directory.of(words.hash_R, bigrams.hash_R)
    lexicon = Lexicon(
        features=replace(fitted.row_views[-1].space.config, bigrams=fitted.row_views[0].space.config.bigrams),
        folded=_folded(fitted),
        rows=directory,
        words=words.rounded(0, word_W),
        bigrams=bigrams.rounded(0, bigram_R),
    )
    if not ngrams:
        return lexicon
    directory, (ngram_R,) = Directory.of(ngrams[0].hash_R)
    return replace(lexicon, pieces=words.rounded(1, word_W), ngrams=directory, ngram_rows=ngrams[0].rounded(0, ngram_R))
