"""The text graph of a saved model: raw text in, the sums of its tokens' rows out, as ONNX nodes.

`token_nodes` repeats the token rule and the hashes, `lookup_nodes` reads the tables. Every node costs about a
microsecond, whatever it does to one short text, so there are few.

Shapes: B texts, T tokens (at least one column of padding, unless the text is truncated), K hashes of a token (its word
and the sequences that contain it), U tokens out of vocabulary, N n-grams of a token; R, W, G, Y and X as in
`textcls_training.export`. K hashes are joined along the leading axis of 1.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper

from textcls_training.export import quantize
from textcls_training.export.builder import GraphBuilder, make_model
from textcls_training.export.lookup_nodes import (
    dequantized_rows,
    indexed_rows,
    perfect_hash_nodes,
    row_of_hash,
    rows_of_table,
)
from textcls_training.export.perfect_hash import PerfectHash
from textcls_training.export.quantize import QuantizedRows
from textcls_training.export.tables import LookupTables
from textcls_training.export.token_nodes import (
    StringGraphBuilder,
    name_tokens,
    ngram_hashes,
    text_graph_values,
    token_strings,
    word_hashes,
)


def build_text_graph(tables: LookupTables, max_tokens: int) -> onnx.ModelProto:
    """Return the model text [B] -> tokens, known and padding, all [B, T], and the token sums [B, T, G, X].

    The sums are those of `rows` [K, B, T, G, X] and, with n-grams, of `ngram_rows` [U, N, G', X] for the U tokens that
    are out of vocabulary, in reading order; G' are the groups of the last view.
    """
    g = StringGraphBuilder("front")
    tokens_1BT = token_strings(g, max_tokens)
    tokens_BT = name_tokens(g, tokens_1BT)
    table_RGX = indexed_rows(g, tables)
    hash_KBT = word_hashes(g, tokens_1BT, tables.features)
    row_KBT = row_of_hash(g, hash_KBT, perfect_hash_nodes(g, tables.index, "row"), tables.index)
    row_KBTGX = rows_of_table(g, table_RGX, row_KBT, name="rows")
    outside_1BT11 = _out_of_vocabulary(g, row_KBTGX)
    g.node("Not", g.node("Squeeze", outside_1BT11, g.integers(0, 3, 4)), name="known")
    total = "every_time" if any(tables.distinct) else "token"
    token_BTGX = g.node("ReduceSum", row_KBTGX, g.integers(0), keepdims=0, name=None if tables.ngram_index else total)
    if tables.ngram_index and tables.ngram_rows:
        _add_ngrams(g, tables, tables.ngram_index, tables.ngram_rows, outside_1BT11, token_BTGX, tokens_BT, total)
    if any(tables.distinct):
        _count_once(g, tables, hash_KBT, tokens_BT, total)

    text, outputs = text_graph_values(*tables.shape)
    outputs += _row_outputs(tables)
    graph = helper.make_graph(g.nodes, "text", [text], outputs, g.constants)
    return make_model(graph)


def _row_outputs(tables: LookupTables) -> list[onnx.ValueInfoProto]:
    """Return the other outputs of the graph: the rows of each token, and those of n-grams."""
    groups, columns = tables.shape
    kinds: list[str | int] = ["kinds", "batch", "tokens", groups, columns]
    outputs = [helper.make_tensor_value_info("rows", TensorProto.FLOAT, kinds)]
    if tables.ngram_rows:
        shape: list[str | int] = ["unknown", "ngrams", *tables.ngram_rows.shape[1:]]
        outputs.append(helper.make_tensor_value_info("ngram_rows", TensorProto.FLOAT, shape))
    return outputs


def _out_of_vocabulary(g: GraphBuilder, row_KBTGX: str) -> str:
    """Return which tokens [1, B, T, 1, 1] are out of vocabulary: words that the tables do not have."""
    # Any other word has a squared norm in the last view, and so does padding.
    from_, to = g.integers(0, -1, -1), g.integers(1, 2**31, 2**31)
    squared_norm_1BT11 = g.node("Slice", row_KBTGX, from_, to, g.integers(0, 3, 4))
    return g.node("Equal", squared_norm_1BT11, g.constant(0, np.float32))


def _add_ngrams(
    g: GraphBuilder,
    tables: LookupTables,
    index: PerfectHash,
    rows: QuantizedRows,
    outside_1BT11: str,
    token_BTGX: str,
    tokens_BT: str,
    total: str,
) -> None:
    """Add `total`, the sums of all tokens [B, T, G, X], with the n-grams of those out of vocabulary."""
    row_RGX = dequantized_rows(g, rows, "ngram")
    ngram_RGX = g.node("Concat", row_RGX, g.constant(tables.reserved_rows(rows.shape[1]), quantize.LOADED_TYPE), axis=0)
    places = perfect_hash_nodes(g, index, "ngram")
    some = g.node("ReduceMax", outside_1BT11, keepdims=0)

    inner = StringGraphBuilder("ngram")
    index_5U = inner.node("NonZero", outside_1BT11)
    index_2U = inner.node("Slice", index_5U, inner.integers(1), inner.integers(3))
    index_U2 = inner.node("Transpose", index_2U, perm=[1, 0])
    hash_UN, exist_UN = ngram_hashes(inner, inner.node("GatherND", tokens_BT, index_U2), tables.features)
    row_UN = row_of_hash(inner, hash_UN, places, index)
    row_UN = inner.node("Where", exist_UN, row_UN, inner.constant(index.absent, np.int32))
    ngram_UNGX = rows_of_table(inner, ngram_RGX, row_UN)
    sum_UGX = inner.node("ReduceSum", ngram_UNGX, inner.integers(1), keepdims=0)
    # Only the last view has n-grams.
    others = tables.shape[0] - rows.shape[1]
    all_UGX = inner.node("Pad", sum_UGX, inner.integers(0, others, 0, 0, 0, 0))
    then = inner.node("ScatterND", token_BTGX, index_U2, all_UGX, reduction="add")
    none = GraphBuilder("ngram_none")
    otherwise = [none.node("Identity", token_BTGX), none.constant(np.zeros((0, 0, *rows.shape[1:])), np.float32)]
    g.nodes.append(
        helper.make_node(
            "If",
            [some],
            [total, "ngram_rows"],
            then_branch=_branch("unknown_words", inner, then, ngram_UNGX),
            else_branch=_branch("known_words", none, *otherwise),
        )
    )


def _count_once(g: GraphBuilder, tables: LookupTables, hash_KBT: str, tokens_BT: str, total: str) -> None:
    """Add `token`, the sums `total` with the logarithm of how often each token occurs in its text subtracted from its
    scores in the groups in which distinct ones count once.

    Tokens are distinguished by the hash of their word, with the number of their text in the upper half of 64 bits.
    """
    word_BT = g.node("Squeeze", g.node("Slice", hash_KBT, g.integers(0), g.integers(1)), g.integers(0))
    texts = g.node("Squeeze", g.node("Shape", tokens_BT, start=0, end=1))
    text_B = g.node("Range", g.constant(0, np.int64), texts, g.constant(1, np.int64))
    upper_B1 = g.node("Unsqueeze", g.node("Mul", text_B, g.constant(2**32, np.int64)), g.integers(1))
    key_BT = g.node("Add", g.node("Cast", word_BT, to=TensorProto.INT64), upper_B1)
    key_N = g.node("Reshape", key_BT, g.integers(-1))
    g.nodes.append(helper.make_node("Unique", [key_N], ["key", "", "key_of_token", "times"], sorted=0))
    log_U = g.node("Log", g.node("Cast", "times", to=TensorProto.FLOAT))
    log_N = g.node("Gather", log_U, "key_of_token")
    log_BT11 = g.node("Unsqueeze", g.node("Reshape", log_N, g.node("Shape", tokens_BT)), g.integers(2, 3))
    score_GX = np.zeros(tables.shape, np.float32)
    score_GX[:, -2] = tables.distinct
    g.node("Sub", total, g.node("Mul", log_BT11, g.constant(score_GX, np.float32)), name="token")


def _branch(name: str, g: GraphBuilder, *outputs: str) -> onnx.GraphProto:
    return helper.make_graph(g.nodes, name, [], [_anything(output) for output in outputs], g.constants)


def _anything(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
