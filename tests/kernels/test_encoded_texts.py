# mypy: disable-error-code="no-untyped-call"
"""Which rows a batch of encoded texts uses: the twin and the kernel, to the number, against plain loops."""

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.unwaiting import unwaiting
from textcls_kernels.impl import Impl
from textcls_kernels.rows import EncodedTexts, collect_uses
from textcls_kernels.rows.table import Uses, read_rows
from textcls_kernels.testing import count_launches

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="the kernels need triton: pip install 'textcls[kernels]'"
)
every_impl = pytest.mark.parametrize("impl", ["reference", pytest.param("triton", marks=needs_triton)])
TYPES = 6
LENGTHS = (3, 0, 1, 150, 64, 2, 0)  # of texts: some empty, some of several blocks of tokens
VIEWS = {
    "one view": (False,),
    "one view with pairs": (True,),
    "two views, one with pairs": (True, False),
    "three views": (False, True, True),
}
every_view = pytest.mark.parametrize("views", VIEWS)
BATCHES = {
    "all": [0, 1, 2, 3, 4, 5, 6],
    "another order, texts twice": [5, 0, 0, 2, 5],
    "an empty text first and last": [1, 0, 6],
    "long texts": [4, 3, 3],
    "empty texts alone": [1, 6, 1],
    "one": [2],
    "no texts": [],
}


class View(NamedTuple):
    """What a view knows: the rows of each type, and of each text the rows of its pairs, one more than tokens."""

    rows_Y: list[list[int]]
    pairs_N: list[list[int]] | None


class Texts(NamedTuple):
    tokens_N: list[list[int]]
    view_V: list[View]


def made(lengths: Sequence[int], pairs_V: Sequence[bool], seed: int = 0) -> Texts:
    """Type 0 has no rows in any view, type 1 many; among rows is row 0."""
    random = np.random.default_rng(seed)
    tokens_N = [random.integers(0, TYPES, length).tolist() for length in lengths]
    numbers_V = [[0, 23, *random.integers(0, 6, TYPES - 2)] for _ in pairs_V]
    rows_V = [[random.integers(0, 99, number).tolist() for number in numbers] for numbers in numbers_V]
    pairs = [[random.integers(0, 99, length + 1).tolist() for length in lengths] if has else None for has in pairs_V]
    return Texts(tokens_N, [View(*both) for both in zip(rows_V, pairs, strict=True)])


def rows_of_tokens(texts: Texts, view: View, text: int) -> list[list[int]]:
    pairs = view.pairs_N[text] if view.pairs_N is not None else None
    return [
        view.rows_Y[token] + (pairs[t : t + 2] if pairs is not None else [])
        for t, token in enumerate(texts.tokens_N[text])
    ]


def encoded(texts: Texts) -> EncodedTexts:
    """As `collect_uses` takes them: rows of types of all views, then rows of pairs."""
    row: list[int] = []
    first_VY, own_VY, pair_V = [], [], []
    for view in texts.view_V:
        own_VY.append([len(rows) for rows in view.rows_Y])
        first_VY.append([len(row) + sum(own_VY[-1][:y]) for y in range(len(view.rows_Y))])
        row += [r for rows in view.rows_Y for r in rows]
    for view in texts.view_V:
        pair_V.append(-1 if view.pairs_N is None else len(row))
        row += [r for pairs in view.pairs_N or [] for r in pairs]
    every = range(len(texts.tokens_N))
    uses_VN = [[sum(map(len, rows_of_tokens(texts, view, i))) for i in every] for view in texts.view_V]
    start_N = np.cumsum([0, *map(len, texts.tokens_N)])

    def whole(numbers: Any, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor(numbers, dtype=dtype, device=DEVICE)

    return EncodedTexts(
        whole([token for tokens in texts.tokens_N for token in tokens], torch.int32),
        whole(start_N.tolist(), torch.int64),
        whole(first_VY, torch.int64),
        whole(own_VY, torch.int32),
        whole(pair_V, torch.int64),
        whole(row, torch.int32),
        whole(uses_VN, torch.int64).view(len(texts.view_V), -1),
    )


def batch_of(numbers: Sequence[int]) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int64, device=DEVICE)


def plain(texts: Texts, batch: Sequence[int], tokens: int) -> list[list[int]]:
    """The rows of each place."""
    places: list[list[int]] = []
    for view in texts.view_V:
        for text in batch:
            rows = rows_of_tokens(texts, view, text)
            places += rows + [[] for _ in range(tokens - len(rows))]
    return places


def check(texts: Texts, batch: Sequence[int], impl: Impl, more_tokens: int = 0, more_uses: int = 0) -> None:
    tokens = max([0, *(len(texts.tokens_N[i]) for i in batch)]) + more_tokens
    rows_X = plain(texts, batch, tokens)
    number = sum(map(len, rows_X))
    got = collect_uses(encoded(texts), batch_of(batch), tokens, number + more_uses, impl)
    assert [tensor.dtype for tensor in got] == [torch.int32, torch.int32, torch.int64]
    assert got.start_X.tolist() == np.cumsum([0, *map(len, rows_X)]).tolist()
    assert got.row_R.tolist() == [row for rows in rows_X for row in rows] + [0] * more_uses
    assert got.place_R.tolist() == [x for x, rows in enumerate(rows_X) for _ in rows] + [0] * more_uses


@every_impl
@every_view
@pytest.mark.parametrize("batch", BATCHES)
def test_a_token_uses_the_rows_of_its_type_then_those_of_its_two_pairs(batch: str, views: str, impl: Impl) -> None:
    check(made(LENGTHS, VIEWS[views]), BATCHES[batch], impl)


@every_impl
@every_view
@pytest.mark.parametrize("batch", BATCHES)
def test_what_the_shape_has_too_much_stands_at_the_end_as_row_0_and_belongs_to_no_place(
    batch: str, views: str, impl: Impl
) -> None:
    check(made(LENGTHS, VIEWS[views]), BATCHES[batch], impl, more_tokens=70, more_uses=9)


@every_impl
def test_texts_without_tokens_and_types_without_rows_use_nothing(impl: Impl) -> None:
    check(made((0, 0), (True, False)), [1, 0, 1], impl, more_tokens=3, more_uses=2)
    check(Texts([[0, 1], [1]], [View([[], []], None)]), [1, 0], impl, more_uses=2)
    check(Texts([[], []], [View([], [[5], [6]])]), [1, 0], impl, more_tokens=1)
    check(Texts([], [View([[1]], None)]), [], impl, more_tokens=2, more_uses=2)


@every_impl
@settings(max_examples=15)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    pairs_V=st.lists(st.booleans(), min_size=1, max_size=3),
    more=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_any_texts_views_and_batches_give_what_plain_loops_give(
    impl: Impl, lengths: list[int], pairs_V: list[bool], more: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    batch = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=5))
    check(made(lengths, pairs_V, seed), batch, impl, *more)


@every_impl
def test_surplus_uses_are_read_by_no_place(impl: Impl) -> None:
    texts, batch = made(LENGTHS, (True, False)), BATCHES["all"]
    weight_V, row_VD = torch.ones(99, device=DEVICE), torch.ones(99, 3, device=DEVICE)
    weight_V[0] = 0  # row 0 counts for nothing
    rows_X = plain(texts, batch, 150)
    uses = collect_uses(encoded(texts), batch_of(batch), 150, sum(map(len, rows_X)) + 50, impl)
    _, squared_norm_X = read_rows(uses, weight_V, row_VD, impl)
    assert squared_norm_X.tolist() == [sum(row > 0 for row in rows) for rows in rows_X]


@needs_triton
def test_the_uses_of_all_views_are_one_launch() -> None:
    texts = encoded(made(LENGTHS, (False, True, True)))
    with count_launches() as launches:
        collect_uses(texts, batch_of([0, 3, 4]), 150, 9999, "triton")
    assert launches == Counter(uses_kernel=1)


@every_impl
def test_nothing_waits_for_the_gpu(impl: Impl) -> None:
    texts, text_B = encoded(made(LENGTHS, (True, False))), batch_of([0, 1, 3])
    with unwaiting():
        uses = collect_uses(texts, text_B, 160, 9999, impl)
    assert isinstance(uses, Uses)
    with unwaiting(), pytest.raises(AssertionError, match="waits for the device"):
        uses.row_R[uses.row_R > 0]


def test_arguments_that_break_a_rule_are_refused_in_words_that_say_which() -> None:
    texts, text_B = encoded(made(LENGTHS, (True, False))), batch_of([0, 1])
    for name, tensor in texts._asdict().items():
        other = torch.int32 if tensor.dtype == torch.int64 else torch.int64
        with pytest.raises(TypeError, match=rf"^{name} has a type of its own; expected {tensor.dtype}, got {other}"):
            collect_uses(texts._replace(**{name: tensor.to(other)}), text_B, 9, 9)
    with pytest.raises(TypeError, match=r"^text_B has a type of its own; expected torch.int64, got torch.int32"):
        collect_uses(texts, text_B.int(), 9, 9)
    views = r"belongs to the views, texts and types; expected a contiguous"
    with pytest.raises(ValueError, match=rf"^first_VY {views} \[2, 6\] on .*, got \[1, 6\]"):
        collect_uses(texts._replace(first_VY=texts.first_VY[1:]), text_B, 9, 9)
    with pytest.raises(ValueError, match=rf"^own_VY {views} \[2, 5\] on .*, got \[2, 5\] with strides \[6, 1\]"):
        collect_uses(texts._replace(own_VY=texts.own_VY[:, 1:], first_VY=texts.first_VY[:, 1:].clone()), text_B, 9, 9)
    with pytest.raises(ValueError, match=rf"^uses_VN {views} \[2, 7\] on .*, got \[2, 6\]"):
        collect_uses(texts._replace(uses_VN=texts.uses_VN[:, 1:].clone()), text_B, 9, 9)
    with pytest.raises(ValueError, match=rf"^start_N {views} \[1\] on .*, got \[0\]"):
        collect_uses(texts._replace(start_N=texts.start_N[:0]), text_B, 9, 9)
    no_views = {"first_VY": texts.first_VY[:0], "own_VY": texts.own_VY[:0], "pair_V": texts.pair_V[:0]}
    with pytest.raises(ValueError, match=rf"^pair_V {views} \[1\] on .*, got \[0\]"):
        collect_uses(texts._replace(**no_views), text_B, 9, 9)
    with pytest.raises(ValueError, match=rf"^text_B {views} \[2\] on .*, got \[2, 1\]"):
        collect_uses(texts, text_B[:, None], 9, 9)
    with pytest.raises(ValueError, match=rf"^text_B {views} \[2\] on .*, got \[2\] .* on meta"):
        collect_uses(texts, text_B.to("meta"), 9, 9)
    with pytest.raises(ValueError, match=r"^tokens and uses are numbers of .*; expected none below 0, got 9 and -1"):
        collect_uses(texts, text_B, 9, -1)
