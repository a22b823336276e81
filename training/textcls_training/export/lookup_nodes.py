"""The lookup tables of a saved model as ONNX nodes: the row of a hash, and the decoding of low-bit rows.

ONNX Runtime computes what depends only on constants once, when it loads the file. The names of constants are part of
the file, and must not change.

Shapes: R rows, G groups of columns, Y columns per group, X = Y + 1, as in `textcls_training.export`; B blocks of a
perfect hash, F flags, Z bytes of flags, H bytes per group at 4 bits per column.
"""

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

from textcls.model import features
from textcls_training.export import quantize
from textcls_training.export.builder import GraphBuilder
from textcls_training.export.perfect_hash import FINGERPRINT, SPREAD, PerfectHash
from textcls_training.export.quantize import QuantizedRows
from textcls_training.export.tables import LookupTables


def row_of_hash(g: GraphBuilder, hashes: str, places: tuple[str, str], index: PerfectHash) -> str:
    """Return the row of each hash, the last one (or -1, which is the same) if it is not in the index."""
    displacement, entry_of_slot = places
    hashes = g.node("Cast", hashes, to=TensorProto.INT32)
    block = g.node("BitwiseAnd", hashes, g.constant(len(index.displacement) - 1, np.int32))
    moved = g.node("BitwiseXor", hashes, g.node("Gather", displacement, block))
    slot = g.node("Mod", moved, g.constant(index.slots, np.int32))
    # With the right fingerprint the row is left; with others some high bit, which exceeds any row.
    high = g.node("BitwiseAnd", hashes, g.constant(FINGERPRINT - 2**32, np.int32))
    row = g.node("BitwiseXor", high, g.node("Gather", entry_of_slot, slot))
    return g.node("Clip", row, g.constant(-1, np.int32), g.constant(index.absent, np.int32))


def _ranks(g: GraphBuilder, flags: NDArray[np.bool_], first: int, name: str) -> str:
    """Return `first` for the first raised flag, and so on, int32; -1 for flags not raised; from one bit per flag."""
    byte_Z = g.constant(np.packbits(flags), np.uint8, name)
    byte_Z = g.node("Cast", byte_Z, to=TensorProto.INT32)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int32)
    count_Z = g.node("Gather", g.constant(bits.sum(1), np.int32), byte_Z)
    before_Z1 = g.node("Unsqueeze", g.node("CumSum", count_Z, g.constant(0, np.int64), exclusive=1), g.integers(1))
    place = g.constant(np.where(bits > 0, bits.cumsum(1) - 1, -1), np.int8)
    place = g.node("Cast", place, to=TensorProto.INT32)
    lowered = g.node("Less", place, g.constant(0, np.int32))
    place = g.node("Where", lowered, g.constant(-(2**30), np.int32), g.node("Add", place, g.constant(first, np.int32)))
    rank_Z8 = g.node("Add", g.node("Gather", place, byte_Z), before_Z1)
    rank = g.node("Reshape", g.node("Max", rank_Z8, g.constant(-1, np.int32)), g.integers(-1))
    return g.node("Slice", rank, g.integers(0), g.integers(len(flags)))


def perfect_hash_nodes(g: GraphBuilder, index: PerfectHash, name: str) -> tuple[str, str]:
    """Return the displacement of each block, and the entry of each slot: its row XOR its fingerprint."""
    unit_B = g.node("Cast", g.constant(index.displacement, np.uint8, f"{name}_moves"), to=TensorProto.UINT32)
    displacement_B = g.node("Cast", g.node("Mul", unit_B, g.constant(SPREAD, np.uint32)), to=TensorProto.INT32)

    ranks = []
    ends = np.cumsum(index.kinds).tolist()
    for i, (end, slot_R) in enumerate(zip(ends, np.split(index.slot_R, ends), strict=False)):
        used = np.zeros(index.slots, np.bool_)
        used[slot_R] = True
        ranks.append(_ranks(g, used, end - len(slot_R), f"{name}_slots_{i}"))
    row_of_slot = g.node("Max", *ranks)
    # For an unused slot the row is -1, and the fingerprint the last one, 0.
    byte_R = np.append(index.fingerprint_R, np.uint8(0))
    wide_R = g.node("Cast", g.constant(byte_R, np.uint8, f"{name}_fingerprints"), to=TensorProto.UINT32)
    high_R = g.node("BitShift", wide_R, g.constant(24, np.uint32), direction="LEFT")
    high = g.node("Gather", g.node("Cast", high_R, to=TensorProto.INT32), row_of_slot)
    entry = g.node("BitwiseXor", high, row_of_slot)
    padding = np.array([features.end_hash() & FINGERPRINT ^ len(index.slot_R)], np.uint32).astype(np.int32)
    place = g.integers(index.padding_slot)
    return displacement_B, g.node("ScatterElements", entry, place, g.constant(padding, np.int32))


def _loaded(g: GraphBuilder, x: str) -> str:
    """Return `x` in the type of a loaded table."""
    return g.node("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(quantize.LOADED_TYPE)))


def dequantized_rows(g: GraphBuilder, rows: QuantizedRows, name: str) -> str:
    """Return columns and squared norms [R, G, X] as `QuantizedRows.dequantized` does."""
    fraction_RG1 = g.constant(rows.scale_RG[..., None], np.float16, f"{name}_scales")
    scale_RG1 = g.node("Mul", g.node("Cast", fraction_RG1, to=TensorProto.FLOAT), g.constant(rows.largest, np.float32))
    column_RGY = _loaded(g, g.node("Mul", _steps(g, rows, name), scale_RG1))
    squared_norm_R11 = g.constant(rows.squared_norm_R[:, None, None], np.float16, f"{name}_energies")
    squared_norm_RG1 = g.node("Expand", _loaded(g, squared_norm_R11), g.integers(*rows.scale_RG.shape, 1))
    return g.node("Concat", column_RGY, squared_norm_RG1, axis=2)


def _steps(g: GraphBuilder, rows: QuantizedRows, name: str) -> str:
    """Return the columns [R, G, Y] in steps, from one byte or half a byte each."""
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


def indexed_rows(g: GraphBuilder, tables: LookupTables) -> str:
    """Return the rows of all kinds that the index finds, in all views, and those that are reserved [R + 2, G, X]."""
    views = len(tables.kinds[0])
    kinds = []
    for kind in range(len(tables.kinds)):
        of_views = [_rows_of_view(g, tables, kind, view) for view in range(views)]
        kinds.append(of_views[0] if views == 1 else g.node("Concat", *of_views, axis=1))
    reserved_2GX = g.constant(tables.reserved_rows(tables.shape[0]), quantize.LOADED_TYPE)
    return g.node("Concat", *kinds, reserved_2GX, axis=0)


def _rows_of_view(g: GraphBuilder, tables: LookupTables, kind: int, view: int) -> str:
    """Return the rows of a kind in a view [R, G, X]: zero if the kind adds nothing to it."""
    rows = tables.kinds[kind][view]
    if rows is None:
        zero = g.constant(0, quantize.LOADED_TYPE)
        return g.node("Expand", zero, g.integers(tables.index.kinds[kind], *tables.view_shape(view)))
    names = {(0, 0): "word", (1, 0): "bigram"}
    if tables.ngram_index is not None:
        names[0, len(tables.kinds[0]) - 1] = "piece"
    return dequantized_rows(g, rows, names.get((kind, view), f"rows_{kind}_{view}"))


def rows_of_table(g: GraphBuilder, table_RGX: str, rows: str, name: str | None = None) -> str:
    """Return `rows` of a table, in 32 bits."""
    return g.node("Cast", g.node("Gather", table_RGX, rows), to=TensorProto.FLOAT, name=name)
