"""Arguments and options that several commands share."""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from textcls.cli.outputs import NamedPath
from textcls.cli.reading import Reading
from textcls.data import (
    BadRows,
    ReadOptions,
    TargetOptions,
)
from textcls.data.formats import FORMATS
from textcls.data.memory import Readable
from textcls.data.rows import Format
from textcls.data.source import STANDARD
from textcls.data.storage import RemoteFile, is_url, without_secrets
from textcls.errors import ConfigError
from textcls.jobs import ENGINES

Command = TypeVar("Command", bound=Callable[..., Any])


def readable(name: str) -> Path | RemoteFile:
    """Return what a name on the command line means: a path on this machine, or the file at a URL."""
    return RemoteFile(name) if is_url(name) else Path(name)


class _Data(NamedPath):
    """A path on this machine, `-`, or a URL."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a path, or for a URL the file there."""
        return readable(value) if isinstance(value, str) and is_url(value) else super().convert(value, param, ctx)


PATH = NamedPath(path_type=Path)
DATA = _Data(path_type=Path, allow_dash=True)
_DELIMITERS: Final = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|", "space": " "}

model_argument = click.argument("model", type=PATH)


class OnceOption(click.Option):
    """An option that may be given once; click would silently take the last of several. `hint` follows the error."""

    once = True  # for who reads it from a file

    def __init__(self, names: Sequence[str], *, hint: str, **how: Any) -> None:
        super().__init__(names, **how, multiple=True)
        self._hint = hint

    def value_from_envvar(self, ctx: click.Context) -> Any:
        """Return the whole value of the variable, which may contain spaces."""
        found = self.resolve_envvar_value(ctx)
        return None if found is None else (found,)

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value, or None without any."""
        values = super().process_value(ctx, value)
        if len(values) > 1:
            raise click.BadParameter(f"it is given {len(values)} times; {self._hint}.", ctx, self)
        return values[0] if values else None


data_argument = click.argument("data", type=DATA, nargs=-1, required=True)
threshold_option = click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help="Abstain when the best score is below this.  [default: the model's own, if it has one]",
)


def _text_column(default: str) -> Callable[[Command], Command]:
    return click.option(
        "--text-column",
        "text_columns",
        multiple=True,
        metavar="NAME",
        help=f"Column of the text; repeat it to join several columns.  [default: {default}]",
    )


def _label_column(default: str) -> Callable[[Command], Command]:
    return click.option(
        "--label-column",
        cls=OnceOption,
        hint="name the columns of the levels of a tree in one: 'group > job'",
        metavar="NAME",
        help=f"Column of the label, or those of the levels of a tree: 'group > job'.  [default: {default}]",
    )


text_column_option, label_column_option = _text_column("as in training"), _label_column("as in training")
# For commands without a training whose columns could be meant.
new_text_column_option = _text_column("text, or a well-known name")
new_label_column_option = _label_column("label, or a well-known name")
exchange_option = click.option(
    "--exchange",
    "groups",
    type=PATH,
    metavar="FILE",
    help="Words to exchange for each other, one group per line, separated by commas: he, she",
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print nothing on standard error but errors.")


def delimiter(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Return the delimiter, which may be given by name."""
    found = None if value is None else _DELIMITERS.get(value.lower(), value)
    if found is not None and (len(found) != 1 or found in '"\r\n'):
        raise click.BadParameter(
            f"{value!r} is not a delimiter: give one character, or one of comma, semicolon, tab, bar and space."
        )
    return found


_READING: Final = (
    click.option(
        "--format", type=click.Choice(FORMATS), help="Format of DATA.  [default: from its name, else its first bytes]"
    ),
    click.option("--encoding", metavar="NAME", help="Encoding of DATA, such as cp1252.  [default: UTF-8]"),
    click.option("--delimiter", metavar="SIGN", callback=delimiter, help="Delimiter of CSV.  [default: detected]"),
    click.option("--no-quotes", is_flag=True, help="In CSV, treat quotes as ordinary characters."),
    click.option(
        "--no-header", is_flag=True, help="The first line of CSV is already a row; columns are named 1, 2, 3."
    ),
    click.option("--sheet", metavar="NAME", help="Sheet of an Excel file.  [default: the first]"),
    click.option(
        "--on-error",
        type=click.Choice(["fail", "skip"]),
        default="fail",
        show_default=True,
        help="What to do with a row that cannot be used: stop, or skip and report it.",
    ),
    quiet_option,
)


def reading_options(command: Command) -> Command:
    """Give `command` the options of reading; it gets one argument, `reading`, for all of them."""

    @wraps(command)
    def wrapped(
        *args: Any,
        format: Format | None,  # noqa: A002
        encoding: str | None,
        delimiter: str | None,
        no_quotes: bool,
        no_header: bool,
        sheet: str | None,
        on_error: str,
        quiet: bool,
        **others: Any,
    ) -> Any:
        options = ReadOptions(
            format=format,
            encoding=encoding,
            delimiter=delimiter,
            quotes=not no_quotes,
            header=not no_header,
            sheet=sheet,
        )
        reading = Reading(options, BadRows(skip=on_error == "skip"), quiet)
        return command(*args, reading=reading, **others)

    decorated: Any = wrapped
    for option in reversed(_READING):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


escape_formulas_option = click.option(
    "--escape-formulas",
    is_flag=True,
    help="Put an apostrophe before CSV and TSV fields that a spreadsheet would run as formulas.",
)


def engine_options(*, also: str = "") -> Callable[[Command], Command]:
    """Return a decorator that gives a command `workers` and `engine_name`: how many do its work, and where.

    Args:
        also: what Ray requires in addition, as the end of a sentence.
    """
    workers = click.option(
        "--workers",
        type=click.IntRange(1),
        help="How many processes work.  [default: 1; with --engine ray the CPUs of the cluster]",
    )
    engine = click.option(
        "--engine",
        "engine_name",
        type=click.Choice(ENGINES),
        default="local",
        show_default=True,
        help=f"Where they run; ray is a cluster, that of RAY_ADDRESS or one on this machine{also}.",
    )
    return lambda command: workers(engine(command))


def separator(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Return the separator, which may be given by name."""
    return None if value is None else _DELIMITERS.get(value.lower(), value)


label_path_option = click.option(
    "--label-path",
    metavar="SEPARATOR",
    help="Read labels as paths of a tree, whose parts this separates, such as ' > '.",
)

_LABELS: Final = (
    click.option(
        "--label-separator",
        metavar="SIGN",
        callback=separator,
        help="Separates the labels in a cell, for example ';'; json if cells hold JSON lists.",
    ),
    click.option(
        "--label-columns",
        multiple=True,
        metavar="PATTERN",
        help="Columns with one label each, for example 'tag_*', holding 0 and 1, false and true, or probabilities.",
    ),
    click.option(
        "--task",
        type=click.Choice(["single", "several"]),
        help="Whether each row has a single label, or any number of them.  [default: detected]",
    ),
    click.option(
        "--merge-rows",
        is_flag=True,
        help="Merge rows with the same text into one with the labels of all: for tables with a row per label.",
    ),
)


_WEIGHTS: Final = click.option(
    "--weight-column", metavar="NAME", help="Column with the weight of each row.  [default: all weigh the same]"
)


def target_options(command: Command) -> Command:
    """Give `command` the options of labels and weights; it gets one argument, `targets`, for all of them."""
    return _with_targets(command, (*_LABELS, _WEIGHTS))


def label_options(command: Command) -> Command:
    """Give `command` the options of labels; it gets one argument, `targets`, for all of them."""
    return _with_targets(command, _LABELS)


def _with_targets(command: Command, options: Sequence[Callable[[Any], Any]]) -> Command:
    @wraps(command)
    def wrapped(
        *args: Any,
        label_separator: str | None,
        label_columns: tuple[str, ...],
        task: str | None,
        merge_rows: bool,
        weight_column: str | None = None,
        **others: Any,
    ) -> Any:
        targets = TargetOptions(
            label_separator=label_separator,
            label_columns=label_columns,
            weight_column=weight_column,
            several=None if task is None else task == "several",
            merge_rows=merge_rows,
        )
        return command(*args, targets=targets, **others)

    decorated: Any = wrapped
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def once(paths: Sequence[Readable]) -> None:
    """Refuse to read standard input twice.

    Raises:
        ConfigError: `-` is among `paths` more than once.
    """
    if list(paths).count(STANDARD) > 1:
        raise ConfigError("Standard input can be read only once; give - a single time.")


class _Folder(click.Path):
    """A folder on this machine, such as a registry."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a path; refuse a URL in one sentence."""
        if isinstance(value, str) and is_url(value):
            self.fail(
                f"{without_secrets(value)} is a URL, and a registry is a folder of this machine or of a volume that it "
                "mounts: stores cannot rename a folder at once; copy it there with their own tools.",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


registry_argument = click.argument("registry", type=_Folder(path_type=Path))
