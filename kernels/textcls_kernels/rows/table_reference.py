"""The slow twin of the table's kernels: plain PyTorch, any floating type, any device, no Triton.

    x_x = sum_r c_r E_r      q_x = sum_r c_r^2                          over the rows that the place x uses
    g_r = c_r sum_x dx_x     s_r += mean_d g_rd^2     E_r -= rate g_r / sqrt(s_r)

The second line, row-wise Adagrad (Duchi 2011, with one accumulator per row), is for each row but row 0, over the places
that use it. On a GPU, sums are atomic here, so their last bits depend on the order of additions.

Letters: X places (tokens), R uses of rows, P distinct rows among these, V rows of the table, D width.
"""

import torch


def gather(
    row_R: torch.Tensor, place_R: torch.Tensor, weight_V: torch.Tensor, row_VD: torch.Tensor, places: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return x [X, D] and q [X] of all places."""
    weight_R = weight_V[row_R]
    x_XD = row_VD.new_zeros(places, row_VD.shape[1]).index_add_(0, place_R, weight_R[:, None] * row_VD[row_R])
    return x_XD, row_VD.new_zeros(places).index_add_(0, place_R, weight_R.square())


def adagrad(
    row_R: torch.Tensor,
    place_R: torch.Tensor,
    weight_V: torch.Tensor,
    row_VD: torch.Tensor,
    sum_V: torch.Tensor,
    grad_XD: torch.Tensor,
    rate: float | torch.Tensor,
) -> None:
    """Move the rows that are used."""
    row_P, number_R = torch.unique(row_R, return_inverse=True)
    sum_PD = row_VD.new_zeros(len(row_P), row_VD.shape[1]).index_add_(0, number_R, grad_XD[place_R])
    row_P, sum_PD = row_P[row_P > 0], sum_PD[row_P > 0]
    g_PD = weight_V[row_P][:, None] * sum_PD
    sum_V[row_P] += g_PD.square().mean(1)
    row_VD[row_P] -= rate * g_PD / sum_V[row_P].sqrt()[:, None]
