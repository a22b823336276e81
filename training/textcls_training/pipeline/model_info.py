"""The metadata of a model file about the model and its training."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from textcls.evaluation.label_set_metrics import LabelSetReport
from textcls.evaluation.label_thresholds import THRESHOLD_ROWS
from textcls.evaluation.metrics import ClassificationReport
from textcls.model.artifact import LABELS_RENAMED, LABELS_WRITTEN, LEARNED_TEXTS, TRAINER, ModelInfo
from textcls_training.config.resolve import LabelWeights
from textcls_training.distillation.run import DistillationOutcome
from textcls_training.export.heads.scoring_head import empty_text_logits
from textcls_training.export.versions import versions
from textcls_training.fit.columns.gains import FittedColumns
from textcls_training.fit.selection import SelectionResult
from textcls_training.fit.validation import LabelSetValidation
from textcls_training.models.calibration import AnyCalibration, LabelSetCalibration, PrototypeCalibration
from textcls_training.models.vectors_report import VectorsReport
from textcls_training.pipeline.preparing import Prepared, Task
from textcls_training.pipeline.training_report import HeldOut


def model_info(
    task: Task,
    prepared: Prepared,
    outcome: DistillationOutcome,
    held_out: HeldOut,
    rows: int,
    vectors: VectorsReport | None,
    columns: FittedColumns,
) -> ModelInfo:
    """Return the metadata of the file. The names of its keys stay the same from version to version."""
    selected, model, config = outcome.fitted.selected, outcome.fitted.model, outcome.fitted.config
    given, linear, learned, terms = task.given, task.config.head == "linear", task.learned, columns.terms
    names = prepared.names
    bias = empty_text_logits(model) if linear else (0.0,) * len(names)
    if terms is not None:
        bias = tuple(float(np.float32(one) + more) for one, more in zip(bias, terms.bias_C, strict=True))
    known = {*names}
    renamed = {old: new for old, new in given.renamed.items() if new in known}
    newest = terms is not None or config.features.trigrams
    seeds = [one.config.seeds for one in model.classifiers]
    return ModelInfo(
        labels=tuple(names),
        bias=bias,
        temperature=selected.calibration.temperature,
        **_task(selected.calibration, distinct=any(model.distinct), newest=newest),
        columns=() if terms is None else terms.columns,
        max_tokens=config.max_tokens,
        features=config.features,
        model=asdict(config.model),
        text_columns=given.text_columns,
        label_column=given.label_column,
        training={
            "rows": rows,
            **({"texts_about_labels": prepared.about_labels} if prepared.about_labels else {}),
            "data_sha256": given.sha256(),
            **({} if task.valid is None else {"validation_sha256": task.valid.sha256()}),
            **({"options": chosen} if (chosen := task.config.chosen()) else {}),
            "seed": config.seed,
            "epochs": selected.epochs,
            "scheduled_epochs": config.epochs,
            "class_weight": _plain_weights(config.class_weight, names),
            "rationales": sum(map(bool, given.rationales or ())),
            "shares": [round(weight, 6) for weight in model.ensemble_weights],
            **({"seeds": seeds} if max(seeds) > config.model.seeds else {}),
            "gate": model.gate,
            "optim": asdict(config.optim),
            "held_out_rows": len(selected.validation),
            **_held_out(selected, held_out.report),
            **({LABELS_WRITTEN: given.written.to_json()} if given.label_sets is not None else {}),
            **({LABELS_RENAMED: renamed} if renamed else {}),
            LEARNED_TEXTS: task.learned_texts(prepared.texts.texts).to_json(),
            "versions": versions(config.impl),
            **({TRAINER: config.impl} if config.impl == "one-vs-rest" else {}),
            **({"interrupted": True} if selected.interrupted else {}),
            **({"continued": learned.metadata()} if learned is not None else {}),
            **({"distillation": outcome.metadata} if outcome.metadata else {}),
            **({"vectors": asdict(vectors)} if vectors else {}),
            **({"columns": [gain.to_json() for gain in columns.gains]} if columns.gains else {}),
            **_threshold_rows(selected.calibration),
            **({"parts": _parts(selected.calibration)} if not linear else {}),
        },
    )


def _task(calibration: AnyCalibration, *, distinct: bool, newest: bool) -> dict[str, Any]:
    """Return the metadata on the file format, and on the task if a text may have several labels."""
    if not isinstance(calibration, LabelSetCalibration):
        return {"format_version": 4} if newest else {}
    return {
        "task": "multi-label",
        "format_version": 4 if newest else 3 if distinct else 2,
        "scale": calibration.scale,
        "shift": calibration.shift,
        "thresholds": calibration.thresholds,
    }


def _threshold_rows(calibration: AnyCalibration) -> dict[str, Any]:
    """Return on how many held-out rows the threshold of each label is based, if they were used to choose it."""
    rows = calibration.rows if isinstance(calibration, LabelSetCalibration) else ()
    return {THRESHOLD_ROWS: rows} if rows else {}


def _parts(calibration: AnyCalibration) -> list[float]:
    """Return the weight of each view, and of the spelling, in the vector of a text."""
    return [round(part, 6) for part in calibration.parts] if isinstance(calibration, PrototypeCalibration) else []


def _plain_weights(weights: LabelWeights, names: Sequence[str]) -> str | dict[str, float]:
    return weights if isinstance(weights, str) else dict(zip(names, weights, strict=True))


def _held_out(selected: SelectionResult, report: ClassificationReport | LabelSetReport) -> dict[str, float | None]:
    """Return the metadata on the validation rows."""
    if isinstance(selected.validation, LabelSetValidation) and isinstance(report, LabelSetReport):
        if not report.rows:
            return dict.fromkeys(("held_out_break_even", "held_out_micro_f1", "held_out_macro_f1"))
        return {
            "held_out_break_even": round(selected.validation.right(selected.logits).share, 6),
            "held_out_micro_f1": round(report.micro_f1, 6),
            "held_out_macro_f1": round(report.macro_f1, 6),
        }
    right = selected.logits.argmax(1) == selected.labels
    return {"held_out_accuracy": round(float(right.mean()), 6) if len(right) else None}
