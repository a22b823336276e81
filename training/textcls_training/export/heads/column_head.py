"""A scoring head whose logits include the columns besides the text. Shapes as in `textcls_training.models.columns`.

It wraps a head that reads only the text: its logits are renamed to `text_logits`, and the probabilities are computed
from the sum.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from textcls.model import artifact
from textcls.model.columns import count
from textcls_training.data.corpus import Corpus
from textcls_training.export.builder import STRINGS_DOMAIN, GraphBuilder
from textcls_training.export.heads.outputs import HeadOutputs
from textcls_training.export.heads.scoring_head import ScoringHead
from textcls_training.models.calibration import AnyCalibration
from textcls_training.models.columns import ColumnTerms, Curves


class ColumnHead:
    """The outputs of a head for the text alone, with what columns add to the logits.

    Attributes:
        head: the head for the text alone.
        terms: what columns add.
        calibration: from logits to probabilities.
    """

    def __init__(self, head: ScoringHead, terms: ColumnTerms, calibration: AnyCalibration) -> None:
        self.head, self.terms, self.calibration = head, terms, calibration

    def inputs(self, tables: Any, corpus: Corpus) -> tuple[Any, ...]:
        """Return the inputs of the wrapped head, and cells of as many rows."""
        return (*self.head.inputs(tables, corpus), self._cells(len(corpus)))

    def feed(self, rows: int) -> Mapping[str, Any]:
        """Return what the graph reads of this many rows besides their texts."""
        return {artifact.COLUMNS: np.array(self._cells(rows), object)}

    def _cells(self, rows: int) -> list[Sequence[str]]:
        return [self.terms.sample[i % len(self.terms.sample)] for i in range(rows)]

    def answers(self, *given: Any) -> HeadOutputs:
        """Return probabilities and logits [B, C], attention [B, T], attributions [B, T, C]."""
        *text, cells = given
        _, text_BC, attention_BT, attribution_BTC = self.head.answers(*text)
        logits_BC = text_BC + self.terms.bias_C + self.terms.added(cells).sum(1)
        return self.calibration.probabilities(logits_BC), logits_BC, attention_BT, attribution_BTC

    def graph(self) -> onnx.ModelProto:
        """Return the same in ONNX."""
        model = self.head.graph()
        graph = model.graph
        place = _behind_text_logits(graph)
        g = GraphBuilder("columns")
        cells, labels = count(self.terms.columns), len(self.terms.bias_C)
        numbers = len(self.terms.curves.start_NK)
        parts = []
        if numbers:
            parts.append(_curves(g, _some(g, 0, numbers), self.terms.curves))
        if numbers < cells:
            parts.append(_table(g, _some(g, numbers, cells), self.terms))
        g.node("Concat", *parts, axis=1, name=artifact.COLUMN_CONTRIBUTIONS)
        added_BC = g.node("ReduceSum", artifact.COLUMN_CONTRIBUTIONS, g.integers(1), keepdims=0)
        more_BC = g.node("Add", added_BC, g.constant(self.terms.bias_C, np.float32))
        g.node("Add", "text_logits", more_BC, name="logits")
        nodes = [*graph.node[:place], *g.nodes, *graph.node[place:]]
        del graph.node[:]
        graph.node.extend(nodes)
        graph.initializer.extend(g.constants)
        graph.input.append(helper.make_tensor_value_info(artifact.COLUMNS, TensorProto.STRING, ["batch", cells]))
        shape: list[str | int] = ["batch", cells, labels]
        graph.output.append(helper.make_tensor_value_info(artifact.COLUMN_CONTRIBUTIONS, TensorProto.FLOAT, shape))
        return model


def _behind_text_logits(graph: onnx.GraphProto) -> int:
    """Rename the output `logits` of the head to `text_logits`, keeping `logits` as the input of what reads it; return
    the number of the first node after it.
    """
    place = next(i for i, node in enumerate(graph.node) if "logits" in node.output)
    own = "logits"
    if graph.node[place].op_type == "Identity":  # As in graphs that PyTorch writes: the output is a copy.
        own = graph.node[place].input[0]
        del graph.node[place]
        place = next(i for i, node in enumerate(graph.node) if own in node.output)
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name == own:
                node.input[i] = "logits"
    graph.node[place].output[list(graph.node[place].output).index(own)] = "text_logits"
    return place + 1


def _some(g: GraphBuilder, first: int, behind: int) -> str:
    """Return a slice of the cells of each row."""
    return g.node("Slice", artifact.COLUMNS, g.integers(first), g.integers(behind), g.integers(1))


def _curves(g: GraphBuilder, cell_BN: str, curves: Curves) -> str:
    """Return what numbers add [B, N, C], according to `Curves.ramps` and their rises."""
    number = g.constant
    empty_BN = g.node("Equal", cell_BN, number("", object))
    number_BN = g.node("Cast", g.node("Where", empty_BN, number("nan", object), cell_BN), to=TensorProto.FLOAT)
    number_NB1 = g.node("Unsqueeze", g.node("Transpose", number_BN, perm=[1, 0]), g.integers(2))
    from_start_NBK = g.node("Sub", number_NB1, number(curves.start_NK[:, None], np.float32))
    place_NBK = g.node("Div", from_start_NBK, number(curves.width_NK[:, None], np.float32))
    ramp_NBK = g.node("Clip", place_NBK, number(0, np.float32), number(1, np.float32))
    ramp_NBK = g.node("Sub", ramp_NBK, number(curves.mean_NK[:, None], np.float32))
    missing_NB1 = g.node("IsNaN", number_NB1)
    ramp_NBK = g.node("Where", missing_NB1, number(0, np.float32), ramp_NBK)
    ramp_NBJ = g.node("Concat", ramp_NBK, g.node("Cast", missing_NB1, to=TensorProto.FLOAT), axis=2)
    curve_NBC = g.node("MatMul", ramp_NBJ, number(curves.rise_NJC, np.float32))
    return g.node("Transpose", curve_NBC, perm=[1, 0, 2])


def _table(g: GraphBuilder, cell_BQ: str, terms: ColumnTerms) -> str:
    """Return what categories add [B, Q, C]: a row of the table for each number of a cell with its value."""
    cells = count(terms.columns) - len(terms.curves.start_NK)
    key_BQ = g.node("StringConcat", g.constant([f"{i} " for i in range(cells)], object), cell_BQ)
    keys = [f"{cell} {value}" for cell, value in terms.values.row]
    row_BQ = g.node(
        "LabelEncoder",
        key_BQ,
        domain=STRINGS_DOMAIN,
        keys_strings=keys,
        values_int64s=list(terms.values.row.values()),
        default_int64=len(terms.values.added_VC) - 1,
    )
    return g.node("Gather", g.constant(terms.values.added_VC, np.float32), row_BQ)
