"""A trained model: an ensemble of views of a text, each with its own classifier, whose logits are summed.

The view "words" reads words and bigrams, the view "vectors" words by their vectors from a file, if one is given, and
the view "pieces" words and their character n-grams; in scripts whose letters are tokens, both read bigrams and trigrams
(`textcls.model.features.FeatureConfig.views`). Each is normalised separately, as blocks of TF-IDF features would be,
and learns from the labels separately; the ensemble weights of the sum are fitted on validation rows, together with the
temperature.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from textcls_training.config.settings import ModelConfig
from textcls_training.data.arrays import Float32
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.data.vector_space import VectorSpace

# The position of the view of vectors among the others, if there is one.
VECTORS: Final = 1


class Classifier(Protocol):
    """The part of a saved model after the token vectors of a view: a `ViewClassifier` or a `LinearClassifier`."""

    @property
    def config(self) -> ModelConfig:
        """Return its configuration."""

    @property
    def labels(self) -> int:
        """Return the number of labels."""

    @property
    def bias_C(self) -> Float32:  # noqa: N802
        """Return the biases of its head [C]."""

    @property
    def numbers(self) -> int:
        """How many numbers were learned."""

    @property
    def mixing_numbers(self) -> int:
        """Return how many of them belong to a mixing layer."""

    @property
    def gate(self) -> float | None:
        """Return the largest gate of the mixing layer; None without any."""

    @property
    def attention_S(self) -> Float32:  # noqa: N802
        """Return the weight of each seed in the reported attention of the view [S], summing to 1."""

    @property
    def foldable(self) -> bool:
        """Return whether scores and values are linear in the token vectors, and not much wider: see `folded`."""

    def folded(self, table_VD: Float32) -> Float32:
        """Return each row of a table with head and seeds folded in [V, S, C + 1]: per seed, C values and a score."""


@dataclass(frozen=True, slots=True)
class HashedView:
    """What a view by hashed features has learned (`textcls_torch.models.hashed_embedding`).

    Attributes:
        space: its features, their rows and weights.
        table_VD: a vector for each row of `space`; row 0 stays zero.
        classifier: from the weighted sums of rows to logits.
        distinct: for each seed, whether each distinct token of a text counts once for it: one that occurs c times has
            the weight 1/c each time, before attention is normalised. Empty if this applies to none.
    """

    space: FeatureSpace
    table_VD: Float32
    classifier: Classifier
    distinct: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class BitView:
    """What a view by the bits of hashes has learned (`textcls_torch.models.bit_embedding`).

    Attributes:
        matrix_KD: a vector for each bit.
        classifier: from the vectors of tokens to logits.
    """

    matrix_KD: Float32
    classifier: Classifier


@dataclass(frozen=True, slots=True)
class VectorView:
    """What a view by vectors from a file has learned (`textcls_torch.models.vector_embedding`).

    Attributes:
        space: the words, their rows and weights.
        scale: the factor of vectors before they are read.
        classifier: from the vectors to logits.
    """

    space: VectorSpace
    scale: float
    classifier: Classifier

    @property
    def table_VD(self) -> Float32:  # noqa: N802
        """Return a vector for each row of `space`, before its weight: all of one length except row 0, which is zero."""
        return self.space.table(self.scale)


# A view with a table of rows, which a saved model looks up.
TableView = HashedView | VectorView
View = TableView | BitView


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A trained model: logits = sum_v ensemble_weights[v] * logits of view v.

    Attributes:
        types: the distinct tokens of the training texts.
        views: words, vectors and pieces, the last two of which may be missing; a single one by bits.
        ensemble_weights: one per view, at least 0, summing to 1.
    """

    types: list[str]
    views: Sequence[View]
    ensemble_weights: tuple[float, ...]

    @property
    def classifiers(self) -> list[Classifier]:
        """Return the classifier of each view."""
        return [view.classifier for view in self.views]

    @property
    def hashed_views(self) -> list[HashedView]:
        """Return the views by hashed features."""
        return [view for view in self.views if isinstance(view, HashedView)]

    @property
    def vector_view(self) -> VectorView | None:
        """Return the view by vectors from a file, if there is one."""
        return next((view for view in self.views if isinstance(view, VectorView)), None)

    @property
    def table_views(self) -> list[TableView]:
        """Return the views that have a table of rows: all or none."""
        return [view for view in self.views if not isinstance(view, BitView)]

    @property
    def distinct(self) -> tuple[bool, ...]:
        """Return, for each seed of each view, whether each distinct token counts once for it: see `HashedView`."""
        found: list[bool] = []
        for view in self.table_views:
            none = (False,) * view.classifier.config.seeds
            found += (view.distinct or none) if isinstance(view, HashedView) else none
        return tuple(found)

    @property
    def foldable(self) -> bool:
        """Return whether head and seeds of every view fold into its table, see `Classifier.folded`.

        Vectors of a file, which are wide, always do, and so do support vector machines: with any of them, all views do,
        however many labels there are.
        """
        if self.vector_view is not None or any(self.distinct):
            return True
        return all(model.foldable for model in self.classifiers)

    @property
    def linear(self) -> bool:
        """Return whether head and seeds of every view are one matrix, whether or not they fold into its table."""
        return all(model.config.linear for model in self.classifiers)

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        count = 0
        for view in self.views:
            count += view.classifier.numbers
            if isinstance(view, HashedView):
                count += view.table_VD.size
            elif isinstance(view, BitView):
                count += view.matrix_KD.size
        return count

    @property
    def mixing_parameters(self) -> int:
        """Return how many of them belong to mixing layers."""
        return sum(model.mixing_numbers for model in self.classifiers)

    @property
    def gate(self) -> float | None:
        """Return the largest gate of the mixing layers; None without any."""
        gates = [model.gate for model in self.classifiers if model.gate is not None]
        return round(max(gates), 6) if gates else None
