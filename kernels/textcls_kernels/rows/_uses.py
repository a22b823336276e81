# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-def, no-untyped-call, no-any-return"
# mypy: disallow-untyped-decorators=False
# ruff: noqa: ANN001, ANN202
"""The kernel of encoded texts: which rows the tokens of a batch use.

Where the uses of a text begin is known beforehand, from sums over texts, so programs do not depend on each other.

Letters: V views, N texts, P tokens of all texts, Y types, B texts of the batch, T tokens of a text padded, X = V B T
places, R uses of rows, U rows of a token that a program copies at once.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["texts", "tokens", "types"])
def uses_kernel(
    token_P,
    start_N,
    first_VY,
    own_VY,
    pair_V,
    row,
    text_B,
    end_VB,
    row_R,
    place_R,
    start_X,
    texts,
    tokens,
    types,
    BLOCK_T: tl.constexpr,
    BLOCK_U: tl.constexpr,
):
    """One program per view and text: `end_VB` says where its uses end. Tokens are read in blocks, with padding."""
    program = tl.program_id(0)
    view = (program // texts).to(tl.int64)
    text = tl.load(text_B + program % texts)
    begin = tl.load(start_N + text)
    length = tl.load(start_N + text + 1) - begin
    pair = tl.load(pair_V + view)
    pairs = 2 * (pair >= 0).to(tl.int32)
    place = program.to(tl.int64) * tokens
    use = tl.load(end_VB + program - 1, mask=program > 0, other=0)
    for first_token in range(0, tokens, BLOCK_T):
        t_T = first_token + tl.arange(0, BLOCK_T)
        inside_T = t_T < length
        at_T = view * types + tl.load(token_P + begin + t_T, mask=inside_T, other=0)
        own_T = tl.load(own_VY + at_T, mask=inside_T, other=0)
        first_T = tl.load(first_VY + at_T, mask=inside_T, other=0)
        number_T = own_T + tl.where(inside_T, pairs, 0)
        start_T = use + tl.cumsum(number_T, 0) - number_T
        tl.store(start_X + place + t_T, start_T, mask=t_T < tokens)
        # A text has one pair more than tokens, so the texts before this one shift its pairs by their number.
        pair_T = pair + begin + text + t_T - own_T
        for first_use in range(0, tl.max(number_T, 0), BLOCK_U):
            u_U = (first_use + tl.arange(0, BLOCK_U))[None, :]
            used_TU = u_U < number_T[:, None]
            at_TU = tl.where(u_U < own_T[:, None], first_T[:, None], pair_T[:, None]) + u_U
            row_TU = tl.load(row + at_TU, mask=used_TU, other=0)
            tl.store(row_R + start_T[:, None] + u_U, row_TU, mask=used_TU)
            place_TU = tl.broadcast_to((place + t_T).to(tl.int32)[:, None], [BLOCK_T, BLOCK_U])
            tl.store(place_R + start_T[:, None] + u_U, place_TU, mask=used_TU)
        use += tl.sum(number_T, 0)
    tl.store(start_X + place + tokens, use, mask=program == tl.num_programs(0) - 1)
