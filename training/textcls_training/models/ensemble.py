"""A trained model: an ensemble of views of a text, each a classifier of its own, whose logits are added up.

The view "words" reads words and bigrams, the view "vectors" words by their vectors from a file, if one is given, and
the view "pieces" words and their character n-grams; of scripts whose letters are tokens, both read bigrams and trigrams
(`textcls.model.features.FeatureConfig.views`). Each is normalised by itself, as blocks of TF-IDF features would
be, and each learns from the labels by itself; the ensemble weights, which say how much each counts in the sum, are
fitted on validation rows, together with the temperature.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from textcls_training.config.settings import ModelConfig
from textcls_training.data.arrays import Float32
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.data.vector_space import VectorSpace

# Where the view of vectors stands among the others, if there is one.
VECTORS: Final = 1


class Classifier(Protocol):
    """What a saved model is made of behind the token vectors of a view: a `ViewClassifier`, or a `LinearClassifier`."""

    @property
    def config(self) -> ModelConfig:
        """What it is made of."""

    @property
    def labels(self) -> int:
        """How many labels there are."""

    @property
    def bias_C(self) -> Float32:  # noqa: N802
        """The biases of its head [C]."""

    @property
    def numbers(self) -> int:
        """How many numbers were learned."""

    @property
    def mixing_numbers(self) -> int:
        """How many of them are those of a mixing layer."""

    @property
    def gate(self) -> float | None:
        """The largest gate of the mixing layer; None without any."""

    @property
    def attention_S(self) -> Float32:  # noqa: N802
        """How much each seed counts in what is told of the attention of the view [S], summing to 1."""

    @property
    def foldable(self) -> bool:
        """Whether scores and values are linear in the token vectors, and not much wider: see `folded`."""

    def folded(self, table_VD: Float32) -> Float32:
        """Fold head and seeds into each row of a table [V, S, C + 1]: for each seed a value for each label, and a
        score.
        """


@dataclass(frozen=True, slots=True)
class HashedView:
    """What a view by hashed features has learned (`textcls_torch.models.hashed_embedding`).

    Attributes:
        space: its features, their rows and weights.
        table_VD: a vector for each row of `space`; row 0 is nothing and stays zero.
        classifier: from the weighted sums of rows to logits.
        distinct: for each seed, whether each distinct token of a text counts once for it: one that comes c times has
            the weight 1/c each time, before attention is normalised. Empty where none does.
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
        scale: what vectors are multiplied by before they are read.
        classifier: from the vectors to logits.
    """

    space: VectorSpace
    scale: float
    classifier: Classifier

    @property
    def table_VD(self) -> Float32:  # noqa: N802
        """A vector for each row of `space`, before its weight: all of one length but row 0, which is zero."""
        return self.space.table(self.scale)


# A view with a table of rows, which a saved model looks up.
TableView = HashedView | VectorView
View = TableView | BitView


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A trained model: logits = sum_v ensemble_weights[v] * logits of view v.

    Attributes:
        types: the distinct tokens of the training texts.
        views: words, vectors and pieces, of which the last two may be missing; by bits one.
        ensemble_weights: one a view, at least 0, summing to 1.
    """

    types: list[str]
    views: Sequence[View]
    ensemble_weights: tuple[float, ...]

    @property
    def classifiers(self) -> list[Classifier]:
        """The classifier of each view."""
        return [view.classifier for view in self.views]

    @property
    def hashed_views(self) -> list[HashedView]:
        """The views by hashed features."""
        return [view for view in self.views if isinstance(view, HashedView)]

    @property
    def vector_view(self) -> VectorView | None:
        """The view by vectors from a file, if there is one."""
        return next((view for view in self.views if isinstance(view, VectorView)), None)

    @property
    def table_views(self) -> list[TableView]:
        """The views that have a table of rows: all or none."""
        return [view for view in self.views if not isinstance(view, BitView)]

    @property
    def distinct(self) -> tuple[bool, ...]:
        """Of each seed of each view, whether each distinct token counts once for it: see `HashedView`."""
        found: list[bool] = []
        for view in self.table_views:
            none = (False,) * view.classifier.config.seeds
            found += (view.distinct or none) if isinstance(view, HashedView) else none
        return tuple(found)

    @property
    def foldable(self) -> bool:
        """Whether head and seeds of every view fold into its table, see `Classifier.folded`.

        Vectors of a file, which are wide, always do, and so do machines: where there are some, all views do, however
        many labels there are.
        """
        if self.vector_view is not None or any(self.distinct):
            return True
        return all(model.foldable for model in self.classifiers)

    @property
    def linear(self) -> bool:
        """Whether head and seeds of every view are one matrix, whether or not they fold into its table."""
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
        """How many of them are those of mixing layers."""
        return sum(model.mixing_numbers for model in self.classifiers)

    @property
    def gate(self) -> float | None:
        """The largest gate of the mixing layers; None without any."""
        gates = [model.gate for model in self.classifiers if model.gate is not None]
        return round(max(gates), 6) if gates else None
