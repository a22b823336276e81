"""`textcls label`: a page on this machine to label texts, while a model learns in the background."""

import threading
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import click

from textcls._util import optional_dependencies
from textcls.cli.options import PATH, new_label_column_option, new_text_column_option, reading_options
from textcls.cli.outputs import TABLE
from textcls.cli.reading import Reading
from textcls.data import compression, formats
from textcls.data.given_labels import present
from textcls.data.labelled import LabelledRow
from textcls.data.targets import Target, TargetOptions
from textcls.display.html import label_page
from textcls.display.text import in_a_shell, plural
from textcls.errors import ConfigError, InputError
from textcls.evaluation.data_quality.label_audit import SuspectRow
from textcls.labelling.answers import OWN_FIELDS, Annotation, AnnotationsFile, Chosen
from textcls.labelling.given import GivenAnswers
from textcls.labelling.http import Server
from textcls.labelling.session import Session
from textcls.labelling.suggest import Pool
from textcls.model.label_paths import label_columns
from textcls.model.labels import labels_problem
from textcls.model.text_columns import and_

AUDIT: Final = "textcls_training.audit.rows:audit_rows"
LEARNER: Final = "textcls_training.labelling.process:LearningProcess"
DEFAULT_PORT: Final = 8765
# The number of texts to begin with, and of candidates for them, so that the page appears at once.
START, START_CANDIDATES = 50, 2000


def _names(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    found = tuple(name.strip() for name in (value or "").split(",") if name.strip())
    if found and (wrong := labels_problem(found)):
        raise click.BadParameter(f"{wrong}; write them as billing,returns,shipping.")
    return found


@click.command(epilog="Example: textcls label tickets.csv --labels billing,returns,shipping --output labels.jsonl")
@click.argument("data", type=PATH)
@click.option(
    "--labels",
    callback=_names,
    metavar="NAMES",
    help="The labels, separated by commas; the page can add others.  [default: those of --output]",
)
@click.option(
    "-o",
    "--output",
    type=TABLE,
    metavar="FILE",
    help="JSON lines of answers, which textcls train reads; a file that is there is continued.  [default: DATA's "
    "name with .labels.jsonl]",
)
@click.option("--several", is_flag=True, help="A text may have several labels, or none.")
@click.option(
    "--suspects",
    is_flag=True,
    help="DATA has labels: show the rows whose label is probably wrong (textcls check --labels), to accept or correct.",
)
@click.option(
    "--label-separator",
    metavar="SIGN",
    help="With --suspects: what stands between several labels of a cell of DATA, or json for JSON lists.",
)
@click.option(
    "--label-columns",
    metavar="PATTERN",
    help="Columns of DATA with somebody's probabilities of the labels, such as p_* of textcls annotate: they are "
    "proposed, and texts in doubt are asked for first.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0 for any.")
@new_text_column_option
@new_label_column_option
@reading_options
def label(
    data: Path,
    labels: tuple[str, ...],
    output: Path | None,
    several: bool,
    suspects: bool,
    label_separator: str | None,
    label_columns: str | None,
    port: int,
    text_columns: tuple[str, ...],
    label_column: str | None,
    reading: Reading,
) -> None:
    """Label the texts of DATA on a page in your browser, while a model learns alongside.

    The model proposes a label with its reasons, learns again after every few answers, and asks next for the text that
    teaches it most. Every answer is on disk before the page goes on; Ctrl-C stops, and the same command continues.
    The page is for this machine alone, and for as many people at once as have its address.
    """
    for name, value in (("--label-column", label_column), ("--label-separator", label_separator)):
        if value is not None and not suspects:
            raise ConfigError(f"{name} needs --suspects: without it, labels in DATA are not looked at.")
    if label_columns is not None and suspects:
        raise ConfigError("--label-columns brings answers to texts without labels, and --suspects looks at labels.")
    output = _answers_path(data, output)
    learner_of = None if suspects else optional_dependencies.load(LEARNER, "textcls label")
    if suspects:
        targets = TargetOptions(label_separator=label_separator, several=True if several else None)
        work = _of_rows(data, text_columns, label_column, targets, reading)
    elif label_columns is not None:
        work = _of_answers(data, text_columns, label_columns, reading, several=several)
    else:
        work = _Work(_texts(data, text_columns, reading), several)
    reading.say_skipped()
    if not any(text.strip() for text in work.texts):
        raise InputError(f"{data} has no text to label: {plural(len(work.texts), 'row')}, all without one.")
    if suspects:
        if output.exists():
            with closing(AnnotationsFile(output, several=work.several)) as file:
                _check_same(file, work.as_they_came)  # before the rows are looked at, which takes its time
        work = work._replace(suspects=_suspects(work.rows, reading))
    _label(work, labels, output, learner_of, port)


class _Work(NamedTuple):
    """What is to be labelled.

    Attributes:
        texts: all texts.
        several: whether a text may have several labels.
        rows: the rows of texts with labels, some of which are doubtful.
        as_they_came: these rows as answers.
        suspects: the doubtful ones.
        given: answers that come with the texts.
    """

    texts: Sequence[str]
    several: bool
    rows: Sequence[LabelledRow[Target]] = ()
    as_they_came: Sequence[Annotation] = ()
    suspects: Sequence[SuspectRow] = ()
    given: GivenAnswers | None = None


def _answers_path(data: Path, output: Path | None) -> Path:
    """Return the file for the answers; a ConfigError says which name it cannot have."""
    bare = data if compression.by_name(data) is None else data.with_suffix("")
    if output is None and not bare.name:
        raise ConfigError(f"{data} has no name that answers could be named after: name a file with --output.")
    output = output or bare.with_suffix(".labels.jsonl")
    if formats.by_name(output) not in (None, "jsonl") or compression.by_name(output) is not None:
        plain = output if compression.by_name(output) is None else output.with_suffix("")
        raise ConfigError(f"Answers are written as JSON lines: name the --output {plain.with_suffix('.jsonl')}.")
    return output


def _of_rows(
    path: Path, text_columns: Sequence[str], label_column: str | None, targets: TargetOptions, reading: Reading
) -> _Work:
    with reading.table_of_targets([path], text_columns, label_column, targets) as table:
        rows = list(table.rows)
        levels = {name for row in rows for name in label_columns(table.label_column, row.row.fields)}
        read = {*table.text_columns, *levels}
        taken = read | {*OWN_FIELDS}
        lost = sorted({name for row in rows for name in row.row.fields} & (taken - read))
        # In a file that was made here the columns have their usual meaning.
        if lost and not all(row.row.fields.get("chosen") in get_args(Chosen) for row in rows):
            what = "a column of its own" if len(lost) == 1 else "columns of its own"
            kept = f"an answer has {what} called {and_(lost)}, so what the file says there is not kept"
            reading.say([f"{path}: {kept}; rename it there to keep it."])
    came = [_as_it_came(i, row, taken) for i, row in enumerate(rows)]
    return _Work([row.text for row in rows], not isinstance(rows[0].label, str), rows, came)


def _of_answers(path: Path, columns: Sequence[str], pattern: str, reading: Reading, *, several: bool) -> _Work:
    with reading.table_of_targets([path], columns, None, TargetOptions(label_columns=(pattern,))) as table:
        rows = list(table.rows)
    answers = [{} if isinstance(row.label, str) else row.label for row in rows]
    return _Work([row.text for row in rows], several, given=GivenAnswers.of(answers, several=several))


def _label(work: _Work, labels: Sequence[str], output: Path, learner_of: Any, port: int) -> None:
    """Show the page until it is ended, with every answer in `output`."""
    with closing(AnnotationsFile(output, several=work.several)) as file:
        if work.as_they_came:
            _begin(file, work.as_they_came)
        learner = None if learner_of is None else learner_of(work.texts, several=work.several)
        start: Sequence[int] = ()
        if not work.suspects and work.given is None:
            start = Pool.of(work.texts, START_CANDIDATES).choose(START, [one.text for one in file.answers])
        session = Session(work.texts, labels, file, learner, start=start, suspects=work.suspects, given=work.given)
        if len(session.labels) < 2 and not work.several:
            raise ConfigError("Name at least two labels, for example --labels billing,returns,shipping.")
        _serve(session, port)
        if file.answers:
            then = f"textcls train {in_a_shell(output)} --output model.onnx"
            click.echo(f"{plural(len(file.answers), 'row')} in {output}. Next: {then}")


def _begin(file: AnnotationsFile, given: Sequence[Annotation]) -> None:
    """Write the rows of DATA with their labels, or continue with those in the file.

    Raises:
        InputError: as in `_check_same`.
    """
    if not file.answers:
        file.exchange(given)
    _check_same(file, given)


def _check_same(file: AnnotationsFile, given: Sequence[Annotation]) -> None:
    """Refuse a file that contains the answers to other rows.

    Raises:
        InputError: it does.
    """
    if not file.answers:
        return
    if len(file.answers) != len(given) or not all(map(_is_of, file.answers, given)):
        raise InputError(
            f"{file.path} was made of other rows than DATA has now: name another file with --output, or go on from it "
            f"with textcls label {in_a_shell(file.path)} --suspects."
        )


def _is_of(answer: Annotation, given: Annotation) -> bool:
    """Return whether an answer is to a row of DATA; the label of a row that was reviewed may differ."""
    same = (answer.text, answer.row, answer.beside.keys()) == (given.text, given.row, given.beside.keys())
    return same and (answer.chosen != "given" or answer.labels == given.labels)


def _serve(session: Session, port: int) -> None:
    server = Server(session, label_page.files(), label_page.POLICY, port)
    learning = threading.Thread(target=session.learn_forever, name="learning", daemon=True)
    learning.start()
    click.echo(f"Label on {server.url} (Ctrl-C ends)")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        session.close()
        learning.join()


def _texts(path: Path, columns: tuple[str, ...], reading: Reading) -> list[str]:
    with reading.texts(path, columns) as rows:
        found = [text for text, _ in rows]
    if not found:
        raise InputError(f"{path} has no rows.")
    return found


def _labels(row: LabelledRow[Target]) -> tuple[str, ...]:
    """Return the label of a row, or those that it may have."""
    return (row.label,) if isinstance(row.label, str) else tuple(sorted(present(row.label)))


def _as_it_came(number: int, row: LabelledRow[Target], taken: Collection[str]) -> Annotation:
    """Return a row with its original label, and the values of its other columns."""
    others = {name: value for name, value in row.row.fields.items() if name not in taken}
    return Annotation(row.text, _labels(row), number, "given", beside=others)


def _suspects(rows: Sequence[LabelledRow[Target]], reading: Reading) -> Sequence[SuspectRow]:
    audit_rows: Any = optional_dependencies.load(AUDIT, "textcls label --suspects")
    found: Sequence[SuspectRow] = audit_rows(rows, quiet=reading.quiet).suspects
    if not found:
        raise InputError("No label is doubted by models that have not seen the row: there is nothing to look at.")
    return found
