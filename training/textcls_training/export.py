"""From a trained model to one ONNX file: tables and front end, core, join, check, write.

Before anything is written, PyTorch's answers and ONNX Runtime's are compared on awkward texts.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper

from textcls import artifact
from textcls.artifact import ModelInfo
from textcls.errors import ArtifactError, ConfigError
from textcls.output import replacing
from textcls_training import frontend
from textcls_training.bits import BitLexicon
from textcls_training.core import OUTPUTS, Core, serving_core
from textcls_training.encoding import Corpus
from textcls_training.graph import make_model
from textcls_training.lexicon import Lexicon
from textcls_training.views import Fitted

TOLERANCE = 1e-4
PARITY_TEXTS = (
    "",
    "one",
    "My card was charged twice, and nobody answers!",
    "\U0001f469\u200d\U0001f4bb \u2764\ufe0f 1\ufe0f\u20e3",
    "\u6771\u4eac\u30bf\u30ef\u30fc\u306b\u884c\u304d\u305f\u3044",
    "nai\u0308ve \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
)

# What a front end reads.
AnyLexicon = Lexicon | BitLexicon


def build_graph(lexicon: AnyLexicon, core: Core, max_tokens: int) -> onnx.ModelProto:
    """Return the whole graph: raw text in, every output of `textcls.artifact` out.

    Args:
        lexicon: tables of the front end, or the matrix of the bits.
        core: from the token sums on.
        max_tokens: tokens of a text that are read.
    """
    if isinstance(lexicon, Lexicon):
        front = frontend.build_frontend(lexicon, max_tokens).graph
        row_outputs = artifact.ROW_OUTPUTS if lexicon.folded else ()
    else:
        front, row_outputs = lexicon.frontend(max_tokens).graph, ()
    back = core.graph().graph
    made = {output.name: output for output in (*front.output, *back.output)}
    names = [*artifact.OUTPUTS, *row_outputs]
    graph = helper.make_graph(
        [*front.node, *back.node],
        "textcls",
        front.input,
        [made[name] for name in names if name in made],
        [*front.initializer, *back.initializer],
    )
    return make_model(graph)


def save(fitted: Fitted, lexicon: AnyLexicon, temperature: float, info: ModelInfo, path: Path) -> None:
    """Join, check against PyTorch, and write to `path`.

    Raises:
        ConfigError: training diverged: PyTorch's answers are not finite; nothing is written.
        ArtifactError: PyTorch and ONNX Runtime disagree; nothing is written.
    """
    core = serving_core(fitted, temperature)
    graph = build_graph(lexicon, core, info.max_tokens)
    helper.set_model_props(graph, info.to_metadata())
    content = graph.SerializeToString(deterministic=True)
    texts = [*PARITY_TEXTS, "more words than are read " * (info.max_tokens // 5 + 1), " ".join(fitted.types[:200])]
    _check_parity(content, lexicon, core, texts, info.max_tokens)
    with replacing(path) as file:
        file.write(content)


def _check_parity(content: bytes, lexicon: AnyLexicon, core: Core, texts: Sequence[str], max_tokens: int) -> None:
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    found = session.run(list(OUTPUTS), {artifact.INPUT: np.array(texts, object)})
    padding_BT, token_BTGX = lexicon.read(Corpus.of(texts, max_tokens))
    with torch.no_grad():
        expected = core(torch.from_numpy(padding_BT), torch.from_numpy(token_BTGX))
    if not all(ours.isfinite().all() for ours in expected):
        raise ConfigError("Training diverged: answers are not finite, so nothing was written; lower the learning rate.")
    for name, ours, theirs in zip(OUTPUTS, expected, found, strict=True):
        padded = np.zeros_like(theirs)
        padded[tuple(slice(n) for n in ours.shape)] = ours.numpy()
        error = np.abs(padded - theirs).max() / (1 + np.abs(padded).max())
        if not error < TOLERANCE:
            raise ArtifactError(
                f"PyTorch and ONNX Runtime disagree on {name!r} by {error:.1e}, more than {TOLERANCE}; nothing was "
                "written. This is a defect of textcls or of the versions installed."
            )
