"""From a trained model to one ONNX file: fold, round, export, join, check, write.

The numeric core is exported from the very module that was trained, so no mixer is written twice. Before anything is
written, PyTorch's answers and ONNX Runtime's are compared on a ragged batch of awkward texts.
"""

import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import compose, helper
from torch import Tensor, nn
from torch.nn import functional as F

from textcls import artifact
from textcls.artifact import ModelInfo
from textcls.errors import ArtifactError
from textcls.features import FeatureConfig
from textcls_training import ops
from textcls_training.encoding import Corpus, FeatureSpace
from textcls_training.frontend import IR_VERSION, OPSET, build_frontend
from textcls_training.loop import Fitted
from textcls_training.model import TextClassifier

CORE_OUTPUTS = ("probabilities", "logits", "attention", "contributions")
TOLERANCE = 1e-4
PARITY_TEXTS = (
    "",
    "one",
    "My card was charged twice, and nobody answers!",
    "\U0001f469\u200d\U0001f4bb \u2764\ufe0f 1\ufe0f\u20e3",
    "\u6771\u4eac\u30bf\u30ef\u30fc\u306b\u884c\u304d\u305f\u3044",
    "nai\u0308ve \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
)


class ServingModel(nn.Module):
    """The model as it is saved: seeds folded, rows rounded to 8 bits with a scale each, c_r folded into the scale.

    Rounding keeps accuracy and takes a quarter of the space; what is compared with ONNX Runtime is this module.
    """

    def __init__(self, fitted: Fitted, temperature: float) -> None:
        super().__init__()
        weight_V = fitted.embedding.weight_V.cpu()
        table_VD = fitted.embedding.table_VD.cpu()
        step_V1 = table_VD.abs().amax(1, keepdim=True).clamp_min(ops.TINY) / 127
        self.register_buffer("rounded_VD", (table_VD / step_V1).round().to(torch.int8))
        scale_V1 = weight_V.unsqueeze(1) * step_V1
        # As a share of the largest scale, so that no row falls below what 16 bits can tell from zero.
        self.largest_scale = float(scale_V1.max())
        self.register_buffer("scale_V1", (scale_V1 / self.largest_scale).half())
        self.register_buffer("energy_V1", fitted.embedding.energy_V1.cpu().half())
        self.rounded_VD: Tensor
        self.scale_V1: Tensor
        self.energy_V1: Tensor
        self.model: TextClassifier = copy.deepcopy(fitted.model).cpu().eval()
        self.model.attention.fold()
        self.temperature = temperature

    def forward(
        self, mask_BT: Tensor, rows_BKT: Tensor, ngrams_BTG: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return probabilities, logits, attention and contributions of the texts whose rows are given."""
        # ONNX Runtime computes this product of constants once, when it loads the file.
        table_VE = torch.cat(
            [self.rounded_VD.float() * (self.scale_V1.float() * self.largest_scale), self.energy_V1.float()], 1
        )
        token_BTE = F.embedding(rows_BKT, table_VE).sum(1)
        if ngrams_BTG is not None:
            token_BTE = token_BTE + F.embedding(ngrams_BTG, table_VE).sum(2)
        x_BTD, energy_BT1 = torch.split(token_BTE, [self.rounded_VD.shape[1], 1], -1)
        answer = self.model.explain(x_BTD, energy_BT1, mask_BT)
        probabilities_BC = torch.softmax(answer.logits_BC / self.temperature, -1)
        return probabilities_BC, answer.logits_BC, answer.attention_BT, answer.contributions_BTC


def build_graph(serving: ServingModel, space: FeatureSpace, max_tokens: int) -> onnx.ModelProto:
    """Return the whole graph: raw text in, every output of `textcls.artifact` out."""
    frontend = build_frontend(space, max_tokens)
    inputs = [output.name for output in frontend.graph.output if output.name != "tokens"]
    joined: onnx.ModelProto = compose.merge_models(
        frontend,
        compose.add_prefix(_export_core(serving, space.config), "core_"),
        io_map=[(name, f"core_{name}") for name in inputs],
        outputs=["tokens", *(f"core_{name}" for name in CORE_OUTPUTS)],
    )
    _rename_outputs(joined)
    return joined


def save(serving: ServingModel, space: FeatureSpace, info: ModelInfo, path: Path) -> None:
    """Export, check against PyTorch, and write to `path`.

    Raises:
        ArtifactError: PyTorch and ONNX Runtime disagree; nothing is written.
    """
    graph = build_graph(serving, space, info.max_tokens)
    helper.set_model_props(graph, info.to_metadata())
    content = graph.SerializeToString(deterministic=True)
    _check_parity(content, serving, space, info.max_tokens)
    with artifact.replacing(path) as file:
        file.write(content)


def empty_text_logits(serving: ServingModel) -> tuple[float, ...]:
    """The bias: what the model says of a text without tokens."""
    return tuple(serving.model.head.bias.tolist())


def _export_core(serving: ServingModel, config: FeatureConfig) -> onnx.ModelProto:
    batch, tokens, ngrams = (torch.export.Dim(name, min=2) for name in ("batch", "tokens", "ngrams"))
    kinds = config.word_hashes + 2 * config.bigrams
    mask, rows = torch.ones(2, 5, dtype=torch.bool), torch.zeros(2, kinds, 5, dtype=torch.int32)
    example: tuple[Tensor, Tensor, Tensor | None] = (mask, rows, None)
    shapes: tuple[Any, Any, Any] = ({0: batch, 1: tokens}, {0: batch, 2: tokens}, None)
    if config.ngram_sizes:
        example = (mask, rows, torch.zeros(2, 5, 7, dtype=torch.int32))
        shapes = (*shapes[:2], {0: batch, 1: tokens, 2: ngrams})
    with _quiet_exporter(), torch.no_grad():
        program = torch.onnx.export(
            serving,
            example,
            dynamo=True,
            opset_version=OPSET,
            verbose=False,
            input_names=["mask", "rows", "ngrams"][: 3 if config.ngram_sizes else 2],
            output_names=list(CORE_OUTPUTS),
            dynamic_shapes=shapes,
        )
    if program is None:
        raise ArtifactError("The export to ONNX gave nothing; nothing was written.")
    core: onnx.ModelProto = program.model_proto
    core.ir_version = IR_VERSION
    # Source positions and shapes of PyTorch's tracer: twice the size of a small model, and they hold local paths.
    for node in core.graph.node:
        del node.metadata_props[:]
    del core.graph.value_info[:]
    del core.graph.metadata_props[:]
    del core.metadata_props[:]
    return core


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """The exporter warns of its own internals and of packages that are not needed; what matters is the parity check."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _rename_outputs(model: onnx.ModelProto) -> None:
    names = {f"core_{name}": name for name in CORE_OUTPUTS}
    for node in model.graph.node:
        for field in (node.input, node.output):
            field[:] = [names.get(name, name) for name in field]
    for output in model.graph.output:
        output.name = names.get(output.name, output.name)


def _check_parity(content: bytes, serving: ServingModel, space: FeatureSpace, max_tokens: int) -> None:
    texts = [*PARITY_TEXTS, "more words than are read " * (max_tokens // 5 + 1)]
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    found = session.run(list(CORE_OUTPUTS), {artifact.INPUT: np.array(texts, object)})
    with torch.no_grad():
        expected = serving(*_padded_rows(space, texts, max_tokens))
    for name, ours, theirs in zip(CORE_OUTPUTS, expected, found, strict=True):
        padded = np.zeros_like(theirs)
        padded[tuple(slice(n) for n in ours.shape)] = ours.numpy()
        error = np.abs(padded - theirs).max() / (1 + np.abs(padded).max())
        if not error < TOLERANCE:
            raise ArtifactError(
                f"PyTorch and ONNX Runtime disagree on {name!r} by {error:.1e}, more than {TOLERANCE}; nothing was "
                "written. This is a defect of textcls or of the versions installed."
            )


def _padded_rows(space: FeatureSpace, texts: Sequence[str], max_tokens: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """What the front end makes of `texts`, by its Python twin: mask [B, T], rows [B, K, T], ngrams [B, T, G]."""
    encoded = space.encode(Corpus.of(texts, max_tokens))
    batch = encoded.batch(np.arange(len(texts)))
    lists = [*torch.split(batch.row_R, batch.size_U.tolist()), torch.zeros(0, dtype=torch.long)]
    units_UR = torch.nn.utils.rnn.pad_sequence(lists, batch_first=True).int()
    row_NKR = units_UR[batch.unit_NK]
    row_BTKR = torch.cat([row_NKR, torch.zeros_like(row_NKR[:1])])[batch.place_BT]
    # Which row is of which kind does not matter to a sum: the type's rows go with the n-grams, if there are any.
    if space.config.ngram_sizes:
        return batch.mask_BT, row_BTKR[..., 0].transpose(1, 2), row_BTKR[..., 1:].flatten(2)
    return batch.mask_BT, row_BTKR.flatten(2).transpose(1, 2), None
