"""The options of training and of pre-training on a command line, all of them made of `textcls_training.config`."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from textcls.errors import ConfigError
from textcls_training.config.options import Choice, Flag, Integer, Number, Option
from textcls_training.config.settings import OPTIONS

Command = TypeVar("Command", bound=Callable[..., Any])

_METAVARS: Final = {
    "ngrams": "SIZES",
    "teacher": "MODEL",
    "vectors": "FILE",
    "names": "FILE",
    "example": "TEXT",
    "max_memory": "SIZE",
    "class_weight": "none|balanced|FILE",
}


def train_option(name: str) -> Callable[[Command], Command]:
    """Return the decorator that gives a command the option of training called `name`."""
    return _decorator(name, OPTIONS[name])


def _decorator(name: str, option: Option) -> Callable[[Command], Command]:
    long = f"--{name.replace('_', '-')}"
    if isinstance(option.kind, Flag):
        return click.option(
            f"{long}/--no-{long[2:]}", name, default=option.default, show_default=True, help=option.help
        )
    return click.option(
        long,
        name,
        type=_checked(option, name),
        metavar=_METAVARS.get(name),
        default=option.default,
        show_default=option.default is not None,
        help=option.help if option.unset is None else f"{option.help}  [default: {option.unset}]",
    )


def train_options(*left_out: str) -> Callable[[Command], Command]:
    """Return the decorator that gives a command all options of training but `left_out`, in their order."""
    return config_options({name: option for name, option in OPTIONS.items() if name not in left_out})


def config_options(options: Mapping[str, Option]) -> Callable[[Command], Command]:
    """Return the decorator that gives a command `options`, in their order."""

    def decorate(command: Command) -> Command:
        for name, option in reversed([*options.items()]):
            command = _decorator(name, option)(command)
        return command

    return decorate


class _Checked(click.ParamType):  # type: ignore[type-arg]
    """A type of click whose values the option checks; what people see of it is the business of its subclasses."""

    option: Option
    option_name: str

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value in its plain form."""
        try:
            return self.option.checked(
                self.option_name, self.option.kind.parsed(value) if isinstance(value, str) else value
            )
        except ConfigError as error:
            self.fail(str(error), param, ctx)


class _Name(_Checked, click.Choice):  # type: ignore[type-arg]
    pass


class _Whole(_Checked, click.IntRange):
    pass


class _Real(_Checked, click.FloatRange):
    pass


class _Words(_Checked):
    name = "text"


def _checked(option: Option, name: str) -> _Checked:
    """Return click's type of an option: it shows and completes the values that there are."""
    shown: _Checked
    match option.kind:
        case Choice(names):
            shown = _Name(names)
        case Integer(least, most):
            shown = _Whole(least, most)
        case Number(least, above, most):
            shown = _Real(min=least, min_open=above, max=None if most == math.inf else most)
        case _:
            shown = _Words()
    shown.option, shown.option_name = option, name
    return shown
