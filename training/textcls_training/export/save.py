"""From a trained model to one ONNX file: text graph and scoring head are joined, checked, and written.

Before anything is written, the answers of the trained model and of ONNX Runtime are compared on awkward texts.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Union

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper

from textcls._util.atomic_write import atomic_write
from textcls.errors import ArtifactError, ConfigError
from textcls.model import artifact
from textcls.model.artifact import ModelInfo
from textcls_training.config.settings import Size
from textcls_training.data.corpus import Corpus
from textcls_training.export.builder import make_model
from textcls_training.export.heads.folded_head import FoldedHead
from textcls_training.export.heads.outputs import OUTPUTS
from textcls_training.export.heads.scoring_head import ScoringHead, scoring_head
from textcls_training.export.prune import budget, lookup_tables
from textcls_training.export.tables import LookupTables
from textcls_training.export.text_graph import build_text_graph
from textcls_training.models.calibration import AnyCalibration
from textcls_training.models.ensemble import TrainedModel

if TYPE_CHECKING:
    from textcls_training.export.bits_table import BitsTable

TOLERANCE: Final = 1e-4
PARITY_TEXTS: Final = (
    "",
    "one",
    "My card was charged twice, and nobody answers!",
    "\U0001f469\u200d\U0001f4bb \u2764\ufe0f 1\ufe0f\u20e3",
    "\u6771\u4eac\u30bf\u30ef\u30fc\u306b\u884c\u304d\u305f\u3044",
    "nai\u0308ve \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
)

# What a text graph reads. Without a table of rows PyTorch is needed, and imported late.
Tables = Union[LookupTables, "BitsTable"]


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
        from textcls_training.export.bits_table import BitsTable

        return BitsTable.of(model)
    return lookup_tables(model, corpus, budget(size, model.classifiers[0].labels))


def build_graph(tables: Tables, head: ScoringHead, max_tokens: int) -> onnx.ModelProto:
    """Return the whole graph: raw text in, every output of `textcls.model.artifact` out.

    Args:
        tables: what the text graph reads.
        head: from the token sums on.
        max_tokens: tokens of a text that are read.
    """
    if isinstance(tables, LookupTables):
        text = build_text_graph(tables, max_tokens).graph
        # Of vectors and of prototypes, rows say nothing of labels.
        row_outputs = artifact.ROW_OUTPUTS if isinstance(head, FoldedHead) else ()
    else:
        text, row_outputs = tables.text_graph(max_tokens).graph, ()
    scores = head.graph().graph
    made = {output.name: output for output in (*text.output, *scores.output)}
    names = (*artifact.OUTPUTS, *row_outputs, artifact.EMBEDDING, artifact.SUPPORT)
    outputs = [made[name] for name in names if name in made]
    nodes, constants = [*text.node, *scores.node], [*text.initializer, *scores.initializer]
    return make_model(helper.make_graph(nodes, "textcls", text.input, outputs, constants))


def save(model: TrainedModel, tables: Tables, calibration: AnyCalibration, info: ModelInfo, path: Path) -> None:
    """Join, check against the trained model, and write to `path`.

    Raises:
        ConfigError: training diverged: the model's answers are not finite; nothing is written.
        ArtifactError: the model and ONNX Runtime disagree; nothing is written.
    """
    head = scoring_head(model, calibration)
    content = content_of(tables, head, info)
    check_parity(content, tables, head, model.types, info.max_tokens)
    with atomic_write(path) as file:
        file.write(content)


def content_of(tables: Tables, head: ScoringHead, info: ModelInfo) -> bytes:
    """Return the content of the model file."""
    graph = build_graph(tables, head, info.max_tokens)
    helper.set_model_props(graph, info.to_metadata())
    return bytes(graph.SerializeToString(deterministic=True))


def check_parity(content: bytes, tables: Tables, head: ScoringHead, types: Sequence[str], max_tokens: int) -> None:
    """Ask a model file and the trained model the same texts.

    Args:
        content: of the file.
        tables: what its text graph reads.
        head: its scoring head.
        types: words of the training.
        max_tokens: tokens of a text that are read.

    Raises:
        ConfigError: training diverged: the model's answers are not finite.
        ArtifactError: the model and ONNX Runtime disagree.
    """
    texts = [*PARITY_TEXTS, "more words than are read " * (max_tokens // 5 + 1), " ".join(types[:200])]
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    found = session.run(list(OUTPUTS), {artifact.INPUT: np.array(texts, object)})
    expected = head.answers(*head.inputs(tables, Corpus.of(texts, max_tokens)))
    if not all(np.isfinite(ours).all() for ours in expected):
        raise ConfigError("Training diverged: answers are not finite, so nothing was written; lower the learning rate.")
    logit_NC = expected[OUTPUTS.index("logits")]
    for name, ours, theirs in zip(OUTPUTS, expected, found, strict=True):
        error = disagreement(name, ours, theirs, logit_NC)
        if not error < TOLERANCE:
            raise ArtifactError(
                f"Training and ONNX Runtime disagree on {name!r} by {error:.1e}, more than {TOLERANCE}; nothing was "
                "written. This is a defect of textcls or of the versions installed."
            )


def disagreement(name: str, ours: NDArray[Any], theirs: NDArray[Any], logit_NC: NDArray[Any]) -> float:
    """Return how far two sides are apart in an output, by the size of what it is rounded with.

    A logit is the sum of a number a token, and rounds as such a sum does; a probability moves with its logits.

    Args:
        name: of the output.
        ours: of each text; of tokens, those of the longest text.
        theirs: likewise, padded.
        logit_NC: the logits of N texts.
    """
    padded = np.zeros_like(theirs)
    padded[tuple(slice(n) for n in ours.shape)] = ours
    apart_N = np.abs(padded - theirs).reshape(len(theirs), -1).max(1)
    if name in ("probabilities", "logits"):
        return float((apart_N / (1 + np.abs(logit_NC).max(1))).max())
    return float(apart_N.max() / (1 + np.abs(padded).max()))
