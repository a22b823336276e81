"""A trained classifier of a view whose scores and values are linear in the token vectors: three arrays, no PyTorch.

It is equivalent to `textcls_torch.models.classifier.ViewClassifier` without mixing of tokens, seeds folded.

Shapes: V rows of a table, D width, S seeds, C labels.
"""

from dataclasses import dataclass

import numpy as np

from textcls_training.config.settings import ModelConfig
from textcls_training.data.arrays import Float32


def foldable(config: ModelConfig, labels: int) -> bool:
    """Return whether scores and values are linear in the token vectors, and not much wider than these."""
    return config.linear and config.seeds * (labels + 1) <= 2 * config.dim


@dataclass(frozen=True, slots=True)
class LinearClassifier:
    """What a view has learned after its token vectors.

    Attributes:
        config: its configuration.
        query_SD: the combined queries of its seeds.
        head_CX: the linear head, X = S D.
        bias_C: its biases.
        numbers: how many numbers were learned.
    """

    config: ModelConfig
    query_SD: Float32
    head_CX: Float32
    bias_C: Float32
    numbers: int

    @property
    def labels(self) -> int:
        """Return the number of labels."""
        return len(self.bias_C)

    @property
    def attention_S(self) -> Float32:  # noqa: N802
        """Return the weight of each seed in the reported attention [S]: seeds with a zero query do not count, unless
        all are zero.
        """
        asks_S = self.query_SD.any(1)
        counts_S = asks_S if asks_S.any() else ~asks_S
        return np.where(counts_S, np.float32(1 / counts_S.sum()), np.float32(0))

    @property
    def foldable(self) -> bool:
        """Return whether a row of a table, folded, is not much wider."""
        return foldable(self.config, self.labels)

    @property
    def mixing_numbers(self) -> int:
        """Nothing mixes the tokens."""
        return 0

    @property
    def gate(self) -> None:
        """Nothing mixes the tokens."""
        return

    def folded(self, table_VD: Float32) -> Float32:
        """Return the rows of a table with head and seeds folded in [V, S, C + 1], as `ViewClassifier.fold`."""
        seeds, width = self.query_SD.shape
        weight_SYD = np.concatenate(
            [self.head_CX.reshape(self.labels, seeds, width).transpose(1, 0, 2), self.query_SD[:, None]], 1
        )
        # Not by BLAS, whose last bits may depend on how many threads it has.
        found_VSY: Float32 = np.einsum("vd,syd->vsy", table_VD, weight_SYD, optimize=False)
        return found_VSY
