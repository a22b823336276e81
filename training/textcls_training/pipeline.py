"""A whole training run: labelled texts in, a saved model and a report of it out."""

from collections.abc import Sequence
from contextlib import ExitStack
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
from textcls_training.continuing import Continuation, keep
from textcls_training.data.arrays import Int64
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
from textcls_training.fit.device import fuses_metric_scores, resolve_device
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.selection import SelectionResult
from textcls_training.fit.threads import reproducible
from textcls_training.fit.validation import LabelSetValidation
from textcls_training.models.calibration import AnyCalibration, LabelSetCalibration, PrototypeCalibration
from textcls_training.models.ensemble import TrainedModel
from textcls_training.models.vectors_report import VectorsReport
from textcls_training.state.checkpoints import NOWHERE, Checkpoints
from textcls_training.state.finished import Finished
from textcls_training.state.folder import StateFolder, opened
from textcls_training.state.identity import identity
from textcls_training.state.rehearsal import NO_PART
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
    state: Path | None = None,
    from_state: Path | None = None,
) -> TrainReport:
    """Train on `given` and write the model to `output`; see `run`."""
    told: Any = {"callback": callback, "stop": stop, "state": state, "from_state": from_state}
    return run(given, output, config, valid=valid, unlabelled=unlabelled, **told).report


def run(
    given: LabelledTexts,
    output: Path,
    config: TrainConfig | None = None,
    *,
    valid: LabelledTexts | None = None,
    unlabelled: UnlabelledTexts | None = None,
    callback: Callback = NOBODY,
    stop: Stop | None = None,
    state: Path | None = None,
    from_state: Path | None = None,
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
        state: a folder in which the training keeps its state, see `textcls_training.state.folder`. After a kill, the
            same call goes on from there, to the same bytes.
        from_state: such a folder of a training that has finished, to which `given` are new rows; see
            `textcls_training.continuing`.

    Raises:
        InputError: nothing can be learned from the rows, there is no such teacher, or the vectors cannot be read; or no
            training can go on from that state.
        ConfigError: training diverged, or not a single row fits into the size; or there is a teacher, and nothing to
            answer; or the folder holds the state of another training, or the state of this one cannot be kept.
        MissingExtraError: the teacher needs a package that is not installed.
        SurroundingsError: `output` or the state cannot be written, or another process trains with this state.
        ArtifactError: the exported model does not answer as the trained one does.
    """
    check_output_path(output)
    task = Task(given, output, config or TrainConfig(), valid, unlabelled, callback, stop or Stop(), None)
    if from_state is not None:
        task = _continued(task, state, from_state)
    with ExitStack() as opened_files:
        return _run(task, state, opened_files)


class Prepared(NamedTuple):
    """What a training begins with.

    Attributes:
        names: the labels, in the order of their numbers.
        dataset: all rows.
        splits: the train-valid splits.
        part: which of these holds out each row.
        resolved: how it is trained.
    """

    names: Sequence[str]
    dataset: Dataset
    splits: Sequence[Split]
    part: Int64
    resolved: ResolvedConfig


class Task(NamedTuple):
    """What a run was told, as of `run`; `earlier` is what it goes on from, whose rows are then part of `given`."""

    given: LabelledTexts
    output: Path
    config: TrainConfig
    valid: LabelledTexts | None
    unlabelled: UnlabelledTexts | None
    callback: Callback
    stop: Stop
    earlier: Continuation | None

    @property
    def learned(self) -> Continuation | None:
        """The training before, if what it has learned is begun with."""
        return None if self.earlier is None or self.earlier.anew else self.earlier

    @property
    def rows(self) -> int:
        """How many rows there ever were."""
        return len(self.given.texts) if self.earlier is None else self.earlier.rows

    @property
    def keeps_fits(self) -> bool:
        """Whether a state holds what fits have learned: where it does not hold all rows."""
        return self.learned is not None or len(self.given.texts) > self.config.rehearsal_rows


def _continued(task: Task, state: Path | None, from_state: Path) -> Task:
    if state is not None and state.resolve() == from_state.resolve():
        raise ConfigError(f"{state} is to be gone on from, and written to; name another folder for the new state.")
    if task.unlabelled is not None:
        raise ConfigError("Unlabelled texts cannot teach yet where a training goes on; leave one of the two out.")
    earlier = Continuation(Finished.load(from_state), task.given, task.config)
    task.callback.note(earlier.sentence())
    return task._replace(given=earlier.given, config=earlier.config, earlier=earlier)


def _run(task: Task, state: Path | None, opened_files: ExitStack) -> TrainingRun:
    clock = Clock()
    distillation = _distillation(task.config, task.unlabelled, task.given)
    answered = distillation is not None and distillation.answered
    prepared = _prepared(task, answered=answered)
    folder = None
    if state is not None:
        _check_keepable(prepared.resolved)
        known = _identity(task, prepared.resolved, distillation)
        folder = opened_files.enter_context(opened(state, known, task.callback.note, keep_fits=task.keeps_fits))
    checkpoints: Checkpoints = folder or NOWHERE
    if task.learned is not None:
        checkpoints = task.learned.checkpoints(checkpoints)
    clock.lap("preparing")
    fitted = _fitted(task, prepared, checkpoints)
    clock.lap("training")
    outcome, whole = DistillationOutcome(fitted, None), not fitted.selected.interrupted
    if distillation is not None and whole:
        dataset, stop = prepared.dataset, task.stop
        outcome = distillation.run(task.given, task.valid, dataset, fitted, task.callback, stop, checkpoints)
        clock.lap("distilling")
    outcome = _with_head(outcome, task.config, len(prepared.names))
    report, tables = _saved(task, prepared.names, outcome, len(fitted.learned.labels))
    clock.lap("saving")
    if folder is not None and not outcome.fitted.selected.interrupted:
        _keep(folder, task, prepared, fitted)
        clock.lap("keeping")
    return TrainingRun(replace(report, seconds=clock.seconds), outcome.fitted.model, tables)


def _fitted(task: Task, prepared: Prepared, checkpoints: Checkpoints) -> Fitted:
    """Cross-fit the model of the labelled rows."""
    names, dataset, splits, _, resolved = prepared
    with reproducible(resolved.seed, resolved.impl):
        selected, model = cross_fit(dataset, splits, len(names), resolved, task.callback, task.stop, checkpoints)
    vectors = resolved.vectors if model.vector_view is not None else None
    resolved, whole = replace(resolved, vectors=vectors, vectors_on_trial=False), not selected.interrupted
    fitted_on = dataset if whole and resolved.refit else splits[0].train
    return Fitted(selected, model, fitted_on, resolved, len(splits) if whole else 1)


def _with_head(outcome: DistillationOutcome, config: TrainConfig, labels: int) -> DistillationOutcome:
    """Return the model with the head that is wanted: a linear one is there already."""
    if config.head != "prototypes":
        return outcome
    from textcls_training.fit.prototype_selection import select_prototypes

    with threadpool_limits(1):  # products of matrices may differ in their last bits by the number of threads
        selected = select_prototypes(outcome.fitted.selected, labels)
    return replace(outcome, fitted=replace(outcome.fitted, selected=selected))


def _saved(task: Task, names: Sequence[str], outcome: DistillationOutcome, rows: int) -> tuple[TrainReport, Tables]:
    """Write the model file, which has learned from so many labelled rows; return the report, and the tables in it."""
    fitted, config = outcome.fitted, outcome.fitted.config
    held_out = HeldOut.of(fitted.selected, names)
    with reproducible(config.seed, config.impl), threadpool_limits(1):
        vectors = VectorsReport.of(fitted.model, fitted.learned.corpus)
        info = _model_info(task, names, outcome, held_out, rows, vectors)
        tables = _save(fitted, task.given, info, task.config, task.output)
    report = TrainReport.of(
        fitted.model,
        fitted.selected,
        held_out,
        rows=rows,
        folds=fitted.folds,
        file_bytes=task.output.stat().st_size,
        vectors=vectors,
        seconds={},
        distillation=outcome.report,
    )
    return report, tables


def _keep(folder: StateFolder, task: Task, prepared: Prepared, fitted: Fitted) -> None:
    """Keep the finished training, so that another can go on from it."""
    keep(
        folder,
        task.given,
        prepared.dataset,
        prepared.part,
        prepared.names,
        task.config,
        fitted.config,
        splits=len(prepared.splits),
        epochs=fitted.selected.epochs,
        rows=task.rows,
        alone=_alone(task, fitted.config),
    )


def _identity(task: Task, resolved: ResolvedConfig, distillation: Distillation | None) -> dict[str, Any]:
    """Return what makes this training the one that it is."""
    before = None if task.earlier is None else task.earlier.finished.sha256
    teacher = None if distillation is None else distillation.teacher_sha256
    return identity(task.given, task.valid, task.unlabelled, task.config, resolved, versions(), before, teacher)


def _prepared(task: Task, *, answered: bool) -> Prepared:
    """Count, split and resolve. `answered` says that somebody else than the model answers unlabelled texts."""
    given, config, learned = task.given, task.config, task.learned
    if given.label_sets is not None:
        metrics.require()
    if config.head == "prototypes" and given.label_sets is not None:
        raise ConfigError("Prototypes are for one label a text, and these have several; train with a linear head.")
    names = given.label_names() if learned is None else learned.names
    if config.head == "prototypes":
        from textcls_training.export.save_prototypes import check_support_rows  # Late: it needs PyTorch.

        check_support_rows(given.labels)
    spill = spill_of(config.max_memory, task.output)
    if learned is None:
        dataset, splits, part = _datasets(given, task.valid, names, config.max_tokens, spill)
    else:
        dataset, splits, part = learned.datasets(task.valid, spill)
    _tell_of_rare_tokens(dataset.corpus, task.callback)
    resolved = _resolved(config, given, dataset, names, answered=answered)
    return Prepared(names, dataset, splits, part, resolved if learned is None else learned.resolved(resolved, dataset))


def _check_keepable(resolved: ResolvedConfig) -> None:
    """Refuse to keep the state of a training whose later steps hang on more than its arrays."""
    if resolved.impl == "reference" and resolve_device(resolved.device).type != "cpu":
        raise ConfigError("The state of a training on a GPU cannot be kept; choose device cpu, or leave the state out.")
    if resolved.model.draws_while_training:
        raise ConfigError("The state of a training with dropout cannot be kept; leave one of the two out.")


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
        raise ConfigError(f"Unlabelled texts cannot teach yet where rows have {what}; train without them.")
    if unlabelled is None:
        if config.teacher is not None:
            raise ConfigError("A teacher answers unlabelled texts, and there are none; give some, or leave it out.")
        return None
    return None if config.unlabelled_weight == 0 else Distillation(unlabelled, config)


def _alone(task: Task, resolved: ResolvedConfig) -> str | None:
    """Return why no other training can go on from this one; None if one can."""
    if task.unlabelled is not None:
        return "it has learned from unlabelled texts"
    if task.given.rationales is not None:
        return "it has learned from rationales"
    if task.config.model is not None or task.config.optim is not None:
        return "its model was given as a whole"
    if task.keeps_fits and resolved.impl == "reference":
        return "it was trained by the reference, and holds a sample of its rows; --rehearsal-rows holds more"
    return None


def _datasets(
    given: LabelledTexts, valid: LabelledTexts | None, names: Sequence[str], max_tokens: int, spill: Spill
) -> tuple[Dataset, list[Split], Int64]:
    """Return all training rows; the train-valid splits: one with `valid`, or else parts of the training rows; and which
    split holds out each row.
    """
    validation = None if valid is None else Dataset.of(valid, names, max_tokens, spill)
    dataset = Dataset.of(given, names, max_tokens, spill)
    if not len(dataset.corpus.token):
        raise InputError("No training text holds a single word or sign; is the text column the right one?")
    part = np.full(len(given.texts), NO_PART)
    if validation is not None:
        return dataset, [Split(dataset, validation)], part
    masks = list(masks_of(dataset.corpus.hash, dataset.labels))
    for i, mask in enumerate(masks):
        part[mask] = i
    return dataset, [dataset.split(mask) for mask in masks], part


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
    task: Task,
    names: Sequence[str],
    outcome: DistillationOutcome,
    held_out: HeldOut,
    rows: int,
    vectors: VectorsReport | None,
) -> ModelInfo:
    """Return what the file says of itself. The names of its keys stay from version to version."""
    selected, model, config = outcome.fitted.selected, outcome.fitted.model, outcome.fitted.config
    given, linear, learned = task.given, task.config.head == "linear", task.learned
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
            **({"continued": learned.metadata()} if learned is not None else {}),
            **({"distillation": outcome.metadata} if outcome.metadata else {}),
            **({"vectors": asdict(vectors)} if vectors else {}),
            **({"parts": _parts(selected.calibration)} if not linear else {}),
        },
    )
