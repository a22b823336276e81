"""Raw text to tokens and their hashes, as ONNX nodes: bit for bit the same as in `textcls.model`.

Shapes: B texts, T tokens (at least one column of padding, unless the text is truncated), K hashes of a token (its word,
its left and its right bigram, its trigrams from the left), U tokens out of vocabulary, X characters of the longest one,
L characters that n-grams look at, N n-grams of a token. K hashes are joined along the leading axis of 1.
"""

import re
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from textcls.model import features, tokenizer
from textcls.model.features import FeatureConfig
from textcls_training.export.builder import GraphBuilder
from textcls_training.models.bit_codes import BITS, SEEDS, WORD_BITS


class StringGraphBuilder(GraphBuilder):
    """The operators that read texts."""

    def tokenizer(self, text: str, **rule: Any) -> str:
        """Split each string into several, which become a new last axis."""
        return self.node(
            "Tokenizer", text, domain="com.microsoft", mark=0, pad_value=features.PADDING, mincharnum=1, **rule
        )

    def murmur(self, strings: str, seed: int) -> str:
        """Hash each string to 32 unsigned bits."""
        return self.node("MurmurHash3", strings, domain="com.microsoft", seed=seed, positive=1)

    def shift(self, x_1BT: str, by: int, fill: int) -> str:
        """Move hashes one place to the right (1) or to the left (-1) along the tokens."""
        return self.node("Pad", x_1BT, self.integers(0, 0, by, 0, 0, -by), self.constant(fill, np.uint32))


def token_strings(g: StringGraphBuilder, max_tokens: int) -> str:
    """Lower-case and tokenise; return the tokens [1, B, T], `PADDING` after the last ones."""
    # The default locale is missing in slim images; "C" lowers ASCII only.
    lowered_B = g.node("StringNormalizer", "text", case_change_action="LOWER", is_case_sensitive=1, locale="C.UTF-8")
    # A space at the very end is a token, the padding after the last word: no column of padding has to be appended.
    ended_1B = g.node("StringConcat", lowered_B, g.constant([[features.PADDING]], object))
    cut_1BT = g.tokenizer(ended_1B, tokenexp=_short(tokenizer.graph_pattern()) + r"|\x{20}\z")
    return g.node("Slice", cut_1BT, g.integers(0), g.integers(max_tokens), g.integers(2))


def name_tokens(g: StringGraphBuilder, tokens_1BT: str) -> str:
    """Add `padding` and `tokens` [B, T], the latter empty at padding; return the tokens with their padding [B, T]."""
    tokens_BT = g.node("Squeeze", tokens_1BT, g.integers(0))
    g.node("Equal", tokens_BT, g.constant(features.PADDING, object), name="padding")
    g.node("Where", "padding", g.constant("", object), tokens_BT, name="tokens")
    return tokens_BT


def text_graph_values(groups: int, columns: int) -> tuple[onnx.ValueInfoProto, list[onnx.ValueInfoProto]]:
    """Return the input of a text graph, and the outputs of every one."""
    ragged: list[str | int] = ["batch", "tokens"]
    outputs = [
        helper.make_tensor_value_info("tokens", TensorProto.STRING, ragged),
        helper.make_tensor_value_info("known", TensorProto.BOOL, ragged),
        helper.make_tensor_value_info("padding", TensorProto.BOOL, ragged),
        helper.make_tensor_value_info("token", TensorProto.FLOAT, [*ragged, groups, columns]),
    ]
    return helper.make_tensor_value_info("text", TensorProto.STRING, ["batch"]), outputs


def _short(pattern: str) -> str:
    """Write non-ASCII characters as themselves, which takes half the space; surrogates have no other form."""

    def itself(found: re.Match[str]) -> str:
        point = int(found[1], 16)
        return found[0] if point < 0x80 or 0xD800 <= point < 0xE000 else chr(point)

    return re.sub(r"\\x\{([0-9a-f]+)\}", itself, pattern)


def word_hashes(g: StringGraphBuilder, tokens_1BT: str, config: FeatureConfig) -> str:
    """Return the hashes [K, B, T] of each token's word and of the sequences that contain it, from the left."""
    word_1BT = g.murmur(tokens_1BT, 0)
    if not config.bigrams:
        return word_1BT
    scaled_1BT = g.node("Mul", g.shift(word_1BT, 1, features.START), g.constant(features.BIGRAM_MULTIPLIER, np.uint32))
    left_1BT = g.node("Add", scaled_1BT, word_1BT)
    # The right bigram of a token is the left one of what follows, even padding; after a truncation there is none: 0.
    found = [word_1BT, left_1BT, g.shift(left_1BT, -1, 0)]
    if config.trigrams:
        found.append(_trigrams(g, tokens_1BT, word_1BT, left_1BT))
        # Twice by one: nothing can be moved by two if there is only one place.
        for _ in range(2):
            found.append(g.shift(found[-1], -1, 0))
    return g.node("Concat", *found, axis=0)


def _trigrams(g: StringGraphBuilder, tokens_1BT: str, word_1BT: str, left_1BT: str) -> str:
    """Return the hash [1, B, T] of the trigram that ends at each place, 0 for one from before START or past the END."""
    before_1BT = g.shift(left_1BT, 1, 0)
    scaled_1BT = g.node("Mul", before_1BT, g.constant(features.BIGRAM_MULTIPLIER, np.uint32))
    third_1BT = g.node("Add", scaled_1BT, word_1BT)
    there_1BT = g.node("Not", g.node("Equal", tokens_1BT, g.constant(features.PADDING, object)))
    # A product: ONNX Runtime 1.24 and before have no `Where` for this type.
    one_1BT = g.node("Cast", there_1BT, to=TensorProto.UINT32)
    return g.node("Mul", third_1BT, g.shift(one_1BT, 1, 0))


def ngram_hashes(g: StringGraphBuilder, tokens_U: str, config: FeatureConfig) -> tuple[str, str]:
    """Return the hashes [U, N] of the character n-grams, and which of them exist.

    An n-gram's hash is linear in the hashes of its characters, so one product with a constant band matrix gives all.
    """
    padding = features.PADDING * config.max_chars
    # An empty separator splits into characters. With padding, every token has as many as are looked at.
    character_UX = g.tokenizer(g.node("StringConcat", tokens_U, g.constant(padding, object)), separators=[""])
    code_UX = g.murmur(character_UX, features.CHARACTER_SEED)
    code_UL = g.node("Slice", code_UX, g.integers(0), g.integers(config.max_chars), g.integers(1))
    band_LN, marks_N, last_N = _bands(config)
    hash_UN = g.node("Add", g.node("MatMul", code_UL, g.constant(band_LN, np.uint32)), g.constant(marks_N, np.uint32))
    # An n-gram exists if its last character does.
    exist_UL = g.node("Not", g.node("Equal", code_UL, g.constant(features.END, np.uint32)))
    return hash_UN, g.node("Gather", exist_UL, g.constant(last_N, np.int64), axis=1)


def _bands(config: FeatureConfig) -> tuple[features.Uint32, features.Uint32, NDArray[np.int64]]:
    """Return, per n-gram, the factors of the characters [L, N], what the marks add [N], the last character needed.

    Of characters 0 to L - 1, preceded by START and followed by endless END, the n-gram (n, i) contains i - 1 to i + n -
    2. It exists if it contains no second END, and the token has at least two characters.
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


def hash_bits(g: StringGraphBuilder, tokens_BT: str) -> str:
    """Return the bits of the hashes of each token [B, T, K], 0 and 1, as in `bit_embedding.codes`: K bits of H hashes
    of W bits each, beginning with the lowest one of the first hash.
    """
    hashes = []
    for seed in SEEDS:
        hashes.append(g.node("Unsqueeze", g.murmur(tokens_BT, seed), g.integers(2, 3)))
    hash_BTH1 = g.node("Concat", *hashes, axis=2)
    shifted = g.node("BitShift", hash_BTH1, g.constant(np.arange(WORD_BITS), np.uint32), direction="RIGHT")
    bit_BTHW = g.node("BitwiseAnd", shifted, g.constant(1, np.uint32))
    bit_BTHW = g.node("Cast", bit_BTHW, to=TensorProto.FLOAT)
    return g.node("Reshape", bit_BTHW, g.integers(0, 0, BITS))
