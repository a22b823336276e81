"""Paths on the command line, and what a command writes: never to its inputs, nor two outputs to one place."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from textcls._util.atomic_write import check_not_an_input, check_output_path
from textcls.cli import option_files
from textcls.data import formats, patterns
from textcls.errors import ConfigError, InputError


class NamedPath(click.Path):
    """A path on this machine. An empty one, as from an unset shell variable, would be read as the working folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or refuse an empty one."""
        if not str(value):
            self.fail("The name is empty; is a variable of the shell not set?", param, ctx)
        return super().convert(value, param, ctx)


class Output(NamedPath):
    """The type of an option that names a file to write, which `check` recognises.

    Attributes:
        is_table: whether it is a table, or any other kind of file that has the name of one.
        instead_of: the parameter whose file it may replace.
    """

    def __init__(self, *, is_table: bool = False, instead_of: str = "") -> None:
        super().__init__(path_type=Path)
        self.is_table, self.instead_of = is_table, instead_of


OUTPUT = Output()
TABLE = Output(is_table=True)
html_option = click.option("--html", type=OUTPUT, metavar="FILE", help="Write a self-contained HTML page.")


def check(context: click.Context) -> None:
    """Refuse an output of the running command if it cannot be written, or would overwrite an input.

    Raises:
        InputError: an output is also an input, or a file from which an option was read.
        ConfigError: two outputs are the same file, a table would be written into a folder that is read, or something
            else has the name of a table.
        SurroundingsError: as in `check_output_path`.
    """
    read, written = dict[str, Any](config=option_files.of(context)), dict[click.Parameter, Path]()
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if isinstance(parameter.type, Output) and value is not None:
            written[parameter] = value
        elif parameter.name != "config":
            read[parameter.name or ""] = value
    for parameter, path in written.items():
        assert isinstance(parameter.type, Output)
        inputs = [one for name, value in read.items() if name != parameter.type.instead_of for one in _paths(value)]
        check_not_an_input(path, inputs)
        if not parameter.type.is_table and formats.by_name(path) is not None:
            raise ConfigError(f"{path} is the name of a table, and none is written there; choose another name.")
        if formats.by_name(path) is not None:
            models = [*_paths(read.get("others_path"))]
            _check_folders(path, [one for one in inputs if one not in models])
        check_output_path(path)
    for parameter, path in written.items():
        for other, same in written.items():
            if other is not parameter and path.resolve() == same.resolve():
                raise ConfigError(f"{parameter.opts[0]} and {other.opts[0]} need files of their own.")


def _check_folders(path: Path, inputs: Sequence[Path]) -> None:
    """Raise a ConfigError if a table at `path` would lie in a folder of tables that is read."""
    if any(folder.is_dir() and path.resolve().is_relative_to(folder.resolve()) for folder in inputs):
        raise ConfigError(f"{path} is in a folder that is read, and would be read with it; name another place.")


def _paths(value: Any) -> Iterator[Path]:
    """Yield the files of this machine that the value of a parameter refers to."""
    if isinstance(value, Path):
        with suppress(InputError):  # A pattern matches nothing, which reading it will say.
            yield from patterns.matching(value)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _paths(one)
