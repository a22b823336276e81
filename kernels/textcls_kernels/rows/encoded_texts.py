"""Texts as rows of a table, on the device: which rows a batch of them uses, in all views, without waiting for a GPU.

A token uses the rows of its type, then, in a view with pairs, those of the pairs that it ends and begins. Views read
the same tokens and have their rows in one table; place x = (v B + b) T + t is the token t of the text b in the view v.
What comes out has the shape that is asked for, so that a batch may fill the buffers of a larger one.

`impl` is that of `metric_attention`: the twin, below, or the kernel (`_uses.py`). All numbers are whole: both give the
same ones.

Letters: V views, N texts, P tokens of all texts, Y types, B texts of a batch, T tokens of the padded batch, X = V B T
places, R uses of rows.
"""

from typing import NamedTuple

import torch
from torch.nn.functional import pad

from textcls_kernels.impl import Impl, resolve_impl
from textcls_kernels.rows.table import Uses


class EncodedTexts(NamedTuple):
    """Texts of a corpus, as rows; values are not checked, and those that belong to no text or row read other memory.

    Attributes:
        token_P: the types of the tokens of all texts, end to end, int32.
        start_N: where those of each text begin, and where the last end, int64 [N + 1].
        first_VY: where the rows of a type begin in `row`, int64 [V, Y].
        own_VY: how many rows a type has, int32 [V, Y].
        pair_V: where the rows of pairs begin in `row`, int64 [V]; -1 in a view without pairs. A text of n tokens has
            n + 1, the first and the last with its edges.
        row: the rows of types and pairs of all views, int32; 0 stands for nothing.
        uses_VN: how many rows the tokens of each text use, int64 [V, N].
    """

    token_P: torch.Tensor
    start_N: torch.Tensor
    first_VY: torch.Tensor
    own_VY: torch.Tensor
    pair_V: torch.Tensor
    row: torch.Tensor
    uses_VN: torch.Tensor


def collect_uses(texts: EncodedTexts, text_B: torch.Tensor, tokens: int, uses: int, impl: Impl = "auto") -> Uses:
    """Return which rows the texts numbered `text_B` use, in that order, view by view.

    Args:
        texts: the texts of a corpus.
        text_B: the numbers of the texts, int64, on their device; repetitions are allowed.
        tokens: T, at least the number of tokens of the longest of them.
        uses: R, at least the number of their uses in all views.
        impl: the implementation.

    Returns:
        `row_R` and `place_R` of R uses and `start_X` of V B T places. The true number of uses is `start_X[-1]`;
        those after it are row 0 and place 0, and no place has them.

    Raises:
        ValueError: a shape or a device breaks a rule, or `impl` cannot run there.
        TypeError: a type breaks a rule.
        ModuleNotFoundError: `impl` needs Triton, which is not installed.
    """
    _check(texts, text_B)
    if tokens < 0 or uses < 0:
        raise ValueError(f"tokens and uses are numbers of the batch; expected none below 0, got {tokens} and {uses}")
    chosen = resolve_impl(texts.row.device, impl)
    places = len(texts.pair_V) * len(text_B) * tokens
    if 0 in (places, len(texts.token_P), len(texts.row)):
        nothing_R = torch.zeros(uses, dtype=torch.int32, device=text_B.device)
        return Uses(nothing_R, nothing_R.clone(), text_B.new_zeros(places + 1))
    if chosen == "reference":
        return _collect(texts, text_B, tokens, uses)
    from textcls_kernels.rows import _launch_uses

    read = texts.token_P, texts.start_N, texts.first_VY, texts.own_VY, texts.pair_V, texts.row
    return _launch_uses.collect(read, texts.uses_VN, texts.own_VY.shape[1], text_B, tokens, uses)


def _collect(texts: EncodedTexts, text_B: torch.Tensor, tokens: int, uses: int) -> Uses:
    """Return the uses in plain PyTorch; there is at least one token, and one row."""
    begin_B = texts.start_N[text_B]
    token_T = torch.arange(tokens, device=text_B.device)
    inside_BT = token_T < (texts.start_N[text_B + 1] - begin_B)[:, None]
    at_BT = begin_B[:, None] + token_T
    type_BT = texts.token_P[torch.where(inside_BT, at_BT, 0)]
    own_VBT = texts.own_VY[:, type_BT]
    own_X, first_X = own_VBT.flatten(), texts.first_VY[:, type_BT].flatten()
    # A text has one pair more than tokens, so the texts before this one shift its pairs by their number.
    pair_X = (texts.pair_V[:, None, None] + at_BT + text_B[:, None]).flatten()
    number_VBT = (own_VBT + 2 * (texts.pair_V >= 0)[:, None, None]) * inside_BT
    start_X = pad(number_VBT.flatten().cumsum(0), (1, 0))

    use_R = torch.arange(uses, device=text_B.device)
    real_R = use_R < start_X[-1]
    place_R = torch.where(real_R, torch.searchsorted(start_X, use_R, right=True) - 1, 0)
    offset_R = use_R - start_X[place_R]
    of_pair_R = offset_R - own_X[place_R]
    at_R = torch.where(of_pair_R < 0, first_X[place_R] + offset_R, pair_X[place_R] + of_pair_R)
    return Uses(torch.where(real_R, texts.row[torch.where(real_R, at_R, 0)], 0), place_R.int(), start_X)


def _check(texts: EncodedTexts, text_B: torch.Tensor) -> None:
    """Check types, shapes and devices."""
    views, texts_of_all, types = len(texts.pair_V), len(texts.start_N) - 1, texts.own_VY.shape[-1]
    for name, tensor, dtype, shape in (
        ("token_P", texts.token_P, torch.int32, (texts.token_P.numel(),)),
        ("start_N", texts.start_N, torch.int64, (max(0, texts_of_all) + 1,)),
        ("first_VY", texts.first_VY, torch.int64, (views, types)),
        ("own_VY", texts.own_VY, torch.int32, (views, types)),
        ("pair_V", texts.pair_V, torch.int64, (max(1, views),)),
        ("row", texts.row, torch.int32, (texts.row.numel(),)),
        ("uses_VN", texts.uses_VN, torch.int64, (views, texts_of_all)),
        ("text_B", text_B, torch.int64, (text_B.numel(),)),
    ):
        if tensor.dtype != dtype:
            raise TypeError(f"{name} has a type of its own; expected {dtype}, got {tensor.dtype}")
        if tuple(tensor.shape) != shape or tensor.device != texts.row.device or not tensor.is_contiguous():
            raise ValueError(
                f"{name} belongs to the views, texts and types; expected a contiguous {list(shape)} on"
                f" {texts.row.device}, got {list(tensor.shape)} with strides {list(tensor.stride())} on {tensor.device}"
            )
