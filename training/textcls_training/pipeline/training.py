"""A whole training run: labelled texts in, a saved model and a report of it out."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from textcls._util.atomic_write import check_output_path
from textcls.errors import ConfigError
from textcls.model.artifact import ModelInfo
from textcls_training.config.clock import Clock
from textcls_training.config.resolve import ResolvedConfig
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.unlabelled import UnlabelledTexts
from textcls_training.distillation.distil import Fitted
from textcls_training.distillation.run import Distillation, DistillationOutcome
from textcls_training.export.save import Tables, save, tables_of
from textcls_training.export.versions import versions
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.columns.gains import FittedColumns
from textcls_training.fit.course import Course
from textcls_training.fit.cross_fit import cross_fit
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.label_set_calibration import HeldOutDecisions
from textcls_training.fit.selection import SelectionResult
from textcls_training.fit.threads import reproducible
from textcls_training.models.calibration import PrototypeCalibration
from textcls_training.models.columns import ColumnTerms
from textcls_training.models.ensemble import TrainedModel
from textcls_training.models.vectors_report import VectorsReport
from textcls_training.pipeline.continuing import Continuation
from textcls_training.pipeline.either_way import fit_either_way
from textcls_training.pipeline.held_out_summary import held_out_summary
from textcls_training.pipeline.keeping import keep
from textcls_training.pipeline.model_info import model_info
from textcls_training.pipeline.preparing import Prepared, Task, prepare
from textcls_training.pipeline.training_report import HeldOut, TrainReport
from textcls_training.state.checkpoints import NOWHERE, Checkpoints
from textcls_training.state.finished import Finished
from textcls_training.state.folder import opened
from textcls_training.state.identity import identity
from textcls_training.torch_parts import torch_part


class TrainingRun(NamedTuple):
    """A training run.

    Attributes:
        report: its report.
        model: the model.
        tables: the tables that the saved model reads.
        selected: the selection on validation rows, with their logits: those of the first split, the second, and so on.
        part: the split that held out each row; a number other than those of the splits for none.
    """

    report: TrainReport
    model: TrainedModel
    tables: Tables
    selected: SelectionResult
    part: Int64

    @property
    def held_out_rows(self) -> Int64:
        """The numbers of the training rows that were held out, in the order of `selected.logits`."""
        return _rows_of(self.part, self.report.folds)


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
    new_labels: bool = True,
) -> TrainReport:
    """Train on `given` and write the model to `output`; see `run`."""
    return run(
        given,
        output,
        config,
        valid=valid,
        unlabelled=unlabelled,
        callback=callback,
        stop=stop,
        state=state,
        from_state=from_state,
        new_labels=new_labels,
    ).report


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
    every_part: bool = False,
    new_labels: bool = True,
) -> TrainingRun:
    """Train on `given`, write the model to `output`, and return it with the report.

    Args:
        given: the training rows.
        output: the ONNX file to write; it appears whole, or not at all.
        config: the options that differ from the defaults.
        valid: validation rows. By default they are each fifth of `given` in turn, chosen by a hash of the text, or a
            tenth if that takes long. The saved model is then fitted on all rows of `given`.
        unlabelled: texts without labels, none of them in `given` or `valid`. The teacher of `config` answers them, or
            the model itself if there is none, unless they come with probabilities; the model also learns from these
            answers if held-out labelled rows prefer that.
        callback: notified of progress.
        stop: a request to end the training early. The model is then that of the first train-valid split, as it is:
            without `valid` it has not learned from the validation rows. During the work on unlabelled texts it is the
            whole model without them.
        state: a folder in which the training keeps its state, see `textcls_training.state.folder`. After a kill, the
            same call continues from there, to the same bytes.
        from_state: such a folder of a finished training, to which `given` adds new rows; see
            `textcls_training.pipeline.continuing`.
        every_part: hold out each part of the rows in turn, as with few rows, however many there are.
        new_labels: whether texts about labels may add labels that no row has.

    Raises:
        InputError: nothing can be learned from the rows, there is no such teacher, or the vectors cannot be read; or no
            training can continue from that state.
        ConfigError: training diverged, or not a single row fits into the size; or there is a teacher, but nothing to
            answer; or the folder contains the state of another training, or the state of this one cannot be kept.
        MissingExtraError: the teacher needs a package that is not installed.
        SurroundingsError: `output` or the state cannot be written, or another process is training with this state.
        ArtifactError: the exported model does not answer as the trained one does.
    """
    check_output_path(output)
    config, stop = config or TrainConfig(), stop or Stop()
    task = Task(given, output, config, valid, unlabelled, callback, stop, None, every_part, new_labels)
    if from_state is not None:
        task = _continued(task, state, from_state)
    with ExitStack() as opened_files:
        return _run(task, state, opened_files)


def _continued(task: Task, state: Path | None, from_state: Path) -> Task:
    if state is not None and state.resolve() == from_state.resolve():
        raise ConfigError(f"{state} is the training that this one continues; name another folder for the new state.")
    if task.unlabelled is not None:
        raise ConfigError("Unlabelled texts cannot be used yet when a training continues; leave one of the two out.")
    earlier = Continuation(Finished.load(from_state), task.given, task.config)
    task.callback.note(earlier.sentence())
    if task.valid is not None and (judged := earlier.judged_by(task.valid)) is not None:
        task.callback.note(judged)
    return task._replace(given=earlier.given, config=earlier.config, earlier=earlier)


def _run(task: Task, state: Path | None, opened_files: ExitStack) -> TrainingRun:
    clock = Clock()
    distillation = _distillation(task.config, task.unlabelled, task.given)
    prepared = prepare(task, keeps_fits=state is not None and task.keeps_fits)
    folder = None
    if state is not None:
        _check_keepable(prepared.resolved)
        known = _identity(task, prepared.resolved, distillation)
        folder = opened_files.enter_context(opened(state, known, task.callback.note, keep_fits=task.keeps_fits))
    checkpoints: Checkpoints = folder or NOWHERE
    if task.learned is not None:
        checkpoints = task.learned.checkpoints(checkpoints)
    course = Course(task.callback, task.stop, checkpoints)
    clock.lap("preparing")
    fitted = _fitted(task, prepared, course)
    clock.lap("training")
    outcome, whole = DistillationOutcome(fitted, None), not fitted.selected.interrupted
    if distillation is not None and whole:
        outcome = distillation.run(prepared.texts, task.valid, prepared.taught, prepared.part, fitted, course)
        clock.lap("distilling")
    outcome = _with_head(outcome, task.config, len(prepared.names))
    outcome, columns = _with_columns(outcome, task, prepared)
    report, tables = _saved(task, prepared, outcome, columns, len(fitted.learned.labels) - prepared.about_labels)
    clock.lap("saving")
    if folder is not None and not outcome.fitted.selected.interrupted:
        report = replace(report, cannot_go_on=keep(folder, task, prepared, fitted))
        clock.lap("keeping")
    report = replace(report, seconds=clock.seconds)
    return TrainingRun(report, outcome.fitted.model, tables, outcome.fitted.selected, prepared.part)


def _fitted(task: Task, prepared: Prepared, course: Course) -> Fitted:
    """Cross-fit the model of the labelled rows."""
    names, _, _, dataset, splits, _, resolved, machines = prepared
    with reproducible(resolved.seed, resolved.impl, len(names)):
        if machines is not None:
            gradient = None if task.config.impl == "one-vs-rest" else resolved
            return fit_either_way(dataset, splits, len(names), machines, gradient, course, task.every_part)
        selected, model = cross_fit(dataset, splits, len(names), resolved, course)
    resolved, whole = resolved.after_trial(has_vectors=model.vector_view is not None), not selected.interrupted
    fitted_on = dataset if whole and resolved.refit else splits[0].train
    return Fitted(selected, model, fitted_on, resolved, len(splits) if whole else 1)


def _with_head(outcome: DistillationOutcome, config: TrainConfig, labels: int) -> DistillationOutcome:
    """Return the model with the requested head; a linear one is there already."""
    if config.head != "prototypes":
        return outcome
    from textcls_training.fit.prototype_selection import select_prototypes

    with threadpool_limits(1):  # products of matrices may differ in their last bits by the number of threads
        selected = select_prototypes(outcome.fitted.selected, labels)
    return replace(outcome, fitted=replace(outcome.fitted, selected=selected))


def _with_columns(
    outcome: DistillationOutcome, task: Task, prepared: Prepared
) -> tuple[DistillationOutcome, FittedColumns]:
    """Return the selection of held-out rows with the columns beside the text, and what these add."""
    selected, given = outcome.fitted.selected, task.given
    if not given.columns:
        return outcome, FittedColumns(None, selected, ())
    from textcls_training.fit.columns.selection import fit_columns  # SciPy takes its time

    if task.valid is not None:
        cells = task.valid.cells
    else:
        cells = [given.cells[i] for i in _rows_of(prepared.part, outcome.fitted.folds).tolist()]
    found = fit_columns(given.columns, cells, selected)
    return replace(outcome, fitted=replace(outcome.fitted, selected=found.selected)), found


def _rows_of(part: Int64, folds: int) -> Int64:
    """Return the numbers of the rows that splits hold out, one split after another."""
    return np.concatenate([np.flatnonzero(part == fold) for fold in range(folds)])


def _distillation(config: TrainConfig, unlabelled: UnlabelledTexts | None, given: LabelledTexts) -> Distillation | None:
    """Return how unlabelled texts are used; None if there are none, or if they are to have no weight."""
    if unlabelled is not None and given.weights is not None:
        raise ConfigError("Unlabelled texts cannot be used where rows have weights; train without them.")
    if unlabelled is None:
        if config.teacher is not None:
            raise ConfigError(
                "A teacher needs unlabelled texts to label, and there are none; give some, or leave the teacher out."
            )
        return None
    return None if config.unlabelled_weight == 0 else Distillation(unlabelled, config)


def _saved(
    task: Task, prepared: Prepared, outcome: DistillationOutcome, columns: FittedColumns, rows: int
) -> tuple[TrainReport, Tables]:
    """Write the model file, which has learned from `rows` labelled rows; return the report, and the tables in it."""
    fitted, config = outcome.fitted, outcome.fitted.config
    held_out = HeldOut.of(fitted.selected, prepared.names)
    with reproducible(config.seed, config.impl), threadpool_limits(1):
        own = _own_corpus(outcome, prepared)
        vectors = VectorsReport.of(fitted.model, own)
        info = model_info(task, prepared, outcome, held_out, rows, vectors, columns)
        info = replace(info, example=task.config.example)
        tables = _save(fitted, task, info, columns.terms, held_out.decisions, own)
    selected, model = fitted.selected, fitted.model
    report = TrainReport(
        rows=rows,
        held_out_rows=len(selected.validation),
        folds=fitted.folds,
        epochs=selected.epochs,
        temperature=selected.calibration.temperature,
        ensemble_weights=model.ensemble_weights,
        held_out=held_out.report,
        ece_before=held_out.ece_before,
        gate=model.gate,
        parameters=model.parameters,
        mixing_parameters=model.mixing_parameters,
        file_bytes=task.output.stat().st_size,
        vectors=vectors,
        interrupted=selected.interrupted,
        distillation=outcome.report,
        threshold_rows=held_out.threshold_rows,
        columns=columns.gains,
        trainer=config.impl,
        goal=config.goal,
    )
    return report, tables


def _own_corpus(outcome: DistillationOutcome, prepared: Prepared) -> Corpus:
    """Return the learned corpus without texts about labels, which follow the rows if nothing else was learned."""
    corpus = outcome.fitted.learned.corpus
    if outcome.metadata is not None or not prepared.about_labels:
        return corpus
    return corpus.select(np.arange(len(corpus) - prepared.about_labels))


def _save(
    fitted: Fitted,
    task: Task,
    info: ModelInfo,
    terms: ColumnTerms | None,
    decisions: HeldOutDecisions | None,
    own: Corpus,
) -> Tables:
    """Write the model file, which describes its `own` rows; return the tables that it reads."""
    given, config, output = task.given, task.config, task.output
    corpus, size = fitted.learned.corpus, fitted.config.size
    if config.head == "linear":
        tables = tables_of(fitted.model, corpus, size)
        info = _summarised(info, fitted, tables, decisions, own)
        save(fitted.model, tables, fitted.selected.calibration, info, output, corpus, terms)
        return tables
    calibration = fitted.selected.calibration
    if not isinstance(calibration, PrototypeCalibration):
        raise TypeError("prototypes are calibrated as such")
    prototypes = torch_part("export.save_prototypes")
    encoder = prototypes.text_encoder(fitted.model, calibration)
    found: Tables = prototypes.encoder_tables(encoder, corpus, size, given.labels)
    info = _summarised(info, fitted, found, decisions, own)
    prototypes.save_prototypes(encoder, found, given.texts, given.labels, info, output, keep_texts=config.keep_texts)
    return found


def _summarised(
    info: ModelInfo, fitted: Fitted, tables: Tables, decisions: HeldOutDecisions | None, own: Corpus
) -> ModelInfo:
    """Add a summary of the held-out rows to the metadata."""
    summary = held_out_summary(fitted.selected, decisions, fitted.model, own, tables, info.labels)
    return replace(info, training={**info.training, **summary})


def _identity(task: Task, resolved: ResolvedConfig, distillation: Distillation | None) -> dict[str, Any]:
    """Return what identifies this training."""
    before = None if task.earlier is None else task.earlier.finished.sha256
    teacher = None if distillation is None else distillation.teacher_sha256
    made_with = versions(resolved.impl)
    return identity(task.given, task.valid, task.unlabelled, task.config, resolved, made_with, before, teacher)


def _check_keepable(resolved: ResolvedConfig) -> None:
    """Refuse to keep the state of a training whose later steps depend on more than its arrays."""
    if resolved.on_gpu:
        raise ConfigError("The state of a training on a GPU cannot be kept; choose device cpu, or leave the state out.")
    if resolved.model.draws_while_training:
        raise ConfigError("The state of a training with dropout cannot be kept; leave one of the two out.")
