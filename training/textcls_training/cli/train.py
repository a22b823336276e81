"""`textcls train`: labelled files in, one ONNX file out.

Importing PyTorch takes seconds, so a wrong path or column would be reported late: files are read and checked first, and
what needs PyTorch is imported after.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource
from rich.console import Console

from textcls._util import optional_dependencies
from textcls._util.atomic_write import check_not_an_input, check_output_path
from textcls.cli import INTERRUPTED
from textcls.cli.columns_beside import column_option, named_columns
from textcls.cli.grouped_help import READING, Group, GroupedCommand
from textcls.cli.options import (
    DATA,
    PATH,
    data_argument,
    new_label_column_option,
    new_text_column_option,
    once,
    reading_options,
    target_options,
)
from textcls.cli.outputs import OUTPUT
from textcls.cli.reading import Reading
from textcls.data import BadRows, TargetOptions, compression
from textcls.data.label_tree import read_tree
from textcls.data.memory import Readable
from textcls.data.patterns import is_pattern
from textcls.data.renaming import Renaming, read_map
from textcls.data.source import STANDARD
from textcls.data.text_store import TextStore
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import stderr_console, stdout_console
from textcls.display.text import percent
from textcls.errors import ConfigError, InputError, TextclsError
from textcls.evaluation.data_quality.findings import find
from textcls.evaluation.data_quality.survey import Survey
from textcls.explain.stability import MOST_MODELS
from textcls.model.artifact import ModelInfo, read_file
from textcls.model.classifier import Classifier
from textcls.model.columns import Column
from textcls.model.model_file.onnx_file import metadata
from textcls.model.text_columns import and_
from textcls_training.cli.beside import BesideModel
from textcls_training.cli.rows import as_before, columns_beside, names_before, read_more, read_rows, read_valid
from textcls_training.config.clock import Clock
from textcls_training.config.memory import spill_of
from textcls_training.config.needs import unmet
from textcls_training.config.settings import ClassWeight, from_options
from textcls_training.config.shared_options import train_options
from textcls_training.data.labelled_texts import ONE_COLUMN, Rows, labelled_texts_of
from textcls_training.data.rationales import Spans
from textcls_training.data.unlabelled import UnlabelledTexts
from textcls_training.state.finished import Facts
from textcls_training.vectors.file import check

if TYPE_CHECKING:
    from textcls_training.pipeline.training_report import TrainReport

optional_dependencies.look_for("onnx", "numba", "scipy", "sklearn")


_GROUPS: Final = (
    Group(
        "Data",
        ("text-column", "label-column", "column", "valid"),
        ("on-error", *READING, "weight-column", "max-tokens", "max-memory"),
    ),
    Group("Output", ("output", "size", "state"), ("from", "rehearsal-rows", "keep-words", "resamples", "example")),
    Group(
        "Labels",
        ("label-separator", "class-weight", "target-precision"),
        ("label-columns", "task", "merge-rows", "target-recall", "merge-labels", "label-map", "label-tree"),
    ),
    Group(
        "Few labels",
        ("unlabelled", "teacher", "vectors"),
        ("label-names", "tune-teacher", "probabilities", "unlabelled-rows", "unlabelled-weight"),
    ),
    Group("Quality and time", ("epochs", "seed"), ("table-rate", "head-rate", "batch-size", "device", "impl")),
    Group(
        "Another model", (), ("mixing", "mixing-rate", "values", "attention", "embedding", "ngrams", "bigrams", "dim")
    ),
    Group("Prototypes and rationales", (), ("head", "keep-texts", "rationale-column", "rationale-weight")),
    Group("What is printed", (), ("json", "verbose", "quiet")),
)


@click.command(cls=GroupedCommand, groups=_GROUPS, epilog="Example: textcls train tickets.csv --output tickets.onnx")
@data_argument
@click.option("--output", "-o", type=OUTPUT, help="ONNX file to write.  [default: DATA with the suffix .onnx]")
@new_text_column_option
@new_label_column_option
@column_option("Columns that do not help on held-out rows are left out.")
@click.option(
    "--valid",
    type=DATA,
    help="Validation rows, which choose epoch and temperature.  [default: each fifth of DATA in turn, or a tenth]",
)
@click.option(
    "--merge-labels", is_flag=True, help="Read labels that differ by case and spaces alone as one, the most frequent."
)
@click.option(
    "--label-map",
    type=DATA,
    metavar="FILE",
    help="File with the columns label and new_label: labels are renamed by it, before anything else.",
)
@click.option(
    "--label-tree",
    type=DATA,
    metavar="FILE",
    help="File with the columns child and parent: each label becomes its path in this tree, as in Food > Bread > Rye.",
)
@click.option(
    "--rationale-column",
    metavar="NAME",
    help=(
        "Column of human rationales, the reasons for the label, as JSON: character spans such as [[3, 7]], "
        'phrases such as ["charged twice"], or flags, one per token, such as [0, 0, 0, 1, 1]; rows may have none. With '
        "several text columns, spans refer to the joined text."
    ),
)
@click.option(
    "--unlabelled",
    multiple=True,
    type=DATA,
    help=(
        "File of unlabelled texts, in the same text columns as DATA. The teacher labels them, and the model also "
        "learns from its answers if that helps on held-out rows. May be repeated."
    ),
)
@click.option(
    "--probabilities",
    metavar="PATTERN",
    help=(
        "Columns of the unlabelled files that hold probabilities from elsewhere, with * for the label: p_* for "
        "p_billing, ... Include the labelled texts if you can: they show how good these answers are."
    ),
)
@click.option(
    "--state",
    type=PATH,
    metavar="FOLDER",
    help="Keep in FOLDER what is needed to resume after a kill: the same command continues, to the same bytes. "
    "Once finished, --from continues from FOLDER.",
)
@click.option(
    "--from",
    "from_state",
    type=PATH,
    metavar="FOLDER",
    help="The --state of a finished training to continue, with DATA as its new rows, which may have new labels. "
    "Options that are not given are those of that training.",
)
@click.option(
    "--keep-words",
    is_flag=True,
    help="Write the words, sequences and pieces of DATA that the model knows, with their counts, beside it, for "
    "textcls lexicon; the model file itself holds no words.",
)
@click.option(
    "--resamples",
    type=click.IntRange(0, MOST_MODELS),
    default=0,
    metavar="N",
    help="Also train N models on the rows weighted at random, into a folder beside the model, of its name and "
    ".resamples, for textcls explain --stability; each takes as long as the model itself.",
)
@train_options()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--verbose", "-v", is_flag=True, help="Print on standard error how long each step took.")
@target_options
@reading_options
def train(
    data: tuple[Readable, ...],
    output: Path | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    columns: tuple[str, ...],
    valid: Readable | None,
    merge_labels: bool,
    label_map: Readable | None,
    label_tree: Readable | None,
    rationale_column: str | None,
    unlabelled: tuple[Readable, ...],
    probabilities: str | None,
    state: Path | None,
    from_state: Path | None,
    keep_words: bool,
    resamples: int,
    as_json: bool,
    verbose: bool,
    targets: TargetOptions,
    reading: Reading,
    **settings: Any,
) -> None:
    """Train a classifier on the labelled files DATA; - reads standard input.

    Without --valid, each fifth of the rows in turn, chosen by a hash of the text, decides when to stop and how to
    calibrate, or a tenth, where that takes long; the saved model is then trained on all rows. Problems with the rows
    are reported first; `textcls check` reports more.
    """
    _check_needs(rationale_column, unlabelled, state, settings["mixing"])
    beside_it = BesideModel(keep_words=keep_words, resamples=resamples)
    beside_it.check(unlabelled, from_state)
    _check_teaching(unlabelled, probabilities, settings["teacher"])
    _check_states(state, from_state)
    if merge_labels and from_state is not None:
        raise ConfigError(
            "--merge-labels looks at the labels of DATA alone, and --from brings more; train on all files together."
        )
    output = output or _default_output(data[0])
    names = settings["label_names"]
    others = [*(file for file in (valid, label_map, label_tree) if file is not None), *unlabelled]
    others += [Path(names)] if names not in (None, "auto", "none") else []
    _check_places(output, beside_it, [*data, *others])
    clock = Clock()
    texts = TextStore(spill_of(settings["max_memory"], output))
    renaming = _renaming(label_map, label_tree, targets, merge=merge_labels)
    if renaming is not None and probabilities:
        reading.say([f"The columns {probabilities} are read under the new names of the labels."])
    wanted = named_columns(columns, data, text_columns, label_column, targets, reading, (rationale_column,))
    before = None if from_state is None else _before(from_state, renaming, valid, reading)
    settings["class_weight"] = _weights(from_options(settings).class_weight, renaming, before)
    rows = read_rows(
        data, text_columns, label_column, rationale_column, reading, targets, texts, renaming, list(wanted), before
    )
    beside = columns_beside(wanted, rows, reading)
    written = targets if before is None else as_before(targets, before)
    valid_rows = read_valid(valid, rows, reading, written, renaming, list(wanted), before) if valid else None
    more_texts = None
    if unlabelled:
        more_texts = read_more(unlabelled, rows, valid_rows, probabilities, settings["unlabelled_rows"], reading)
    reading.bad.empty = 0  # The warnings report empty texts, and where they are.
    reading.say_skipped()
    clock.lap("reading")
    _warn(rows, valid_rows, reading, goes_on=from_state is not None)
    clock.lap("checking")
    # Progress goes to standard error, so that `| head` or a closed pipe never ends a training.
    trained = partial(
        run_training,
        valid=valid_rows,
        targets=written,
        spans=rows.more[rationale_column] if rationale_column is not None else None,
        columns=beside,
        console=stderr_console(quiet=reading.quiet),
    )
    earlier_threshold = _threshold_of(output)
    report = trained(rows, output, settings, unlabelled=more_texts, state=state, from_state=from_state)
    clock.lap("loading", report.seconds)
    _say_lost(earlier_threshold, output, reading)
    beside_it.clear(output)
    if beside_it.wanted and not report.interrupted:
        beside_it.write(rows, output, settings, trained)
        clock.lap("beside it")
    if verbose:
        click.echo(f"Seconds: {clock}.", err=True)
    _show(report, output, clock, more_texts, as_json=as_json)
    if report.interrupted:
        click.echo(
            f"Interrupted: {output} holds what was learned from {report.rows:,} rows; whole epochs: {report.epochs}.",
            err=True,
        )
        raise click.exceptions.Exit(INTERRUPTED)


def _show(
    report: "TrainReport", output: Path, clock: Clock, unlabelled: UnlabelledTexts | None, *, as_json: bool
) -> None:
    if as_json:
        click.echo(json_line({"output": str(output), **report.to_json(), "seconds": clock.seconds}))
    else:
        from textcls_training.cli.summary import cost_line, summarise

        summarise(stdout_console(), report, output)
        if unlabelled is not None and unlabelled.costs.answers:
            click.echo(cost_line(unlabelled, Classifier.load(output)))


def _check_places(output: Path, beside_it: BesideModel, inputs: Sequence[Readable]) -> None:
    """Refuse, before anything is read, outputs that cannot be written, and those that are inputs."""
    if output == STANDARD:
        raise ConfigError("A model is a file: name one with --output, and not standard output.")
    once(inputs)
    check_output_path(output)  # the files next to it are named after it
    for path in (output, *beside_it.outputs(output)):
        check_not_an_input(path, inputs)
        check_output_path(path)


def _before(state: Path, renaming: Renaming | None, valid: Readable | None, reading: Reading) -> Facts:
    """Return the facts about the training to continue, and report what does not continue."""
    before = Facts.of(state)
    old_names = set() if renaming is None else {*renaming.old_names}
    if kept := [name for name in before.labels if name in old_names]:
        which = f"the label {kept[0]!r}" if len(kept) == 1 else f"the labels {and_(kept)}"
        reading.say([f"Earlier rows in {state} keep {which}: --label-map renames labels of DATA alone."])
    if before.valid and valid is None:
        reading.say([f"{state} does not hold the validation rows of its training; give them again with --valid."])
    return before


def _renaming(
    label_map: Readable | None, label_tree: Readable | None, targets: TargetOptions, *, merge: bool
) -> Renaming | None:
    """Return the new names of labels; None if none changes."""
    if not (merge or label_map or label_tree):
        return None
    names = read_map(label_map, targets.label_separator) if label_map else {}
    return Renaming(names, merge=merge, tree=read_tree(label_tree) if label_tree else None)


def _weights(given: ClassWeight, renaming: Renaming | None, before: Facts | None) -> ClassWeight:
    """Return the weights of labels by the names that these have in the model."""
    if isinstance(given, str):
        return given
    weights, names = given if renaming is None else renaming.of_weights(given), names_before(before, renaming)
    if names is None:
        return weights
    found = {names.name(label, BadRows()): weight for label, weight in weights.items()}
    if len(found) < len(weights):
        raise ConfigError("--class-weight weighs a label twice, by two of its names; leave one of them out.")
    return found


def _threshold_of(model: Path) -> float | None:
    """Return the threshold of the model that is about to be replaced; None if there is none, or no model."""
    try:
        return ModelInfo.from_metadata(metadata(read_file(model), model), model).threshold
    except TextclsError:
        return None


def _say_lost(threshold: float | None, output: Path, reading: Reading) -> None:
    """Report that the replaced model had a threshold."""
    if threshold is not None:
        said = f"The model that was in {output} abstained below {percent(threshold)}, and this one never does"
        reading.say([f"{said}: textcls evaluate --target-precision --store chooses a threshold."])


_NEEDED: Final = {
    "rationales": "--rationale-column, the column of the rationales",
    "unlabelled": "--unlabelled, the file of the texts that it is of",
    "state": "--state, the folder that keeps these rows",
    "mixing": "--mixing, the layer that it is of",
}


def _check_needs(rationale_column: str | None, unlabelled: Sequence[Readable], state: Path | None, mixing: str) -> None:
    """Refuse options about something that is not asked for."""
    context = click.get_current_context()
    told = [name for name in context.params if context.get_parameter_source(name) == ParameterSource.COMMANDLINE]
    given = {"rationales": rationale_column, "unlabelled": unlabelled, "state": state, "mixing": mixing != "none"}
    if (found := unmet(told, [name for name, there in given.items() if there])) is not None:
        raise ConfigError(f"--{found[0].replace('_', '-')} needs {_NEEDED[found[1]]}.")


def _check_states(state: Path | None, from_state: Path | None) -> None:
    """Refuse, before anything is read, a state that cannot be written, and a folder that is no state."""
    if from_state is not None and not from_state.is_dir():
        raise InputError(f"{from_state} is not a folder; name the --state of a finished training.")
    if state is not None:
        check_output_path(state / "training.json" if state.is_dir() else state)


def _default_output(data: Readable) -> Path:
    if isinstance(data, Path) and data.suffix.lower() == ".onnx":
        raise InputError(f"{data} is a model; name the labelled texts to train on.")
    # "." has no name to put a suffix on; that it is not a file is reported when it is read.
    if not isinstance(data, Path) or data == STANDARD or not data.name or is_pattern(data):
        return Path("model.onnx")
    return (data if compression.by_name(data) is None else data.with_suffix("")).with_suffix(".onnx")


def _check_teaching(unlabelled: Sequence[Readable], probabilities: str | None, teacher: str | None) -> None:
    """Refuse a teacher, or probabilities, without texts, and both of them together."""
    for name, given in (("--teacher", teacher), ("--probabilities", probabilities)):
        if given is not None and not unlabelled:
            raise ConfigError(f"{name} needs --unlabelled, the file of the texts it applies to.")
    if teacher is not None and probabilities is not None:
        raise ConfigError("--teacher and --probabilities both label the unlabelled texts; use only one of them.")


def _warn(rows: Rows, valid: Rows | None, reading: Reading, *, goes_on: bool) -> None:
    """Report possible problems of rows; if a training continues, labels missing in them are in its earlier rows."""
    if reading.quiet:
        return
    for finding in find(Survey.of(rows), Survey.of(valid) if valid else None):
        if not (goes_on and finding.kind == "one-label"):
            click.echo(f"Warning: {finding}", err=True)


def run_training(
    rows: Rows,
    output: Path,
    settings: dict[str, Any],
    *,
    valid: Rows | None,
    console: Console,
    targets: TargetOptions = ONE_COLUMN,
    spans: Sequence[Spans] | None = None,
    columns: Sequence[Column] = (),
    unlabelled: UnlabelledTexts | None = None,
    state: Path | None = None,
    from_state: Path | None = None,
) -> "TrainReport":
    """Train with the options of the command line, as described in `textcls_training.pipeline.training.train`."""
    source = click.get_current_context().get_parameter_source
    chosen = frozenset(name for name in settings if source(name) is not ParameterSource.DEFAULT)
    config = replace(from_options(settings), given=chosen)
    if isinstance(config.vectors, Path):
        check(config.vectors)

    from textcls_training.fit.interrupt import stopped_by_ctrl_c
    from textcls_training.fit.progress import progress_on
    from textcls_training.pipeline import training as pipeline

    given = labelled_texts_of(rows, targets, spans, columns)
    validation = labelled_texts_of(valid, targets, columns=columns) if valid else None
    with stopped_by_ctrl_c(quiet=console.quiet) as stop, progress_on(console) as callback:
        return pipeline.train(
            given,
            output,
            config,
            valid=validation,
            unlabelled=unlabelled,
            callback=callback,
            stop=stop,
            state=state,
            from_state=from_state,
        )
