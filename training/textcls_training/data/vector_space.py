"""The words of a file of vectors as rows of a table, as features are in `FeatureSpace`. Row 0 is zero.

Shapes: V vectors, N words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from textcls_training.data.arrays import Float32, Int32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.vectors.word_vectors import WordVectors

# The results of `VectorSpace.table` by scale, for as long as the vectors exist.
_TABLES: WeakKeyDictionary[WordVectors, dict[float, Float32]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class EncodedWords:
    """A corpus, and the row of each of its types."""

    corpus: Corpus
    row_of_type: Int32

    def __len__(self) -> int:
        return len(self.corpus)

    def known_share(self) -> float:
        """Return the share of tokens that have a vector."""
        return float((self.row_of_type[self.corpus.token] > 0).mean()) if len(self.corpus.token) else 0.0


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """The rows of a file of vectors.

    Attributes:
        vectors: the words and their vectors.
        weight: the weight of each row [V + 1], the length of its vector. Row 0 has weight 0.
    """

    vectors: WordVectors
    weight: Float32
    name: ClassVar[str] = "vectors"  # of a view of these

    @classmethod
    def of(cls, vectors: WordVectors) -> "VectorSpace":
        """Return the rows of `vectors`."""
        return cls(vectors, np.append(0, np.linalg.norm(vectors.row_VD, axis=1)).astype(np.float32))

    def vectors_of(self, rows: Int64) -> Float32:
        """Return the vector of each of `rows`, of any shape [..., D]; zero for row 0."""
        found_XD: Float32 = self.vectors.row_VD[rows - 1]
        found_XD[rows == 0] = 0
        return found_XD

    def table(self, scale: float) -> Float32:
        """Return the vectors, times `scale`, before their weights [V + 1, D]: all of one length; row 0 is zero.

        All fits share the table, and none may change it.
        """
        made = _TABLES.setdefault(self.vectors, {})
        if scale not in made:
            row_VD = np.pad(self.vectors.row_VD, ((1, 0), (0, 0)))
            weight_V1 = np.maximum(self.weight, np.finfo(np.float32).tiny)[:, None]
            made[scale] = np.asarray(row_VD / weight_V1 * np.float32(scale), np.float32)
        return made[scale]

    def word_rows(self, words: Sequence[str]) -> Int32:
        """Return the row of each word [N, 1]; 0 for one without a vector."""
        return self.vectors.numbers(words)[:, None] + np.int32(1)

    def encode(self, corpus: Corpus) -> EncodedWords:
        """Look up the rows of all types of `corpus`."""
        return EncodedWords(corpus, self.word_rows(corpus.types)[:, 0])

    def expected_counts(self, tokens: int) -> Float32:
        """Return how often each word is expected among `tokens` tokens [V], by Zipf's law of ranks."""
        rank_V = np.arange(1, len(self.vectors.words) + 1)
        expected_V: Float32 = (tokens / rank_V / max(1.0, float((1 / rank_V).sum()))).astype(np.float32)
        return expected_V
