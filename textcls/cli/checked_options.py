"""Options of a command that are the fields of a dataclass, which checks them (`textcls._util.options`)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
import click.shell_completion

from textcls._util.options import Choice, FileName, Flag, Integer, Number, Option, Several
from textcls.cli import option_files
from textcls.errors import ConfigError

Command = TypeVar("Command", bound=Callable[..., Any])


def config_options(options: Mapping[str, Option]) -> Callable[[Command], Command]:
    """Return the decorator that gives a command `options`, in their order."""

    def decorate(command: Command) -> Command:
        for name, option in reversed([*options.items()]):
            command = checked_option(name, option)(command)
        return command

    return decorate


def checked_option(name: str, option: Option) -> Callable[[Command], Command]:
    """Return the decorator that gives a command the option called `name`."""
    long = f"--{name.replace('_', '-')}"
    if isinstance(option.kind, Flag):
        # What a settings file switches on can be switched off again.
        flag = long if name.startswith("no_") else f"{long}/--no-{long[2:]}"
        return click.option(
            flag, name, is_flag=True, default=option.default, show_default=option.default, help=option.help
        )
    return click.option(
        long,
        name,
        type=_checked(option, name),
        metavar=option.metavar,
        multiple=isinstance(option.kind, Several),
        default=option.default,
        show_default=option.default not in (None, ()),
        help=option.help if option.unset is None else f"{option.help}  [default: {option.unset}]",
    )


class _Checked(click.ParamType):  # type: ignore[type-arg]
    """A click type whose values the option checks; subclasses define what users see of it."""

    option: Option
    option_name: str

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value in its plain form."""
        try:
            plain = self.option.checked(
                self.option_name, self.option.kind.parsed(value) if isinstance(value, str) else value
            )
        except ConfigError as error:
            self.fail(str(error), param, ctx)
        if ctx is not None and isinstance(value, str) and isinstance(plain, Mapping) and Path(value).is_file():
            option_files.add(ctx, Path(value))
        return plain


class _Name(_Checked, click.Choice):  # type: ignore[type-arg]
    pass


class _Whole(_Checked, click.IntRange):
    pass


class _Real(_Checked, click.FloatRange):
    pass


class _Words(_Checked):
    name = "text"


class _File(_Checked):
    name = "file"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Let the shell complete the names of files."""
        return click.Path().shell_complete(ctx, param, incomplete)


def _checked(option: Option, name: str) -> _Checked:
    """Return the click type of an option: it shows and completes the possible values."""
    shown: _Checked
    match option.kind:
        case Choice(names):
            shown = _Name(names)
        case Integer(least, most):
            shown = _Whole(least, most)
        case Number(least, above, most):
            shown = _Real(min=least, min_open=above, max=None if most == math.inf else most)
        case Several(kind):
            return _checked(replace(option, kind=kind), name)
        case FileName():
            shown = _File()
        case _:
            shown = _Words()
    shown.option, shown.option_name = option, name
    return shown
