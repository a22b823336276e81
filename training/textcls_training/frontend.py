"""The string front end of a saved model: raw text in, what each token says out, as ONNX nodes.

It repeats `textcls.tokenizer` and `textcls.features` bit by bit, and reads the tables of a `Lexicon`. Every node costs
about a microsecond, whatever it does to one short text, so there are few; what depends on constants alone ONNX Runtime
computes once, when it loads the file.

Shapes: B texts, T tokens (one column of padding at the least, unless the text is cut), K hashes of a token (its word,
its left and its right bigram), U tokens that are unknown, L characters that n-grams look at, N n-grams of a token;
R, W, G, Y and X as in `textcls_training.lexicon`. The front axis of 1 is what K hashes are joined along.
"""

import re
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from textcls import features, tokenizer
from textcls.features import FeatureConfig
from textcls_training.graph import GraphBuilder, make_model
from textcls_training.lexicon import FINGERPRINT, SPREAD, Directory, Lexicon, Rounded, rounding

OUTPUTS = ("tokens", "known", "padding", "token", "rows", "ngram_rows")


class StringGraphBuilder(GraphBuilder):
    """The operators that read texts."""

    def tokenizer(self, text: str, **rule: Any) -> str:
        """Cut each string into several, which become a new last axis."""
        return self.node(
            "Tokenizer", text, domain="com.microsoft", mark=0, pad_value=features.PADDING, mincharnum=1, **rule
        )

    def murmur(self, strings: str, seed: int) -> str:
        """Hash each string to 32 unsigned bits."""
        return self.node("MurmurHash3", strings, domain="com.microsoft", seed=seed, positive=1)

    def shift(self, x_1BT: str, by: int, fill: int) -> str:
        """Move hashes one place to the right (1) or to the left (-1) along the tokens."""
        return self.node("Pad", x_1BT, self.integers(0, 0, by, 0, 0, -by), self.constant(fill, np.uint32))


def build_frontend(lexicon: Lexicon, max_tokens: int) -> onnx.ModelProto:
    """Return the model text [B] -> tokens, known and padding, all [B, T], and the token sums [B, T, G, X].

    The sums are those of `rows` [K, B, T, G, X] and, with n-grams, of `ngram_rows` [U, N, G', X] for the U tokens that
    are not known, in reading order; G' are the groups of the last view.
    """
    g = StringGraphBuilder("front")
    tokens_1BT = token_strings(g, max_tokens)
    tokens_BT = g.node("Squeeze", tokens_1BT, g.integers(0))
    g.node("Equal", tokens_BT, g.constant(features.PADDING, object), name="padding")
    g.node("Where", "padding", g.constant("", object), tokens_BT, name="tokens")

    table_RGX = _table(g, lexicon)
    hash_KBT = word_hashes(g, tokens_1BT, lexicon.features)
    row_KBT = _rows(g, hash_KBT, _directory(g, lexicon.rows, "row"), lexicon.rows)
    said_KBTGX = _said(g, table_RGX, row_KBT, name="rows")
    unknown_1BT11 = _unknown(g, said_KBTGX)
    g.node("Not", g.node("Squeeze", unknown_1BT11, g.integers(0, 3, 4)), name="known")
    last = None if lexicon.ngrams else "token"
    token_BTGX = g.node("ReduceSum", said_KBTGX, g.integers(0), keepdims=0, name=last)
    if lexicon.ngrams and lexicon.ngram_rows:
        _add_ngrams(g, lexicon, lexicon.ngrams, lexicon.ngram_rows, unknown_1BT11, token_BTGX, tokens_BT)

    group, column = lexicon.words.shape[1:]
    groups = group * (2 if lexicon.ngrams else 1)
    outputs = [
        helper.make_tensor_value_info("tokens", TensorProto.STRING, ["batch", "tokens"]),
        helper.make_tensor_value_info("known", TensorProto.BOOL, ["batch", "tokens"]),
        helper.make_tensor_value_info("padding", TensorProto.BOOL, ["batch", "tokens"]),
        helper.make_tensor_value_info("token", TensorProto.FLOAT, ["batch", "tokens", groups, column]),
        helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["kinds", "batch", "tokens", groups, column]),
    ]
    if lexicon.ngrams:
        shape: list[str | int] = ["unknown", "ngrams", group, column]
        outputs.append(helper.make_tensor_value_info("ngram_rows", TensorProto.FLOAT, shape))
    text = helper.make_tensor_value_info("text", TensorProto.STRING, ["batch"])
    graph = helper.make_graph(g.nodes, "frontend", [text], outputs, g.constants)
    return make_model(graph)


def token_strings(g: StringGraphBuilder, max_tokens: int) -> str:
    """Lower-case and cut; return the tokens [1, B, T], `PADDING` where there are none."""
    # The default locale is missing in slim images; "C" lowers ASCII only.
    lowered_B = g.node("StringNormalizer", "text", case_change_action="LOWER", is_case_sensitive=1, locale="C.UTF-8")
    # A space at the very end is a token, the padding behind the last word: no column of it has to be joined on.
    ended_1B = g.node("StringConcat", lowered_B, g.constant([[features.PADDING]], object))
    cut_1BT = g.tokenizer(ended_1B, tokenexp=_short(tokenizer.graph_pattern()) + r"|\x{20}\z")
    return g.node("Slice", cut_1BT, g.integers(0), g.integers(max_tokens), g.integers(2))


def _short(pattern: str) -> str:
    """Write the characters beyond ASCII as themselves, which takes half the space; surrogates have no other form."""

    def itself(found: re.Match[str]) -> str:
        point = int(found[1], 16)
        return found[0] if point < 0x80 or 0xD800 <= point < 0xE000 else chr(point)

    return re.sub(r"\\x\{([0-9a-f]+)\}", itself, pattern)


def word_hashes(g: StringGraphBuilder, tokens_1BT: str, config: FeatureConfig) -> str:
    """Return the hashes [K, B, T] of each token's word and, with bigrams, of its left and its right one."""
    word_1BT = g.murmur(tokens_1BT, 0)
    if not config.bigrams:
        return word_1BT
    scaled_1BT = g.node("Mul", g.shift(word_1BT, 1, features.START), g.constant(features.BIGRAM_MULTIPLIER, np.uint32))
    left_1BT = g.node("Add", scaled_1BT, word_1BT)
    # The right bigram of a token is the left one of what follows, be it padding; behind a cut there is none: 0.
    return g.node("Concat", word_1BT, left_1BT, g.shift(left_1BT, -1, 0), axis=0)


def _rows(g: GraphBuilder, hashes: str, places: tuple[str, str], directory: Directory) -> str:
    """Return the row of each hash, the last one (or -1, which is the same) if it is not in the directory."""
    displacement, entry_of_slot = places
    hashes = g.node("Cast", hashes, to=TensorProto.INT32)
    block = g.node("BitwiseAnd", hashes, g.constant(len(directory.displacement) - 1, np.int32))
    moved = g.node("BitwiseXor", hashes, g.node("Gather", displacement, block))
    slot = g.node("Mod", moved, g.constant(directory.slots, np.int32))
    # Of the right fingerprint the row is left; of others some high bit, which is more than any row.
    high = g.node("BitwiseAnd", hashes, g.constant(FINGERPRINT - 2**32, np.int32))
    row = g.node("BitwiseXor", high, g.node("Gather", entry_of_slot, slot))
    return g.node("Clip", row, g.constant(-1, np.int32), g.constant(directory.nothing, np.int32))


def _ranks(g: GraphBuilder, flags: NDArray[np.bool_], first: int, name: str) -> str:
    """Return `first` for the first raised flag, and so on, int32; -1 where none is raised; from one bit a flag."""
    byte_X = g.constant(np.packbits(flags), np.uint8, name)
    byte_X = g.node("Cast", byte_X, to=TensorProto.INT32)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int32)
    count_X = g.node("Gather", g.constant(bits.sum(1), np.int32), byte_X)
    before_X1 = g.node("Unsqueeze", g.node("CumSum", count_X, g.constant(0, np.int64), exclusive=1), g.integers(1))
    place = g.constant(np.where(bits > 0, bits.cumsum(1) - 1, -1), np.int8)
    place = g.node("Cast", place, to=TensorProto.INT32)
    lowered = g.node("Less", place, g.constant(0, np.int32))
    place = g.node("Where", lowered, g.constant(-(2**30), np.int32), g.node("Add", place, g.constant(first, np.int32)))
    rank_X8 = g.node("Add", g.node("Gather", place, byte_X), before_X1)
    rank = g.node("Reshape", g.node("Max", rank_X8, g.constant(-1, np.int32)), g.integers(-1))
    return g.node("Slice", rank, g.integers(0), g.integers(len(flags)))


def _directory(g: GraphBuilder, directory: Directory, name: str) -> tuple[str, str]:
    """Return the displacement of each block, and the entry of each slot: its row XOR its fingerprint."""
    unit_B = g.node("Cast", g.constant(directory.displacement, np.uint8, f"{name}_moves"), to=TensorProto.UINT32)
    displacement_B = g.node("Cast", g.node("Mul", unit_B, g.constant(SPREAD, np.uint32)), to=TensorProto.INT32)

    ranks = []
    ends = np.cumsum(directory.kinds).tolist()
    for i, (end, slot_R) in enumerate(zip(ends, np.split(directory.slot_R, ends), strict=False)):
        used = np.zeros(directory.slots, np.bool_)
        used[slot_R] = True
        ranks.append(_ranks(g, used, end - len(slot_R), f"{name}_slots_{i}"))
    row_of_slot = g.node("Max", *ranks)
    # Of an unused slot the row is -1, and the fingerprint the last one, 0.
    byte_R = np.append(directory.fingerprint_R, np.uint8(0))
    wide_R = g.node("Cast", g.constant(byte_R, np.uint8, f"{name}_fingerprints"), to=TensorProto.UINT32)
    high_R = g.node("BitShift", wide_R, g.constant(24, np.uint32), direction="LEFT")
    high = g.node("Gather", g.node("Cast", high_R, to=TensorProto.INT32), row_of_slot)
    entry = g.node("BitwiseXor", high, row_of_slot)
    padding = np.array([features.end_hash() & FINGERPRINT ^ len(directory.slot_R)], np.uint32).astype(np.int32)
    place = g.integers(directory.padding_slot)
    return displacement_B, g.node("ScatterElements", entry, place, g.constant(padding, np.int32))


def _held(g: GraphBuilder, x: str) -> str:
    return g.node("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(rounding.HELD)))


def _unrounded(g: GraphBuilder, rows: Rounded, name: str) -> str:
    """Return columns and energies [R, G, X] as `Rounded.rows` does."""
    share_RG1 = g.constant(rows.scale_RG[..., None], np.float16, f"{name}_scales")
    scale_RG1 = g.node("Mul", g.node("Cast", share_RG1, to=TensorProto.FLOAT), g.constant(rows.largest, np.float32))
    column_RGY = _held(g, g.node("Mul", _steps(g, rows, name), scale_RG1))
    energy_R11 = g.constant(rows.energy_R[:, None, None], np.float16, f"{name}_energies")
    energy_RG1 = g.node("Expand", _held(g, energy_R11), g.integers(*rows.scale_RG.shape, 1))
    return g.node("Concat", column_RGY, energy_RG1, axis=2)


def _steps(g: GraphBuilder, rows: Rounded, name: str) -> str:
    """Return the columns [R, G, Y] in steps, from one byte each or from half of one."""
    if rows.bits == 8:
        return g.node("Cast", g.constant(rows.step_RGY, np.int8, f"{name}_columns"), to=TensorProto.FLOAT)
    count, groups, columns = rows.step_RGY.shape
    even = columns + columns % 2
    half_RGY = np.pad(rows.step_RGY + 8, ((0, 0), (0, 0), (0, even - columns))).astype(np.uint8)
    packed_RGH = half_RGY[..., ::2] << 4 | half_RGY[..., 1::2]
    byte_RGH1 = g.constant(packed_RGH[..., None], np.uint8, f"{name}_columns")
    high_RGH2 = g.node("BitShift", byte_RGH1, g.constant([4, 0], np.uint8), direction="RIGHT")
    step_RGH2 = g.node("BitwiseAnd", high_RGH2, g.constant(15, np.uint8))
    step_RGY = g.node("Reshape", step_RGH2, g.integers(count, groups, even))
    step_RGY = g.node("Slice", step_RGY, g.integers(0), g.integers(columns), g.integers(2))
    return g.node("Sub", g.node("Cast", step_RGY, to=TensorProto.FLOAT), g.constant(8, np.float32))


def _table(g: GraphBuilder, lexicon: Lexicon) -> str:
    """Return what words and bigrams say in all views [R + 2, G, X]."""
    word_RGX, bigram_RGX = _unrounded(g, lexicon.words, "word"), _unrounded(g, lexicon.bigrams, "bigram")
    mark_2GX = g.constant(lexicon.marks(), rounding.HELD)
    if lexicon.pieces is None:
        return g.node("Concat", word_RGX, bigram_RGX, mark_2GX, axis=0)
    word_RGX = g.node("Concat", word_RGX, _unrounded(g, lexicon.pieces, "piece"), axis=1)
    # A bigram is nothing to the second view.
    zero_RGX = g.node("Expand", g.constant(0, rounding.HELD), g.integers(*lexicon.bigrams.shape))
    bigram_RGX = g.node("Concat", bigram_RGX, zero_RGX, axis=1)
    return g.node("Concat", word_RGX, bigram_RGX, g.node("Concat", mark_2GX, mark_2GX, axis=1), axis=0)


def _said(g: GraphBuilder, table_RGX: str, rows: str, name: str | None = None) -> str:
    """Return what `rows` of a table say, in 32 bits."""
    return g.node("Cast", g.node("Gather", table_RGX, rows), to=TensorProto.FLOAT, name=name)


def _unknown(g: GraphBuilder, said_KBTGX: str) -> str:
    """Return which tokens [1, B, T, 1, 1] are words that the directory does not have."""
    # A known word has an energy in the last view, and so has padding.
    from_, to = g.integers(0, -1, -1), g.integers(1, 2**31, 2**31)
    energy_1BT11 = g.node("Slice", said_KBTGX, from_, to, g.integers(0, 3, 4))
    return g.node("Equal", energy_1BT11, g.constant(0, np.float32))


def _add_ngrams(
    g: GraphBuilder,
    lexicon: Lexicon,
    directory: Directory,
    rows: Rounded,
    unknown_1BT11: str,
    token_BTGX: str,
    tokens_BT: str,
) -> None:
    """Name `token` what the tokens say [B, T, G, X] with the n-grams of those that are unknown."""
    ngram_RGX = g.node("Concat", _unrounded(g, rows, "ngram"), g.constant(lexicon.marks(), rounding.HELD), axis=0)
    places = _directory(g, directory, "ngram")
    some = g.node("ReduceMax", unknown_1BT11, keepdims=0)

    inner = StringGraphBuilder("ngram")
    index_5U = inner.node("NonZero", unknown_1BT11)
    index_2U = inner.node("Slice", index_5U, inner.integers(1), inner.integers(3))
    index_U2 = inner.node("Transpose", index_2U, perm=[1, 0])
    hash_UN, exist_UN = ngram_hashes(inner, inner.node("GatherND", tokens_BT, index_U2), lexicon.features)
    row_UN = _rows(inner, hash_UN, places, directory)
    row_UN = inner.node("Where", exist_UN, row_UN, inner.constant(directory.nothing, np.int32))
    said_UNGX = _said(inner, ngram_RGX, row_UN)
    sum_UGX = inner.node("ReduceSum", said_UNGX, inner.integers(1), keepdims=0)
    # The first view, of as many groups, has no n-grams.
    both_UGX = inner.node("Pad", sum_UGX, inner.integers(0, rows.shape[1], 0, 0, 0, 0))
    then = inner.node("ScatterND", token_BTGX, index_U2, both_UGX, reduction="add")
    none = GraphBuilder("ngram_none")
    otherwise = [none.node("Identity", token_BTGX), none.constant(np.zeros((0, 0, *rows.shape[1:])), np.float32)]
    g.nodes.append(
        helper.make_node(
            "If",
            [some],
            ["token", "ngram_rows"],
            then_branch=_branch("unknown_words", inner, then, said_UNGX),
            else_branch=_branch("known_words", none, *otherwise),
        )
    )


def _branch(name: str, g: GraphBuilder, *outputs: str) -> onnx.GraphProto:
    return helper.make_graph(g.nodes, name, [], [_anything(output) for output in outputs], g.constants)


def _anything(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def ngram_hashes(g: StringGraphBuilder, tokens_U: str, config: FeatureConfig) -> tuple[str, str]:
    """Return the hashes [U, N] of the character n-grams, and which of them exist.

    An n-gram's hash is linear in the hashes of its characters, so one product with a constant band matrix gives all.
    """
    padding = features.PADDING * config.max_chars
    # An empty separator means: split into characters. Padded, every token has as many as are looked at.
    character_UX = g.tokenizer(g.node("StringConcat", tokens_U, g.constant(padding, object)), separators=[""])
    code_UX = g.murmur(character_UX, features.CHARACTER_SEED)
    code_UL = g.node("Slice", code_UX, g.integers(0), g.integers(config.max_chars), g.integers(1))
    band_LN, marks_N, last_N = _bands(config)
    hash_UN = g.node("Add", g.node("MatMul", code_UL, g.constant(band_LN, np.uint32)), g.constant(marks_N, np.uint32))
    # An n-gram exists if the last character that it needs does.
    exist_UL = g.node("Not", g.node("Equal", code_UL, g.constant(features.END, np.uint32)))
    return hash_UN, g.node("Gather", exist_UL, g.constant(last_N, np.int64), axis=1)


def _bands(config: FeatureConfig) -> tuple[features.Uint32, features.Uint32, NDArray[np.int64]]:
    """Return, of each n-gram, the factors of the characters [L, N], what the marks add [N], the last character needed.

    Of characters 0 to L - 1, preceded by START and followed by END for ever, the n-gram (n, i) holds i - 1 to
    i + n - 2. It exists if it holds no second END, and the token has at least two characters.
    """
    bands, marks, last = [], [], []
    for n in config.ngram_sizes:
        power = [pow(features.NGRAM_MULTIPLIER, n - 1 - k, 2**32) for k in range(n)]
        for first in range(config.max_chars + 3 - n):
            inside = range(first - 1, first - 1 + n)
            band = np.zeros(config.max_chars, np.uint32)
            mark = 0
            for place, factor in zip(inside, power, strict=True):
                if 0 <= place < config.max_chars:
                    band[place] = factor
                else:
                    mark += factor * (features.START if place < 0 else features.END)
            bands.append(band)
            marks.append(mark % 2**32)
            last.append(max(first + n - 3, 1))
    return np.stack(bands, 1), np.array(marks, np.uint32), np.array(last, np.int64)
