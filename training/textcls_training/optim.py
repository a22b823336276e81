"""Row-wise Adagrad for the hashed table: only the rows of a batch are read and written.

The table takes no part in autograd. The sum of a batch's rows is its leaf (`HashEmbedding.units`), and `step` brings
the leaf's gradient back to the rows. Adam would give rare rows full-sized steps, and they would memorise.
"""

import torch
from torch import Tensor

from textcls_training.encoding import Batch
from textcls_training.model import HashEmbedding


class TableOptimizer:
    """s_r += mean_d g_rd^2, then E_r -= rate * g_r / sqrt(s_r) (Adagrad, Duchi 2011, with one accumulator a row).

    Rows are deduplicated without a sort: every occurrence writes its number at its row's place, and the one that is
    found there afterwards stands for the row.
    """

    def __init__(self, embedding: HashEmbedding, accumulator: float) -> None:
        self.embedding = embedding
        table_VD = embedding.table_VD
        self.sum_V = torch.full((len(table_VD),), accumulator, device=table_VD.device)
        self.mark_V = torch.zeros(len(table_VD), dtype=torch.long, device=table_VD.device)

    def step(self, batch: Batch, grad_UD: Tensor, rate: float) -> None:
        """Move the rows of `batch` against the gradient of its units."""
        row_R = batch.row_R
        number_R = torch.arange(len(row_R), device=row_R.device)
        self.mark_V[row_R] = number_R
        row_P = row_R[self.mark_V[row_R] == number_R]
        self.mark_V[row_P] = number_R[: len(row_P)]
        grad_RD = grad_UD.repeat_interleave(batch.size_U, 0) * self.embedding.weight_V[row_R].unsqueeze(1)
        grad_PD = grad_UD.new_zeros(len(row_P), grad_UD.shape[1]).index_add_(0, self.mark_V[row_R], grad_RD)
        self.sum_V.index_add_(0, row_P, grad_PD.square().mean(1))
        step_PD = grad_PD * self.sum_V[row_P].rsqrt().unsqueeze(1)
        self.embedding.table_VD.index_add_(0, row_P, step_PD, alpha=-rate)
