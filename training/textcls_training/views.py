"""A trained model: one or two views of a text, each a classifier of its own, whose logits are added up.

The view "words" reads words and bigrams, the view "pieces" words and their character n-grams. Each is normalised by
itself, as two blocks of TF-IDF features would be, and each learns from the labels by itself; how much it counts in the
sum is fitted on held-out rows, together with the temperature.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from textcls_training.encoding import FeatureSpace
from textcls_training.model import TextClassifier


@dataclass(frozen=True, slots=True)
class View:
    """What one view has learned.

    Attributes:
        space: its features, their rows and weights.
        table_VD: a vector for each row of `space`; row 0 is nothing and stays zero. On the CPU.
        classifier: from the weighted sums of rows to logits.
    """

    space: FeatureSpace
    table_VD: Tensor
    classifier: TextClassifier


@dataclass(frozen=True, slots=True)
class BitView:
    """What a view by the bits of hashes has learned (`textcls_training.bits`).

    Attributes:
        matrix_KD: a vector for each bit.
        classifier: from the vectors of tokens to logits.
    """

    matrix_KD: Tensor
    classifier: TextClassifier


@dataclass(frozen=True, slots=True)
class Fitted:
    """A trained model: logits = sum_v shares[v] * logits of view v.

    Attributes:
        types: the distinct tokens of the training texts.
        views: one or two; by bits one.
        shares: one a view, at least 0, summing to 1.
    """

    types: list[str]
    views: Sequence[View | BitView]
    shares: tuple[float, ...]

    @property
    def row_views(self) -> list[View]:
        """The views that have a table of rows: all or none."""
        return [view for view in self.views if isinstance(view, View)]

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        embeddings = [view.table_VD if isinstance(view, View) else view.matrix_KD for view in self.views]
        dense = [weight for view in self.views for weight in view.classifier.parameters()]
        return sum(weight.numel() for weight in (*embeddings, *dense))

    @property
    def mixing_parameters(self) -> int:
        """How many of them are those of mixing layers."""
        layers = [view.classifier.mixing for view in self.views]
        return sum(weight.numel() for layer in layers if layer for weight in layer.parameters())
