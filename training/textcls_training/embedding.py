"""How a token gets its vector: from rows of a table, or from the bits of its hash."""

from typing import Any, Protocol

from torch import Tensor

from textcls.features import FeatureConfig
from textcls_training.arrays import Int64
from textcls_training.bits import BitEmbedding
from textcls_training.config import Plan
from textcls_training.encoding import Corpus
from textcls_training.model import TextClassifier
from textcls_training.table import RowEmbedding
from textcls_training.views import BitView, View


class Embedding(Protocol):
    """What training needs of an embedding. What `encode` and `batch` return is its own affair.

    Shapes: B texts, T tokens, D width.
    """

    @property
    def dense(self) -> list[Tensor]:
        """The weights that the optimizer of the dense weights moves."""

    def encode(self, corpus: Corpus) -> Any:
        """Prepare texts, once."""

    def batch(self, encoded: Any, text_B: Int64) -> Any:
        """Collect the texts numbered `text_B`, in that order; `mask_BT` of it is True at real tokens."""

    def read(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Return token vectors [B, T, D] and energies [B, T, 1], both zero at padding."""

    def update(self, batch: Any, grad_BTD: Tensor, rate: float) -> None:
        """Learn from the gradient of the token vectors."""

    def view(self, classifier: TextClassifier) -> View | BitView:
        """Return what has been learned, with the classifier behind it."""


def make_embedding(corpus: Corpus, features: FeatureConfig, plan: Plan) -> Embedding:
    """Return a fresh embedding of one view of the training texts."""
    optim = plan.optim
    if plan.model.embedding == "bits":
        return BitEmbedding(plan.model.dim, optim.table_std)
    return RowEmbedding(corpus, features, plan.model.dim, optim.table_std, optim.table_accumulator)
