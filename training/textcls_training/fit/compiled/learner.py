"""One view in compiled training: its rows, its weights, their initial values, and a training step.

Shapes: V rows of the table, D width, S seeds, C labels, N texts, K batches.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcls.model.features import FeatureConfig
from textcls_training.config.resolve import ResolvedConfig
from textcls_training.config.settings import ModelConfig, OptimConfig
from textcls_training.data.arrays import Float32, Int64, starts
from textcls_training.data.corpus import Corpus, sums_of_texts
from textcls_training.data.counting import feature_hashes
from textcls_training.data.earlier_counts import EarlierCounts
from textcls_training.data.feature_space import FeatureSpace, rows_in
from textcls_training.data.vector_space import VectorSpace
from textcls_training.fit.compiled.arrays import Dense, Losses, Rates, Scratch, Table, Targets, Texts
from textcls_training.fit.compiled.step import predict_texts, train_batches, write_queries
from textcls_training.models.constants import VECTOR_LENGTH
from textcls_training.models.ensemble import HashedView, VectorView, View
from textcls_training.models.linear_classifier import LinearClassifier
from textcls_training.state.arrays_file import Arrays
from textcls_training.vectors.word_vectors import WordVectors

_NOTHING = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Texts as the rows of one view."""

    corpus: Corpus
    texts: Texts


class Learner:
    """One view in training.

    Attributes:
        space: the features that it reads, or the words of a file of vectors.
        config: the configuration of its model.
        table: its rows.
        weights: the weights of attention and head.
        rates: the learning rates at their highest.
        steps: the number of steps taken.
    """

    def __init__(
        self, space: FeatureSpace | VectorSpace, config: ModelConfig, table: Table, weights: Dense, rates: Rates
    ) -> None:
        self.space, self.config, self.table, self.weights, self.rates = space, config, table, weights, rates
        self._moments = weights.zeros_like(), weights.zeros_like()
        self._gradient = weights.zeros_like()
        self.steps = 0

    @classmethod
    def of_features(
        cls, corpus: Corpus, features: FeatureConfig, classes: int, config: ResolvedConfig, rng: np.random.Generator
    ) -> "Learner":
        """Return a fresh view by hashed features."""
        space = FeatureSpace.fit(corpus, features, config.least_buckets)
        table = fresh_table(space.weight, config.model.dim, config.optim, rng)
        weights = fresh_weights(config.model, classes, rng, even_attention=config.even_attention)
        optim = config.optim
        return cls(space, config.model, table, weights, Rates(optim.table_rate, optim.rate, optim.head_decay))

    @classmethod
    def of_vectors(cls, vectors: WordVectors, classes: int, config: ResolvedConfig) -> "Learner":
        """Return a view of vectors, which are not trained: its attention begins uniform, and its head at zero."""
        space = VectorSpace.of(vectors)
        table = Table(space.table(VECTOR_LENGTH), space.weight, np.zeros(0, np.float32), _NOTHING)
        model = config.model.of_vectors(vectors.dim)
        weights = Dense.zeros(model.seeds, model.dim, classes, plain=True)
        return cls(space, model, table, weights, Rates(0.0, config.vectors_rate, config.optim.head_decay))

    def encode(self, corpus: Corpus) -> Encoded:
        """Look up the rows of texts."""
        if isinstance(self.space, VectorSpace):
            row_of_type = self.space.encode(corpus).row_of_type
            known = row_of_type > 0
            rows = row_of_type[known], starts(known.astype(np.int64))
            return Encoded(corpus, Texts(corpus.token, corpus.start, *rows, np.zeros(0, np.int64), _NOTHING[None]))
        return Encoded(corpus, encode(self.space, corpus))

    def scratch(self, encoded: Encoded, batch_size: int) -> Scratch:
        """Return work arrays for training on these texts in batches of this size; 0 for prediction."""
        seeds, width = self.weights.seed_SD.shape
        longest = int(encoded.corpus.lengths().max(initial=1))
        uses_N = np.sort(uses_of(encoded.texts))[::-1]
        rows = min(int(uses_N[:batch_size].sum()), len(self.table.sum_V)) + 1
        return Scratch(
            np.empty(uses_N.max(initial=0), np.int32),
            np.empty(longest + 1, np.int64),
            np.empty((longest, width), np.float32),
            np.empty((longest if batch_size else 0, width), np.float32),
            np.empty(longest, np.float32),
            np.empty((seeds, longest), np.float32),
            np.empty(rows, np.int32),
            np.empty((rows, width), np.float32),
        )

    def train(
        self, encoded: Encoded, targets: Targets, scratch: Scratch, batches: tuple[Int64, Int64], factor_K: Float32
    ) -> Losses:
        """Take a step for each of some batches; return the losses [K], summed over the texts of each batch.

        Args:
            encoded: the training texts.
            targets: their targets.
            scratch: work arrays for them.
            batches: the texts of the batches end to end, and the index at which each batch begins.
            factor_K: the factors of the rates.
        """
        norm, moments = self.config.attention == "norm", self._moments
        steps = self.steps, factor_K
        self.steps += len(factor_K)
        return train_batches(
            encoded.texts,
            self.table,
            self.weights,
            moments,
            self._gradient,
            targets,
            self.rates,
            norm,
            scratch,
            batches,
            steps,
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays that steps change, by name: those of rows, if these learn, and of the dense weights."""
        mean, square = self._moments
        dense = {"dense": self.weights.flat, "mean": mean.flat, "square": square.flat}
        return {"row": self.table.row_VD, "sum": self.table.sum_V, **dense} if len(self.table.sum_V) else dense

    @property
    def name(self) -> str:
        """The name of the view: what it reads."""
        return self.space.name

    def buckets(self) -> dict[str, NDArray[Any]]:
        """Return the bucket of each row, and the number of buckets; nothing if rows do not learn."""
        if isinstance(self.space, VectorSpace):
            return {}
        return {"bucket": np.flatnonzero(self.space.row_of_bucket), "buckets": np.array(self.space.buckets)}

    def begin_with(self, arrays: Arrays, label_C: Int64, earlier: EarlierCounts) -> None:
        """Begin with what the same view has learned in an earlier training.

        Args:
            arrays: its final arrays, with their `buckets`.
            label_C: the present number of each of its labels.
            earlier: the features that it knew.
        """
        weights = self.weights
        seeds, width = weights.seed_SD.shape
        was = Dense.zeros(seeds, width, len(label_C), plain=not len(weights.forget_DD))
        was.flat[:] = arrays["dense"]
        for now_XX, was_XX in zip(weights[1:4], was[1:4], strict=True):
            now_XX[:] = was_XX
        weights.bias_C[label_C], weights.head_CX[label_C] = was.bias_C, was.head_CX
        if isinstance(self.space, FeatureSpace):
            hash_F = feature_hashes(earlier, self.space.config)
            row_F, was_F = self.space.rows(hash_F), rows_in(hash_F, arrays["bucket"], int(arrays["buckets"]))
            known = (row_F > 0) & (was_F > 0)
            self.table.row_VD[row_F[known]] = arrays["row"][was_F[known]]
            self.table.sum_V[row_F[known]] = arrays["sum"][was_F[known]]

    def predict(self, encoded: Encoded) -> Float32:
        """Return the logits [N, C] of texts."""
        logits_NC = np.empty((len(encoded.corpus), len(self.weights.bias_C)), np.float32)
        norm = self.config.attention == "norm"
        predict_texts(encoded.texts, self.table, self.weights, norm, self.scratch(encoded, 0), logits_NC)
        return logits_NC

    def view(self) -> View:
        """Return what has been learned."""
        weights = self.weights
        numbers = len(weights.flat)
        query_SD, *factors = (np.empty_like(weights.seed_SD) for _ in range(3))
        write_queries(weights, query_SD, *factors)
        classifier = LinearClassifier(self.config, query_SD, weights.head_CX.copy(), weights.bias_C.copy(), numbers)
        if isinstance(self.space, VectorSpace):
            return VectorView(self.space, VECTOR_LENGTH, classifier)
        return HashedView(self.space, self.table.row_VD, classifier)


def encode(space: FeatureSpace, corpus: Corpus) -> Texts:
    """Look up the rows of texts."""
    found = space.encode(corpus)
    rows, order = found.type_rows, np.array(found.orders, np.int64)
    return Texts(corpus.token, corpus.start, rows.row, rows.start, order, found.sequence_row)


def uses_of(texts: Texts) -> Int64:
    """Return the most rows that the tokens of each text use [N]."""
    return sums_of_texts(texts.token, texts.start, np.diff(texts.row_start) + texts.order.sum())


def fresh_table(weight_V: Float32, width: int, optim: OptimConfig, rng: np.random.Generator) -> Table:
    """Return normally distributed rows, as in `textcls_torch.models.embedding_table.EmbeddingTable`."""
    row_VD = rng.standard_normal((len(weight_V), width), np.float32)
    row_VD *= np.float32(optim.table_std)
    row_VD[0] = 0
    sum_V = np.full(len(weight_V), optim.table_accumulator, np.float32)
    return Table(row_VD, weight_V, sum_V, np.zeros(len(weight_V), np.int32))


def fresh_weights(model: ModelConfig, classes: int, rng: np.random.Generator, *, even_attention: bool) -> Dense:
    """Return weights with the initial values in the table of `textcls_torch.models.initial_weights`."""
    weights = Dense.zeros(model.seeds, model.dim, classes, plain=even_attention)
    if not even_attention:
        weights.seed_SD[:] = rng.standard_normal(weights.seed_SD.shape)
        for fold_DD in (weights.forget_DD, weights.candidate_DD):
            fold_DD[:] = rng.standard_normal(fold_DD.shape) * model.dim**-0.5
    bound = weights.head_CX.shape[1] ** -0.5
    weights.head_CX[:] = rng.uniform(-bound, bound, weights.head_CX.shape)
    return weights
