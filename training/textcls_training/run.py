"""A whole training run: labelled texts in, a saved model and a report of it out."""

import hashlib
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from textcls import metrics
from textcls.artifact import ModelInfo
from textcls.errors import InputError
from textcls.output import check_output_path
from textcls_training import export, lexicon, loop, rationales
from textcls_training.bits import BitLexicon
from textcls_training.config import Plan, TrainConfig, resolve
from textcls_training.core import empty_text_logits
from textcls_training.encoding import Corpus
from textcls_training.export import AnyLexicon
from textcls_training.loop import Chosen
from textcls_training.rationales import Spans
from textcls_training.rows import Fold, Rows
from textcls_training.split import held_out_parts
from textcls_training.views import Fitted
from textcls_training.watching import Stop, Watcher

VERSIONS_OF = ("textcls", "torch", "onnx", "onnxscript", "onnxruntime", "numpy", "numba", "scipy", "mmh3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Labelled texts, and the names of the columns they came from.

    `rationales` are what people have marked in each text as the reason for its label, as spans of characters.
    """

    texts: Sequence[str]
    labels: Sequence[str]
    rationales: Sequence[Spans] | None = None
    text_columns: tuple[str, ...] = ("text",)
    label_column: str = "label"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainReport:
    """What training found out.

    `held_out` is measured on rows that the measured model was not trained on, though they chose its epoch and
    temperature.

    Attributes:
        rows: rows that the saved model was trained on.
        held_out_rows: rows that chose the epoch and the temperature.
        folds: 1 where these are held-out or separate rows; more where each part of few rows judged in turn.
        epochs: passes over the data.
        temperature: 1 when too few rows were held out to fit it.
        shares: how much each view counts: words, and pieces of words if they are read.
        held_out: accuracy, macro-F1, calibration and the per-label table, at that temperature.
        ece_before: expected calibration error without it.
        gate: what the mixing layer's gate has become, None without mixing.
        parameters: how many numbers were learned in all.
        mixing_parameters: how many of them are the mixing layer's.
        file_bytes: size of the saved model.
        interrupted: whether somebody has ended the training early.
        seconds: how long each step took.
    """

    rows: int
    held_out_rows: int
    folds: int
    epochs: int
    temperature: float
    shares: tuple[float, ...]
    held_out: metrics.Report
    ece_before: float
    gate: float | None
    parameters: int
    mixing_parameters: int
    file_bytes: int
    interrupted: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return asdict(self) | {"held_out": self.held_out.to_json()}

    @property
    def cross_entropy(self) -> float | None:
        """Mean negative log-likelihood, in nats, of the right labels on the held-out rows; see `textcls.metrics`."""
        return self.held_out.cross_entropy

    @property
    def perplexity(self) -> float | None:
        """The exponential of `cross_entropy`."""
        return self.held_out.perplexity


class Run(NamedTuple):
    """A training run: its report, the model itself, and what the front end of the saved one reads."""

    report: TrainReport
    fitted: Fitted
    lexicon: AnyLexicon


def train(
    source: Source,
    output: Path,
    config: TrainConfig | None = None,
    *,
    valid: Source | None = None,
    watcher: Watcher | None = None,
    stop: Stop | None = None,
) -> TrainReport:
    """Train on `source` and write the model to `output`; see `run`."""
    return run(source, output, config, valid=valid, watcher=watcher, stop=stop).report


def run(
    source: Source,
    output: Path,
    config: TrainConfig | None = None,
    *,
    valid: Source | None = None,
    watcher: Watcher | None = None,
    stop: Stop | None = None,
) -> Run:
    """Train on `source`, write the model to `output`, and return it beside the report.

    Args:
        source: the training rows.
        output: the ONNX file to write; it appears whole, or not at all.
        config: what differs from the defaults.
        valid: rows that choose epoch and temperature. Without them a tenth of `source`, chosen by a hash of the text,
            does; of few rows each fifth does in turn. The saved model is then fitted on all rows of `source`.
        watcher: told of progress.
        stop: by which somebody may end the training early. The model is then the one that the first judging rows
            judge, as it stands: without `valid` it has not learned from these.

    Raises:
        InputError: nothing can be learned from the rows.
        ConfigError: training diverged, or not a single row fits into the size.
        SurroundingsError: `output` cannot be written.
        ArtifactError: the exported model does not answer as PyTorch does.
    """
    check_output_path(output)
    metrics.require()
    began = [time.perf_counter()]
    names = _label_names(source, valid)
    config = config or TrainConfig()
    everything = _rows(source, _numbers(source.labels, names), config.max_tokens)
    if not len(everything.corpus.token):
        raise InputError("No training text holds a single word or sign; is the text column the right one?")
    plan = resolve(config, source.texts, len(everything.corpus.token), len(names))

    with loop.reproducible(plan.seed):
        folds = _folds(source, everything, valid, names, plan.max_tokens)
        began.append(time.perf_counter())
        chosen, fitted = loop.choose_and_fit(everything, folds, len(names), plan, watcher, stop)
        began.append(time.perf_counter())
        learned = folds[0].train if chosen.interrupted else everything
        saved = _lexicon(fitted, learned.corpus, plan, len(names))
        info = _model_info(source, names, plan, chosen, fitted, len(learned.labels))
        export.save(fitted, saved, chosen.calibration.temperature, info, output)
        began.append(time.perf_counter())

    seconds = dict(zip(("preparing", "training", "saving"), np.diff(began).tolist(), strict=True))
    folds_used = 1 if chosen.interrupted else len(folds)
    report = _report(chosen, fitted, names, len(learned.labels), folds_used, output.stat().st_size, seconds)
    return Run(report, fitted, saved)


def _folds(source: Source, everything: Rows, valid: Source | None, names: Sequence[str], max_tokens: int) -> list[Fold]:
    """The rows that judge, and those to learn from meanwhile: those of `valid`, or else parts of the training rows."""
    if valid is None:
        return [everything.split(mask) for mask in held_out_parts(source.texts, everything.labels)]
    return [Fold(everything, _rows(valid, _numbers(valid.labels, names), max_tokens))]


def _report(
    chosen: Chosen,
    fitted: Fitted,
    names: Sequence[str],
    rows: int,
    folds: int,
    file_bytes: int,
    seconds: Mapping[str, float],
) -> TrainReport:
    temperature = chosen.calibration.temperature
    probabilities = softmax(chosen.logits / temperature, axis=1)
    return TrainReport(
        rows=rows,
        held_out_rows=len(chosen.labels),
        folds=folds,
        epochs=chosen.epochs,
        temperature=temperature,
        shares=fitted.shares,
        held_out=metrics.report(probabilities, chosen.labels, names),
        ece_before=metrics.expected_calibration_error(softmax(chosen.logits, axis=1), chosen.labels),
        gate=_learned_gate(fitted),
        parameters=fitted.parameters,
        mixing_parameters=fitted.mixing_parameters,
        file_bytes=file_bytes,
        interrupted=chosen.interrupted,
        seconds=seconds,
    )


def _lexicon(fitted: Fitted, corpus: Corpus, plan: Plan, labels: int) -> AnyLexicon:
    """What the front end of the saved model reads; the matrix of bits is small, and always whole."""
    if plan.model.embedding == "bits":
        return BitLexicon.of(fitted)
    return lexicon.build(fitted, corpus, lexicon.budget(plan.size, labels))


def _rows(source: Source, labels: NDArray[np.int64], max_tokens: int) -> Rows:
    corpus = Corpus.of(source.texts, max_tokens)
    if source.rationales is None:
        return Rows(corpus, labels)
    return Rows(corpus, labels, rationales.flags(source.texts, source.rationales, max_tokens))


def _label_names(source: Source, valid: Source | None) -> list[str]:
    names = sorted(set(source.labels))
    if len(names) < 2:
        only = f"only the label {names[0]!r}" if names else "no labels"
        raise InputError(f"The training rows have {only}; a classifier needs at least two.")
    strangers = sorted(set(valid.labels) - set(names)) if valid else []
    if strangers:
        raise InputError(f"The validation rows have the label {strangers[0]!r}, which no training row has.")
    return names


def _numbers(labels: Sequence[str], names: Sequence[str]) -> NDArray[np.int64]:
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[label] for label in labels], np.int64)


def _model_info(
    source: Source, names: Sequence[str], plan: Plan, chosen: Chosen, fitted: Fitted, rows: int
) -> ModelInfo:
    right = chosen.logits.argmax(1) == chosen.labels
    return ModelInfo(
        labels=tuple(names),
        bias=empty_text_logits(fitted),
        temperature=chosen.calibration.temperature,
        max_tokens=plan.max_tokens,
        features=plan.features,
        model=asdict(plan.model),
        text_columns=source.text_columns,
        label_column=source.label_column,
        training={
            "rows": rows,
            "data_sha256": _data_hash(source),
            "seed": plan.seed,
            "epochs": chosen.epochs,
            "scheduled_epochs": plan.epochs,
            "class_weight": plan.class_weight,
            "rationales": sum(map(bool, source.rationales or ())),
            "shares": [round(share, 6) for share in fitted.shares],
            "gate": _learned_gate(fitted),
            "optim": asdict(plan.optim),
            "held_out_rows": len(chosen.labels),
            "held_out_accuracy": round(float(right.mean()), 6) if len(right) else None,
            "versions": {name: version(name) for name in VERSIONS_OF} | {"python": platform.python_version()},
            **({"interrupted": True} if chosen.interrupted else {}),
        },
    )


def _learned_gate(fitted: Fitted) -> float | None:
    layers = [view.classifier.mixing for view in fitted.views]
    gates = [float(layer.gate_X.detach().abs().max()) for layer in layers if layer]
    return round(max(gates), 6) if gates else None


def _data_hash(source: Source) -> str:
    digest = hashlib.sha256()
    for text, label in zip(source.texts, source.labels, strict=True):
        for part in (label, text):
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()
