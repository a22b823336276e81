"""The data of the compiled loops, by name: tuples of arrays, which Numba unpacks at no cost.

Shapes: N texts, T tokens of all texts, U distinct tokens, R rows of distinct tokens end to end, V rows of the table,
D width, S seeds, C labels, L labels of all texts, P distinct rows of a batch.
"""

from typing import NamedTuple

import numpy as np

from textcls_training.data.arrays import Float32, Float64, Int32, Int64


class Texts(NamedTuple):
    """Encoded texts, as `textcls_training.data.feature_space.EncodedFeatures` has them.

    Attributes:
        token: the number of the distinct token at each position [T].
        start: the index at which the tokens of each text begin [N + 1].
        row: rows of the distinct tokens, end to end [R].
        row_start: the index at which those of each begin [U + 1].
        order: lengths of sequences of tokens [O].
        sequence_row: the row of the sequence of each length that ends at each position [O, P]; a text has one more
            position than tokens: after its last one.
    """

    token: Int32
    start: Int64
    row: Int32
    row_start: Int64
    order: Int64
    sequence_row: Int32


class Table(NamedTuple):
    """Rows, their weights, and the state of their optimizer; `textcls_torch.models.embedding_table` says more.

    Attributes:
        row_VD: the rows.
        weight_V: the factor of each when it is read; row 0 has weight 0.
        sum_V: the accumulator of row-wise Adagrad; empty if rows do not learn.
        number_V: the number of a row among the distinct ones of a batch, 0 outside it; empty if rows do not learn.
    """

    row_VD: Float32
    weight_V: Float32
    sum_V: Float32
    number_V: Int32


class Dense(NamedTuple):
    """The weights of attention and head, or numbers of these shapes: gradients, moments.

    All are stored end to end in `flat`, the head last; the others are views of it.

    Attributes:
        flat: all of them.
        seed_SD: seeds.
        forget_DD, candidate_DD: the transforms of seeds (`ops.fold_seed`); empty if seeds are plain.
        bias_C: biases of the head.
        head_CX: the head, X = S D.
    """

    flat: Float32
    seed_SD: Float32
    forget_DD: Float32
    candidate_DD: Float32
    bias_C: Float32
    head_CX: Float32

    @classmethod
    def zeros(cls, seeds: int, width: int, labels: int, *, plain: bool) -> "Dense":
        """Return weights that are all zero."""
        fold = 0 if plain else width
        shapes = ((seeds, width), (fold, fold), (fold, fold), (labels,), (labels, seeds * width))
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        flat = np.zeros(ends[-1], np.float32)
        parts = np.split(flat, ends[:-1])
        return cls(flat, *(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))

    def zeros_like(self) -> "Dense":
        """Return weights of the same shapes that are all zero."""
        seeds, width = self.seed_SD.shape
        return Dense.zeros(seeds, width, len(self.bias_C), plain=not len(self.forget_DD))


class Targets(NamedTuple):
    """The targets of texts, in the one form of all tasks.

    Attributes:
        start: the index at which the labels of each text begin [N + 1].
        label: their numbers [L].
        probability: the probability of each [L]; labels that are not listed have 0.
        weight_N: the weight of each text.
        present_C: the weight of a text that has the label.
        absent_C: the weight of one that does not, if a text may have several labels; empty if it has one.
        focus: the power of the focus on absent labels that seem to be there.
    """

    start: Int64
    label: Int32
    probability: Float32
    weight_N: Float32
    present_C: Float32
    absent_C: Float32
    focus: float


class Rates(NamedTuple):
    """Learning rates at their highest, and how the head decays.

    Attributes:
        table: the table of the rows.
        dense: that of attention and head.
        decay: share of its rate by which the head shrinks in a step.
    """

    table: float
    dense: float
    decay: float


class Scratch(NamedTuple):
    """Work arrays: for one text, and for the distinct rows of one batch.

    Attributes:
        row_U: the rows that its tokens use, end to end.
        use_T: the index at which those of each token begin, and the end of the last.
        x_TD: token vectors.
        grad_TD: their gradients.
        squared_norm_T: squared feature norms.
        probability_ST: attention probabilities.
        row_P: distinct rows of the batch; number 0 is none.
        grad_PD: their gradients.
    """

    row_U: Int32
    use_T: Int64
    x_TD: Float32
    grad_TD: Float32
    squared_norm_T: Float32
    probability_ST: Float32
    row_P: Int32
    grad_PD: Float32


Losses = Float64
