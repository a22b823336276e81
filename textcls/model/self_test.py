"""The self-test of a model before it is used: its graph matches its metadata, and its answers to a few texts are valid.

Shapes: B texts, T tokens, C labels.
"""

from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from textcls.errors import ArtifactError
from textcls.model import artifact, sub_token_attribution, tokenizer
from textcls.model.artifact import ModelInfo
from textcls.model.columns import count
from textcls.model.graph import Graph
from textcls.model.prototypes import Prototypes

_SAMPLES: Final = ("", "one", "A few words, zqxjkvwq, and a number: 42.", "語 é 👍 \ud83d\0")
# Size of the longest sample; it is smaller if there are many labels.
_WORDS, _CONTRIBUTIONS = 300, 2_000_000
_ROUNDING: Final = 1e-3
# Ranks of the outputs, and whether the last axis is that of the labels.
_AXES: Final = {
    "probabilities": (2, True),
    "logits": (2, True),
    "tokens": (2, False),
    "attention": (2, False),
    "contributions": (3, True),
    "known": (2, False),
}


def self_test(graph: Graph) -> None:
    """Compare a graph with its metadata, and run it on a few texts.

    Raises:
        ArtifactError: it does not match the metadata, it fails, or its answers are impossible.
    """
    path = graph.path
    try:
        wrong = _graph_problem(graph.session, graph.info) or _answers_problem(graph)
        if wrong is None and graph.has_rows:
            wrong = _rows_problem(graph)
        if wrong is None and graph.info.prototypes is not None:
            wrong = _prototypes_problem(graph, graph.info.prototypes)
    except Exception as error:  # ONNX Runtime's exceptions have no common base but this one.
        raise ArtifactError(
            f"{path} loads but fails on a plain text ({type(error).__name__}); train or copy the model again."
        ) from error
    if wrong is not None:
        raise ArtifactError(f"{path} is damaged: {wrong}; train or copy the model again.")


def _graph_problem(session: onnxruntime.InferenceSession, info: ModelInfo) -> str | None:
    labels = len(info.labels)
    inputs = [(node.name, node.type, len(node.shape)) for node in session.get_inputs()]
    if inputs[:1] != [(artifact.INPUT, "tensor(string)", 1)] or (len(inputs) > 1 and not info.columns):
        return f"its graph does not take one input {artifact.INPUT!r}, a list of strings"
    if info.columns and inputs[1:] != [(artifact.COLUMNS, "tensor(string)", 2)]:
        return f"its graph does not take the cells of its columns as one input {artifact.COLUMNS!r}"
    outputs = {node.name: node for node in session.get_outputs()}
    for name, (rank, of_labels) in _AXES.items():
        if name not in outputs:
            return f"its graph has no output {name!r}"
        shape = outputs[name].shape
        if len(shape) != rank:
            return f"its output {name!r} has {len(shape)} axes instead of {rank}"
        if of_labels and isinstance(shape[-1], int) and shape[-1] != labels:
            return f"its metadata name {labels:,} labels, and its output {name!r} has {shape[-1]:,}"
    return None


def _samples(labels: int) -> tuple[str, ...]:
    return (*_SAMPLES, "word " * max(1, min(_WORDS, _CONTRIBUTIONS // labels)))


def _answers_problem(graph: Graph) -> str | None:
    """Return what is impossible in the answers to the samples."""
    info, labels = graph.info, len(graph.info.labels)
    texts = _samples(labels)
    of_columns = (artifact.COLUMN_CONTRIBUTIONS,) if info.columns else ()
    found = graph.run([graph.read(text)[0] for text in texts], (*artifact.OUTPUTS, *of_columns))
    for name, (rank, of_labels) in _AXES.items():
        shape = found[name].shape
        if len(shape) != rank or shape[0] != len(texts) or (of_labels and shape[-1] != labels):
            return f"its metadata name {labels:,} labels, and its output {name!r} has the shape {shape}"
    scores, logits = found["probabilities"], found["logits"]
    sums_hold = info.several or (abs(scores.sum(1) - 1) < _ROUNDING).all()
    if not (np.isfinite(scores).all() and (scores >= 0).all() and (scores <= 1 + _ROUNDING).all() and sums_hold):
        return "its scores are not probabilities"
    if not np.allclose(scores, _probabilities(logits, info), atol=_ROUNDING):
        what = "the scale and shift" if info.several else "the temperature"
        return f"its scores are not those of its logits and {what} of its metadata"
    if (wrong := _sums_problem(found, info, len(texts))) is not None:
        return wrong
    expected = [tokenizer.tokenize(text)[: info.max_tokens] for text in texts]
    if [[token for token in row if token] for row in found["tokens"].tolist()] != expected:
        return "it cuts texts into other tokens than this version of textcls does"
    if found["attention"].shape != found["tokens"].shape or found["attention"][found["tokens"] == ""].any():
        return "its attention is not that of its tokens"
    # One token more than is read, to check that it is not read.
    if graph.run(["a " * (info.max_tokens + 1)], ["known"])["known"].shape != (1, info.max_tokens):
        return f"it does not read the {info.max_tokens:,} tokens of a text that its metadata say"
    return None


def _sums_problem(found: dict[str, NDArray[Any]], info: ModelInfo, texts: int) -> str | None:
    """Return what is wrong with the parts that should add up to the logits."""
    logits, sums = found["logits"], np.array(info.bias) + found["contributions"].sum(1)
    if info.columns:
        added = found[artifact.COLUMN_CONTRIBUTIONS]
        if added.shape != (texts, count(info.columns), len(info.labels)):
            return f"its metadata name {len(info.columns)} columns, and its graph has others"
        sums = sums + added.sum(1)
    if not (abs(sums - logits) <= _tolerance(logits)).all():
        return "its bias and contributions do not add up to its logits"
    return None


def _rows_problem(graph: Graph) -> str | None:
    """Return what is impossible in the contributions of the rows of a sample."""
    text = _SAMPLES[2]
    found = graph.run([text], ["contributions"])["contributions"][0]
    rows = graph.rows(text, len(found))
    by_token = sub_token_attribution.added_by_tokens(rows, len(graph.info.labels), norm=graph.info.norm)
    # Their attributions depend on the metadata, too: on which pairs and n-grams there are.
    in_all = np.array([list(part.contributions.values()) for part in graph.sub_token_attributions(text)]).sum(0)
    if (
        not (np.abs(by_token - found) <= _tolerance(found)).all()
        or not (np.abs(in_all - found.sum(0)) <= _tolerance(found)).all()
    ):
        return "its rows do not add up to its contributions"
    return None


def _prototypes_problem(graph: Graph, prototypes: Prototypes) -> str | None:
    """Return what is impossible in the attention over the support rows of a sample."""
    found = graph.run([graph.read(text)[0] for text in _SAMPLES], [artifact.EMBEDDING, artifact.SUPPORT])
    lengths = np.linalg.norm(found[artifact.EMBEDDING], axis=1)
    if not (np.minimum(lengths, abs(lengths - 1)) <= _ROUNDING).all():
        return "its vectors of texts are not of length 1"
    weight_BCK, counts = found[artifact.SUPPORT], prototypes.counts
    if weight_BCK.shape[1:] != (len(counts), max(counts)):
        return f"its metadata name {sum(counts):,} support rows, and its graph has others"
    behind_CK = np.arange(max(counts)) >= np.array(counts)[:, None]
    if not (abs(weight_BCK.sum(2) - 1) <= _ROUNDING).all() or weight_BCK[:, behind_CK].any():
        return "its attention is not that over the support rows of its metadata"
    return None


def _tolerance(logits: NDArray[np.float32]) -> float:
    return _ROUNDING * (1 + float(np.abs(logits).max(initial=0)))


def _probabilities(logits: NDArray[np.float32], info: ModelInfo) -> NDArray[np.float64]:
    """Return the probabilities of logits according to the metadata."""
    if info.scale is not None and info.shift is not None:
        # With the hyperbolic tangent, which cannot overflow.
        odds = logits * np.array(info.scale) + np.array(info.shift)
        return np.asarray((1 + np.tanh(odds / 2)) / 2)
    scaled = logits.astype(np.float64) / info.temperature
    powers = np.exp(scaled - scaled.max(1, keepdims=True))
    probabilities: NDArray[np.float64] = powers / powers.sum(1, keepdims=True)
    return probabilities
