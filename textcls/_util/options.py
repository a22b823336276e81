"""Options: their kinds, defaults and help, and the one check of their values.

Python, scikit-learn and the command line accept the same values, and refuse others with the same message. None stands
for the default everywhere.
"""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final

import numpy as np

from textcls.errors import ConfigError

METADATA: Final = "option"


class Kind(ABC):
    """The values that an option may have."""

    __slots__ = ()

    @abstractmethod
    def checked(self, name: str, value: object) -> Any:
        """Return `value` in its plain form.

        Raises:
            ConfigError: the option called `name` may not have this value.
        """

    def parsed(self, text: str) -> object:
        """Return the value that `text` means on a command line; `text` itself if it means none."""
        return text


@dataclass(frozen=True, slots=True)
class Choice(Kind):
    """One of a few names."""

    names: tuple[str, ...]

    def checked(self, name: str, value: object) -> str:
        """Return one of the names."""
        if not isinstance(value, str) or value not in self.names:
            raise ConfigError(f"{name} must be one of {', '.join(self.names)}, not {value!r}.")
        return str(value)


@dataclass(frozen=True, slots=True)
class Integer(Kind):
    """A whole number from `least` to `most`, both included; None means no upper bound."""

    least: int
    most: int | None = None

    def checked(self, name: str, value: object) -> int:
        """Return the number."""
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ConfigError(f"{name} must be a whole number, not {value!r}.")
        number = int(value)
        if number.bit_length() > 64:
            raise ConfigError(f"{name} must be a number of 64 bits.")
        if number < self.least or (self.most is not None and number > self.most):
            bounds = f"at least {self.least}" if self.most is None else f"{self.least} to {self.most}"
            raise ConfigError(f"{name} must be {bounds}, not {number}.")
        return number

    def parsed(self, text: str) -> object:
        """Return the number."""
        try:
            return int(text)
        except ValueError:
            return text


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """A finite number from `least` up to `most`, if that is finite; `above` excludes `least` itself."""

    least: float
    above: bool = False
    most: float = math.inf

    def checked(self, name: str, value: object) -> float:
        """Return the number."""
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ConfigError(f"{name} must be a number, not {value!r}.")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        inside = self.least < number if self.above else self.least <= number
        if not (inside and number < math.inf and number <= self.most):
            bounds = f"{'above' if self.above else 'from'} {self.least:g}"
            bounds += "" if self.most == math.inf else f" to {self.most:g}"
            raise ConfigError(f"{name} must be a finite number {bounds}, not {value}.")
        return number

    def parsed(self, text: str) -> object:
        """Return the number."""
        try:
            return float(text)
        except ValueError:
            return text


@dataclass(frozen=True, slots=True)
class Name(Kind):
    """A name or a path."""

    def checked(self, name: str, value: object) -> str:
        """Return the name or path as a string."""
        given = str(value) if isinstance(value, os.PathLike) else value
        if not isinstance(given, str) or not given.strip():
            raise ConfigError(f"{name} must be a name or a path, not {value!r}.")
        return given


@dataclass(frozen=True, slots=True)
class Flag(Kind):
    """True or False."""

    def checked(self, name: str, value: object) -> bool:
        """Return the value as a `bool`."""
        if not isinstance(value, bool | np.bool_):
            raise ConfigError(f"{name} must be True or False, not {value!r}.")
        return bool(value)


@dataclass(frozen=True, slots=True)
class FileName(Kind):
    """The name of a file to read, or one of a few names; the plain form of `auto` is None."""

    names: tuple[str, ...] = ()

    def checked(self, name: str, value: object) -> Path | str | None:
        """Return a file name as a path, and one of the names as it is."""
        if not isinstance(value, str | os.PathLike) or not os.fspath(value) or "\0" in str(value):
            known = f"{', '.join(self.names)}, or " if self.names else ""
            raise ConfigError(f"{name} must be {known}the name of a file, not {value!r}.")
        if isinstance(value, str) and value in self.names:
            return None if value == "auto" else value
        return Path(os.fsdecode(value))


@dataclass(frozen=True, slots=True)
class Several(Kind):
    """Any number of values of a kind."""

    kind: Kind

    def checked(self, name: str, value: object) -> tuple[Any, ...]:
        """Return the values."""
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ConfigError(f"{name} must be a list, not {value!r}.")
        return tuple(self.kind.checked(name, one) for one in value)

    def parsed(self, text: str) -> object:
        """Return one value: on a command line, the option is repeated."""
        return self.kind.parsed(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option.

    Attributes:
        kind: what values it may have.
        default: the value if the option is not given; None if `unset` says what happens then.
        help: one sentence for users.
        unset: what None means, for users.
        metavar: the placeholder of a value on a command line; None for that of its kind.
    """

    kind: Kind
    default: Any
    help: str
    unset: str | None = None
    metavar: str | None = None

    def checked(self, name: str, value: object) -> Any:
        """Return `value` in its plain form, the default for None.

        Raises:
            ConfigError: the option, called `name` in the message, may not have this value.
        """
        return self.default if value is None else self.kind.checked(name, value)


def option(kind: Kind, default: Any, help: str, *, unset: str | None = None, metavar: str | None = None) -> Any:  # noqa: A002
    """Return a dataclass field that is an option."""
    declared = Option(kind=kind, default=default, help=help, unset=unset, metavar=metavar)
    return field(default=default, metadata={METADATA: declared})


def options_of(settings: type[Any]) -> dict[str, Option]:
    """Return the options among the fields of a dataclass, by name."""
    return {field.name: field.metadata[METADATA] for field in fields(settings) if METADATA in field.metadata}


def check_options(settings: Any) -> None:
    """Convert the options among the fields of a dataclass, which may be frozen, to their plain form.

    Raises:
        ConfigError: an option has a value that it may not have.
    """
    for name, one in options_of(type(settings)).items():
        object.__setattr__(settings, name, one.checked(name, getattr(settings, name)))
