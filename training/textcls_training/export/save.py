"""From a trained model to one ONNX file: text graph and scoring head are joined, checked, and written."""

from pathlib import Path

import onnx
from onnx import helper

from textcls.model import artifact
from textcls.model.artifact import ModelInfo
from textcls_training.config.settings import Size
from textcls_training.data.corpus import Corpus
from textcls_training.export.bits_table import BitsTable
from textcls_training.export.builder import make_model
from textcls_training.export.heads.column_head import ColumnHead
from textcls_training.export.heads.folded_head import FoldedHead
from textcls_training.export.heads.scoring_head import ScoringHead, scoring_head
from textcls_training.export.parity import Parity, write_checked
from textcls_training.export.prune import budget, lookup_tables
from textcls_training.export.tables import LookupTables
from textcls_training.export.text_graph import build_text_graph
from textcls_training.models.calibration import AnyCalibration
from textcls_training.models.columns import ColumnTerms
from textcls_training.models.ensemble import TrainedModel

# What a text graph reads.
Tables = LookupTables | BitsTable


def tables_of(model: TrainedModel, corpus: Corpus, size: Size) -> Tables:
    """Return what the text graph of a saved model reads.

    Args:
        model: the trained model.
        corpus: the texts that it was trained on.
        size: how large the file may be. Without a table of rows it is small, and always whole.

    Raises:
        ConfigError: there are rows, and not one of them fits.
    """
    if not model.hashed_views:
        return BitsTable.of(model)
    return lookup_tables(model, corpus, budget(size, model.classifiers[0].labels))


def build_graph(tables: Tables, head: ScoringHead, max_tokens: int) -> onnx.ModelProto:
    """Return the whole graph: raw text in, every output of `textcls.model.artifact` out.

    Args:
        tables: the tables of the text graph.
        head: from the token sums on.
        max_tokens: tokens of a text that are read.
    """
    if isinstance(tables, LookupTables):
        text = build_text_graph(tables, max_tokens).graph
        # Of vectors and of prototypes, rows say nothing of labels.
        of_text = head.head if isinstance(head, ColumnHead) else head
        row_outputs = artifact.ROW_OUTPUTS if isinstance(of_text, FoldedHead) else ()
    else:
        text, row_outputs = tables.text_graph(max_tokens).graph, ()
    scores = head.graph().graph
    made = {output.name: output for output in (*text.output, *scores.output)}
    names = (*artifact.OUTPUTS, *row_outputs, artifact.EMBEDDING, artifact.SUPPORT, artifact.COLUMN_CONTRIBUTIONS)
    outputs = [made[name] for name in names if name in made]
    inputs = [*text.input, *(one for one in scores.input if one.name == artifact.COLUMNS)]
    nodes, constants = [*text.node, *scores.node], [*text.initializer, *scores.initializer]
    return make_model(helper.make_graph(nodes, "textcls", inputs, outputs, constants))


def save(
    model: TrainedModel,
    tables: Tables,
    calibration: AnyCalibration,
    info: ModelInfo,
    path: Path,
    corpus: Corpus | None = None,
    columns: ColumnTerms | None = None,
) -> None:
    """Join, check against the trained model, also on the longest text of `corpus`, and write to `path`.

    The logits include what `columns` beside the text add, if there are any.

    Raises:
        ConfigError: training diverged: the model's answers are not finite; nothing is written.
        ArtifactError: the model and ONNX Runtime disagree; the model is beside `path`, see `write_checked`.
    """
    head = scoring_head(model, calibration)
    if columns is not None:
        head = ColumnHead(head, columns, calibration)
    content = content_of(tables, head, info)
    write_checked(content, path, Parity(tables, head, info.max_tokens, model.types, corpus))


def content_of(tables: Tables, head: ScoringHead, info: ModelInfo) -> bytes:
    """Return the content of the model file."""
    graph = build_graph(tables, head, info.max_tokens)
    helper.set_model_props(graph, info.to_metadata())
    return bytes(graph.SerializeToString(deterministic=True))
