"""A whole training run: labelled texts in, a saved model and a report of it out."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from textcls._util.atomic_write import check_output_path
from textcls._util.spill import Spill
from textcls.artifact import LABELS_WRITTEN, ModelInfo
from textcls.errors import ConfigError, InputError
from textcls.evaluation import metrics
from textcls.evaluation.label_set_metrics import LabelSetReport
from textcls.evaluation.metrics import ClassificationReport
from textcls_training.clock import Clock
from textcls_training.config.memory import spill_of
from textcls_training.config.resolve import LabelWeights, ResolvedConfig, chosen_impl, resolve
from textcls_training.config.settings import TrainConfig
from textcls_training.data.corpus import MOST_TYPES, Corpus
from textcls_training.data.dataset import Dataset, Split
from textcls_training.data.english import english, english_if_few_rows
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import masks_of
from textcls_training.data.unlabelled import UnlabelledTexts
from textcls_training.distillation.distil import Fitted
from textcls_training.distillation.run import Distillation, DistillationOutcome
from textcls_training.export.heads.scoring_head import empty_text_logits
from textcls_training.export.save import Tables, save, tables_of
from textcls_training.export.versions import versions
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.cross_fit import cross_fit
from textcls_training.fit.device import fuses_metric_scores
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.selection import SelectionResult
from textcls_training.fit.threads import reproducible
from textcls_training.fit.validation import LabelSetValidation
from textcls_training.models.calibration import AnyCalibration, LabelSetCalibration, PrototypeCalibration
from textcls_training.models.ensemble import TrainedModel
from textcls_training.models.vectors_report import VectorsReport
from textcls_training.training_report import HeldOut, TrainReport
from textcls_training.vectors.file import load
from textcls_training.vectors.word_vectors import WordVectors


class TrainingRun(NamedTuple):
    """A training run: its report, the model itself, and the tables that the saved one reads."""

    report: TrainReport
    model: TrainedModel
    tables: Tables


def train(
    given: LabelledTexts,
    output: Path,
    config: TrainConfig | None = None,
    *,
    valid: LabelledTexts | None = None,
    unlabelled: UnlabelledTexts | None = None,
    callback: Callback = NOBODY,
    stop: Stop | None = None,
) -> TrainReport:
    """Train on `given` and write the model to `output`; see `run`."""
    return run(given, output, config, valid=valid, unlabelled=unlabelled, callback=callback, stop=stop).report


def run(
    given: LabelledTexts,
    output: Path,
    config: TrainConfig | None = None,
    *,
    valid: LabelledTexts | None = None,
    unlabelled: UnlabelledTexts | None = None,
    callback: Callback = NOBODY,
    stop: Stop | None = None,
) -> TrainingRun:
    """Train on `given`, write the model to `output`, and return it beside the report.

    Args:
        given: the training rows.
        output: the ONNX file to write; it appears whole, or not at all.
        config: what differs from the defaults.
        valid: validation rows. Without them they are a tenth of `given`, chosen by a hash of the text; of few rows each
            fifth in turn. The saved model is then fitted on all rows of `given`.
        unlabelled: texts without labels, none of them a text of `given` or `valid`. The teacher of `config` answers
            them, or the model itself if there is none, unless they bring probabilities; the model learns from these
            answers, too, if held-out labelled rows prefer that.
        callback: told of progress.
        stop: by which somebody may end the training early. The model is then that of the first train-valid split, as
            it stands: without `valid` it has not learned from the validation rows. While unlabelled texts are at work
            it is the whole model without them.

    Raises:
        InputError: nothing can be learned from the rows, there is no such teacher, or the vectors cannot be read.
        ConfigError: training diverged, or not a single row fits into the size; or there is a teacher, and nothing to
            answer.
        MissingExtraError: the teacher needs a package that is not installed.
        SurroundingsError: `output` cannot be written.
        ArtifactError: the exported model does not answer as the trained one does.
    """
    check_output_path(output)
    if given.label_sets is not None:
        metrics.require()
    clock = Clock()
    config, stop = config or TrainConfig(), stop or Stop()
    distillation = _distillation(config, unlabelled, given)
    if config.head == "prototypes" and given.label_sets is not None:
        raise ConfigError("Prototypes need one label per text, and these rows have several; train with a linear head.")
    names = given.label_names()
    if config.head == "prototypes":
        from textcls_training.export.save_prototypes import check_support_rows  # Late: it needs PyTorch.

        check_support_rows(given.labels)
    spill = spill_of(config.max_memory, output)
    dataset, splits = _datasets(given, valid, names, config.max_tokens, spill)
    _tell_of_rare_tokens(dataset.corpus, callback)
    answered = distillation is not None and distillation.answered
    resolved = _resolved(config, given, dataset, names, answered=answered)
    clock.lap("preparing")
    with reproducible(resolved.seed, resolved.impl):
        selected, model = cross_fit(dataset, splits, len(names), resolved, callback, stop)
    kept = resolved.vectors if model.vector_view is not None else None
    resolved, whole = replace(resolved, vectors=kept, vectors_on_trial=False), not selected.interrupted
    learned = dataset if whole and resolved.refit else splits[0].train
    fitted = Fitted(selected, model, learned, resolved, len(splits) if whole else 1)
    rows = len(fitted.learned.labels)
    clock.lap("training")
    outcome = DistillationOutcome(fitted, None)
    if distillation is not None and whole:
        outcome = distillation.run(given, valid, dataset, fitted, callback, stop)
        clock.lap("distilling")
    fitted = outcome.fitted
    if config.head == "prototypes":
        from textcls_training.fit.prototype_selection import select_prototypes

        with threadpool_limits(1):  # products of matrices may differ in their last bits by the number of threads
            fitted = replace(fitted, selected=select_prototypes(fitted.selected, len(names)))
        outcome = replace(outcome, fitted=fitted)
    held_out = HeldOut.of(fitted.selected, names)
    with reproducible(resolved.seed, resolved.impl), threadpool_limits(1):
        known = VectorsReport.of(fitted.model, fitted.learned.corpus)
        info = _model_info(given, names, outcome, held_out, rows, known, linear=config.head == "linear")
        info = replace(info, example=config.example)
        tables = _save(fitted, given, info, config, output)
        clock.lap("saving")
    report = TrainReport.of(
        fitted.model,
        fitted.selected,
        held_out,
        rows=rows,
        folds=fitted.folds,
        file_bytes=output.stat().st_size,
        vectors=known,
        seconds=clock.seconds,
        distillation=outcome.report,
    )
    return TrainingRun(report, fitted.model, tables)


def _save(fitted: Fitted, given: LabelledTexts, info: ModelInfo, config: TrainConfig, output: Path) -> Tables:
    """Write the model file; return the tables that it reads."""
    corpus, size = fitted.learned.corpus, fitted.config.size
    if config.head == "linear":
        tables = tables_of(fitted.model, corpus, size)
        save(fitted.model, tables, fitted.selected.calibration, info, output)
        return tables
    from textcls_training.export.save_prototypes import encoder_tables, save_prototypes
    from textcls_training.models.prototypes import text_encoder

    calibration = fitted.selected.calibration
    if not isinstance(calibration, PrototypeCalibration):
        raise TypeError("prototypes are calibrated as such")
    encoder = text_encoder(fitted.model, calibration)
    found = encoder_tables(encoder, corpus, size, given.labels)
    save_prototypes(encoder, found, given.texts, given.labels, info, output, keep_texts=config.keep_texts)
    return found


def _distillation(config: TrainConfig, unlabelled: UnlabelledTexts | None, given: LabelledTexts) -> Distillation | None:
    """Return what is to be done with unlabelled texts; None if there are none, or if they are to count nothing."""
    if unlabelled is not None and (given.label_sets is not None or given.weights is not None):
        what = "several labels" if given.label_sets is not None else "weights"
        raise ConfigError(f"Unlabelled texts cannot be used where rows have {what}; train without them.")
    if unlabelled is None:
        if config.teacher is not None:
            raise ConfigError(
                "A teacher needs unlabelled texts to label, and there are none; give some, or leave the teacher out."
            )
        return None
    return None if config.unlabelled_weight == 0 else Distillation(unlabelled, config)


def _datasets(
    given: LabelledTexts, valid: LabelledTexts | None, names: Sequence[str], max_tokens: int, spill: Spill
) -> tuple[Dataset, list[Split]]:
    """Return all training rows, and the train-valid splits: one with `valid`, or else parts of the training rows."""
    validation = None if valid is None else Dataset.of(valid, names, max_tokens, spill)
    dataset = Dataset.of(given, names, max_tokens, spill)
    if not len(dataset.corpus.token):
        raise InputError("No training text contains a word or symbol; is this the right text column?")
    if validation is not None:
        return dataset, [Split(dataset, validation)]
    return dataset, [dataset.split(mask) for mask in masks_of(dataset.corpus.hash, dataset.labels)]


def _tell_of_rare_tokens(corpus: Corpus, callback: Callback) -> None:
    """Say what is approximate where there are very many different tokens."""
    if corpus.has_rare:
        lost = corpus.type_counts()[0] / len(corpus.token)
        callback.note(
            f"There are more than {MOST_TYPES:,} different tokens. The {len(corpus.types) - 1:,} most frequent are "
            f"learned; the others, {lost:.1%} of all tokens, are passed over."
        )


def _resolved(
    config: TrainConfig, given: LabelledTexts, dataset: Dataset, names: Sequence[str], *, answered: bool
) -> ResolvedConfig:
    vectors = _vectors(config, dataset, answered=answered)
    impl = chosen_impl(config, rationales=dataset.rationale is not None)
    resolved = resolve(
        config,
        given.texts,
        len(dataset.corpus.token),
        len(names),
        label_rows=float(np.median(dataset.label_mass(len(names)))) if dataset.several else None,
        fused_metric=impl == "reference" and fuses_metric_scores(config.device),
        vectors=vectors,
        names=names,
        impl=impl,
    )
    return replace(resolved, vectors_on_trial=config.vectors is None and vectors is not None)


def _vectors(config: TrainConfig, dataset: Dataset, *, answered: bool) -> WordVectors | None:
    """Return the vectors that are asked for; unasked, those that suit the rows, if nobody else knows more.

    A student of a teacher, or of somebody's probabilities, learns more from these `answered` texts than from vectors,
    and beside them loses: held-out rows then prefer the model of the labels alone, which vectors make better.
    """
    match config.vectors:
        case Path() as path:
            return load(path)
        case "english":
            return english()
        case None if config.beside_vectors() is None and not answered:
            return english_if_few_rows(dataset.corpus)
        case _:
            return None


def _task(calibration: AnyCalibration) -> dict[str, Any]:
    """Return what the file says of its task, where a text may have several labels; nothing where it has one."""
    if not isinstance(calibration, LabelSetCalibration):
        return {}
    return {
        "task": "multi-label",
        "format_version": 2,
        "scale": calibration.scale,
        "shift": calibration.shift,
        "thresholds": calibration.thresholds,
    }


def _parts(calibration: AnyCalibration) -> list[float]:
    """Return how much each view, and the spelling, counts in the vector of a text."""
    return [round(part, 6) for part in calibration.parts] if isinstance(calibration, PrototypeCalibration) else []


def _told(weights: LabelWeights, names: Sequence[str]) -> str | dict[str, float]:
    return weights if isinstance(weights, str) else dict(zip(names, weights, strict=True))


def _held_out(selected: SelectionResult, report: ClassificationReport | LabelSetReport) -> dict[str, float | None]:
    """Return what the file says of the validation rows."""
    if isinstance(selected.validation, LabelSetValidation) and isinstance(report, LabelSetReport):
        if not report.rows:
            return dict.fromkeys(("held_out_break_even", "held_out_micro_f1", "held_out_macro_f1"))
        return {
            "held_out_break_even": round(selected.validation.score(selected.logits).accuracy, 6),
            "held_out_micro_f1": round(report.micro_f1, 6),
            "held_out_macro_f1": round(report.macro_f1, 6),
        }
    right = selected.logits.argmax(1) == selected.labels
    return {"held_out_accuracy": round(float(right.mean()), 6) if len(right) else None}


def _model_info(
    given: LabelledTexts,
    names: Sequence[str],
    outcome: DistillationOutcome,
    held_out: HeldOut,
    rows: int,
    vectors: VectorsReport | None,
    *,
    linear: bool,
) -> ModelInfo:
    """Return what the file says of itself. The names of its keys stay from version to version."""
    selected, model, config = outcome.fitted.selected, outcome.fitted.model, outcome.fitted.config
    return ModelInfo(
        labels=tuple(names),
        bias=empty_text_logits(model) if linear else (0.0,) * len(names),
        temperature=selected.calibration.temperature,
        **_task(selected.calibration),
        max_tokens=config.max_tokens,
        features=config.features,
        model=asdict(config.model),
        text_columns=given.text_columns,
        label_column=given.label_column,
        training={
            "rows": rows,
            "data_sha256": given.sha256(),
            "seed": config.seed,
            "epochs": selected.epochs,
            "scheduled_epochs": config.epochs,
            "class_weight": _told(config.class_weight, names),
            "rationales": sum(map(bool, given.rationales or ())),
            "shares": [round(weight, 6) for weight in model.ensemble_weights],
            "gate": model.gate,
            "optim": asdict(config.optim),
            "held_out_rows": len(selected.validation),
            **_held_out(selected, held_out.report),
            **({LABELS_WRITTEN: given.written.to_json()} if given.label_sets is not None else {}),
            "versions": versions(),
            **({"interrupted": True} if selected.interrupted else {}),
            **({"distillation": outcome.metadata} if outcome.metadata else {}),
            **({"vectors": asdict(vectors)} if vectors else {}),
            **({"parts": _parts(selected.calibration)} if not linear else {}),
        },
    )
