"""The string front end of a saved model: raw text in, table rows and mask out, as ONNX nodes.

It repeats `textcls.tokenizer` and `textcls.features` bit by bit. Shapes: B texts, T tokens (one column of padding at
the least, so that a batch of empty texts has a shape), L characters of the longest token, K rows of a token's words
and bigrams, G of its n-grams.
"""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from textcls import features, tokenizer
from textcls.features import FeatureConfig
from textcls_training.encoding import FeatureSpace

OPSET, IR_VERSION = 21, 10
# Buckets that share a first row; no more than a byte can count.
BLOCK = 128


class GraphBuilder:
    """Nodes and constants in order; every method returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, operator: str, *inputs: str, name: str | None = None, domain: str = "", **attributes: Any) -> str:
        """Add an operator with one output."""
        output = name or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def constant(self, value: Any, dtype: Any, name: str | None = None) -> str:
        """Add a number or an array."""
        name = name or f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def string(self, value: str, name: str) -> str:
        """Add a string."""
        self.constants.append(numpy_helper.from_array(np.array(value, object), name))
        return name

    def tokenizer(self, text: str, **rule: Any) -> str:
        """Cut each string into several, which become a new last axis."""
        return self.node(
            "Tokenizer", text, domain="com.microsoft", mark=0, pad_value=features.PADDING, mincharnum=1, **rule
        )

    def murmur(self, strings: str, seed: int) -> str:
        """Hash each string to 32 unsigned bits."""
        return self.node("MurmurHash3", strings, domain="com.microsoft", seed=seed, positive=1)

    def shift(self, x: str, by: int, rank: int, fill: str) -> str:
        """Move the last axis `by` places to the left (to the right if negative), filling with `fill`."""
        if not by:
            return x
        pads = [0] * (2 * rank)
        pads[rank - 1], pads[-1] = -by, by
        return self.node("Pad", x, self.constant(pads, np.int64), fill)


def build_frontend(space: FeatureSpace, max_tokens: int) -> onnx.ModelProto:
    """Return the model text [B] -> tokens [B, T], rows [B, K, T], mask [B, T] and, with n-grams, ngrams [B, T, G]."""
    g = GraphBuilder()
    config = space.config
    token_BT, mask_BT = _tokens(g, max_tokens)
    g.node("Where", mask_BT, token_BT, g.string("", "empty"), name="tokens")

    directory = _directory(g, space)
    last_bucket, nothing = g.constant(space.buckets - 1, np.uint32), g.constant(0, np.int32)

    def look_up(hashes: str, exist: str, name: str) -> None:
        bucket = g.node("Cast", g.node("BitwiseAnd", hashes, last_bucket), to=TensorProto.INT32)
        g.node("Where", exist, g.node("Gather", directory, bucket), nothing, name=name)

    # Kinds stand one behind another along the tokens, then become an axis: one Concat in the place of many Unsqueezes.
    kinds = _word_hashes(g, token_BT, config)
    hash_BX = g.node("Concat", *kinds, axis=1)
    hash_BKT = g.node("Reshape", hash_BX, g.constant([0, len(kinds), -1], np.int64))
    look_up(hash_BKT, g.node("Unsqueeze", mask_BT, g.constant([1], np.int64)), "rows")
    if config.ngram_sizes:
        look_up(*_ngram_hashes(g, token_BT, config), "ngrams")

    text = helper.make_tensor_value_info("text", TensorProto.STRING, ["batch"])
    outputs = [
        helper.make_tensor_value_info("tokens", TensorProto.STRING, ["batch", "tokens"]),
        helper.make_tensor_value_info("rows", TensorProto.INT32, ["batch", len(kinds), "tokens"]),
        helper.make_tensor_value_info("mask", TensorProto.BOOL, ["batch", "tokens"]),
        helper.make_tensor_value_info("ngrams", TensorProto.INT32, ["batch", "tokens", "ngrams"]),
    ]
    graph = helper.make_graph(g.nodes, "frontend", [text], outputs if config.ngram_sizes else outputs[:3], g.constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def _directory(g: GraphBuilder, space: FeatureSpace) -> str:
    """Return the row of each bucket, 0 for none, from one byte a bucket.

    Rows are numbered in the order of buckets, so within a block of buckets a row is the block's first row and a small
    offset. ONNX Runtime computes this from constants once, when it loads the file.
    """
    block_row = space.row_of_bucket.reshape(-1, BLOCK)
    first = np.where(block_row > 0, block_row, len(space.count)).min(1, keepdims=True)
    offset = np.where(block_row > 0, block_row - first + 1, 0)
    byte_XB = g.node("Cast", g.constant(offset, np.uint8, "row_offsets"), to=TensorProto.INT32)
    row_XB = g.node("Add", byte_XB, g.constant(first - 1, np.int32, "block_rows"))
    used_XB = g.node("Greater", byte_XB, g.constant(0, np.int32))
    return g.node("Reshape", g.node("Where", used_XB, row_XB, g.constant(0, np.int32)), g.constant([-1], np.int64))


def _tokens(g: GraphBuilder, max_tokens: int) -> tuple[str, str]:
    """Lower-case and cut; return the tokens [B, T], `PADDING` where there are none, and the mask [B, T]."""
    # The default locale is missing in slim images; "C" lowers ASCII only.
    lowered = g.node("StringNormalizer", "text", case_change_action="LOWER", is_case_sensitive=1, locale="C.UTF-8")
    cut_BT = g.tokenizer(lowered, tokenexp=tokenizer.graph_pattern())
    padding, one = g.string(features.PADDING, "padding"), g.constant([1], np.int64)
    column_B1 = g.node("Expand", padding, g.node("Concat", g.node("Shape", "text"), one, axis=0))
    padded_BT = g.node("Concat", cut_BT, column_B1, axis=1)
    token_BT = g.node("Slice", padded_BT, g.constant([0], np.int64), g.constant([max_tokens], np.int64), one)
    return token_BT, g.node("Not", g.node("Equal", token_BT, padding), name="mask")


def _word_hashes(g: GraphBuilder, token_BT: str, config: FeatureConfig) -> list[str]:
    """Return the hashes [B, T] of each kind: the words, then the left and the right bigram."""
    words = [g.murmur(token_BT, seed) for seed in range(config.word_hashes)]
    if not config.bigrams:
        return words
    before_BT = g.shift(words[0], -1, 2, g.constant(features.START, np.uint32))
    scaled_BT = g.node("Mul", before_BT, g.constant(features.BIGRAM_MULTIPLIER, np.uint32))
    left_BT = g.node("Add", scaled_BT, words[0])
    # The right bigram of a token is the left one of what follows, be it padding; behind a cut there is none: bucket 0.
    return [*words, left_BT, g.shift(left_BT, 1, 2, g.constant(0, np.uint32))]


def _ngram_hashes(g: GraphBuilder, token_BT: str, config: FeatureConfig) -> tuple[str, str]:
    """Return the hashes [B, T, G] of the character n-grams, and which of them exist."""
    cut_BT = g.node(
        "Squeeze", g.tokenizer(token_BT, tokenexp=f"^.{{1,{config.max_chars}}}"), g.constant([-1], np.int64)
    )
    # An empty separator means: split into characters.
    code_BTL = g.murmur(g.tokenizer(cut_BT, separators=[""]), features.CHARACTER_SEED)
    end, no, yes = g.constant(features.END, np.uint32), g.constant(False, np.bool_), g.constant(True, np.bool_)
    real_BTL = g.node("Not", g.node("Equal", code_BTL, end))
    grow_left, grow_right = g.constant([0, 0, 1, 0, 0, 0], np.int64), g.constant([0, 0, 0, 0, 0, 2], np.int64)
    code_BTL = g.node("Pad", g.node("Pad", code_BTL, grow_left, g.constant(features.START, np.uint32)), grow_right, end)
    real_BTL = g.node("Pad", g.node("Pad", real_BTL, grow_left, yes), grow_right, no)
    two, three, last = (g.constant([n], np.int64) for n in (2, 3, -1))
    several_BT1 = g.node("Slice", real_BTL, two, three, last)

    multiplier = g.constant(features.NGRAM_MULTIPLIER, np.uint32)
    hashes, exist = [], []
    rolling_BTL = code_BTL
    for n in range(2, config.ngram_sizes[-1] + 1):
        rolling_BTL = g.node("Add", g.node("Mul", rolling_BTL, multiplier), g.shift(code_BTL, n - 1, 3, end))
        if n in config.ngram_sizes:
            hashes.append(rolling_BTL)
            # An n-gram exists if all its characters but the last, which may be END, are START or real.
            exist.append(g.node("And", g.shift(real_BTL, n - 2, 3, no), several_BT1))
    return g.node("Concat", *hashes, axis=-1), g.node("Concat", *exist, axis=-1)
