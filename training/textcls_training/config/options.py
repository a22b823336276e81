"""What an option of training is: its kind, its default, its help, and the one check of its values.

Python, scikit-learn and the command line accept the same values, and refuse the others in the same sentence. None is
the default everywhere.
"""

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from textcls.errors import ConfigError
from textcls.model.artifact import example_problem
from textcls.model.features import FeatureConfig

METADATA: Final = "option"
_UNITS: Final = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_SIZE: Final = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})?", re.IGNORECASE | re.ASCII)


class Kind(Protocol):
    """What values an option may have."""

    def checked(self, name: str, value: object) -> Any:
        """Return `value` in its plain form.

        Raises:
            ConfigError: the option called `name` may not have it.
        """

    def parsed(self, text: str) -> object:
        """Return the value that `text` stands for on a command line; `text` itself if it stands for none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few names."""

    names: tuple[str, ...]

    def checked(self, name: str, value: object) -> str:
        """Return one of the names."""
        if not isinstance(value, str) or value not in self.names:
            raise ConfigError(f"{name} must be one of {', '.join(self.names)}, not {value!r}.")
        return str(value)

    def parsed(self, text: str) -> object:
        """Return the name."""
        return text


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number from `least` to `most`, which both count; None is no bound."""

    least: int
    most: int | None = None

    def checked(self, name: str, value: object) -> int:
        """Return the number."""
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ConfigError(f"{name} must be a whole number, not {value!r}.")
        number = int(value)
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
class Number:
    """A finite number from `least`, up to `most` if that is one; `above` says that `least` itself is none of them."""

    least: float
    above: bool = False
    most: float = math.inf

    def checked(self, name: str, value: object) -> float:
        """Return the number."""
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ConfigError(f"{name} must be a number, not {value!r}.")
        number = float(value)
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
class Name:
    """A name or a path."""

    def checked(self, name: str, value: object) -> str:
        """Return it."""
        given = str(value) if isinstance(value, os.PathLike) else value
        if not isinstance(given, str) or not given.strip():
            raise ConfigError(f"{name} must be a name or a path, not {value!r}.")
        return given

    def parsed(self, text: str) -> object:
        """Return the name."""
        return text


@dataclass(frozen=True, slots=True)
class ExampleText:
    """A text that is kept in the model file."""

    def checked(self, name: str, value: object) -> str:
        """Return it."""
        if not isinstance(value, str):
            raise ConfigError(f"{name} must be a text, not {value!r}.")
        if problem := example_problem(value):
            raise ConfigError(f"{name} {problem}.")
        return value

    def parsed(self, text: str) -> object:
        """Return the text."""
        return text


@dataclass(frozen=True, slots=True)
class Flag:
    """Yes or no."""

    def checked(self, name: str, value: object) -> bool:
        """Return it."""
        if not isinstance(value, bool | np.bool_):
            raise ConfigError(f"{name} must be True or False, not {value!r}.")
        return bool(value)

    def parsed(self, text: str) -> object:
        """Return `text`: a command line has one option for yes and one for no."""
        return text


@dataclass(frozen=True, slots=True)
class NgramSizes:
    """Sizes of character n-grams: `auto` (None in its plain form), `none` (empty), `3,5`, or several integers."""

    def checked(self, name: str, value: object) -> tuple[int, ...] | None:
        """Return the sizes, empty for none; None to choose them by script."""
        if isinstance(value, str) and value in ("auto", "none"):
            return None if value == "auto" else ()
        given = value.split(",") if isinstance(value, str) else value
        try:
            sizes = tuple(_whole(size) for size in given)  # type: ignore[attr-defined]
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"{name} must be auto, none or sizes with commas between them, such as 3,5, not {value!r}."
            ) from error
        return FeatureConfig(ngram_sizes=sizes).ngram_sizes

    def parsed(self, text: str) -> object:
        """Return `text`, which is checked as it is."""
        return text


@dataclass(frozen=True, slots=True)
class FileName:
    """The name of a file that is read, or one of a few names; `auto` is None in its plain form."""

    names: tuple[str, ...] = ()

    def checked(self, name: str, value: object) -> Path | str | None:
        """Return it as a path; one of the names as it is."""
        if not isinstance(value, str | os.PathLike) or not os.fspath(value):
            known = f"{', '.join(self.names)}, or " if self.names else ""
            raise ConfigError(f"{name} must be {known}the name of a file, not {value!r}.")
        if isinstance(value, str) and value in self.names:
            return None if value == "auto" else value
        return Path(os.fsdecode(value))

    def parsed(self, text: str) -> object:
        """Return the name."""
        return text


@dataclass(frozen=True, slots=True)
class Bytes:
    """A number of bytes from `least` on: a whole number, or one with a unit, such as 500MB, 1.5GB or 2GiB."""

    least: int

    def checked(self, name: str, value: object) -> int:
        """Return the number of bytes."""
        number = self._number(value)
        if number is None or not self.least <= number < math.inf:
            raise ConfigError(
                f"{name} must be a size of at least {self.least / 10**9:g} GB, such as 2GB, not {value!r}."
            )
        return int(number)

    @staticmethod
    def _number(value: object) -> float | None:
        if isinstance(value, Integral) and not isinstance(value, bool):
            return int(value)
        found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        return None if found is None else float(found[1]) * _UNITS[(found[2] or "B").upper()]

    def parsed(self, text: str) -> object:
        """Return `text`, which is checked as it is."""
        return text


@dataclass(frozen=True, slots=True)
class ClassWeights:
    """`none`, `balanced`, or the weight of each label: a mapping, or the name of a JSON file that holds one."""

    def checked(self, name: str, value: object) -> str | dict[str, float]:
        """Return one of the names, or the weights; a label that has none counts 1."""
        if isinstance(value, str) and value in ("none", "balanced"):
            return str(value)
        if isinstance(value, str | os.PathLike) and Path(value).is_file():
            return self._weights(os.fspath(value), _json_in(Path(value)))
        if isinstance(value, Mapping):
            return self._weights(name, value)
        raise ConfigError(
            f"{name} must be none, balanced, or the weight of each label in a mapping or a JSON file, not {value!r}."
        )

    @staticmethod
    def _weights(place: str, value: object) -> dict[str, float]:
        if not isinstance(value, Mapping) or not value:
            raise ConfigError(f'{place} must hold labels with their weights, such as {{"billing": 2}}.')
        weights = {}
        for label, weight in value.items():
            if not isinstance(label, str):
                raise ConfigError(f"{place}: a label is a string, not {label!r}.")
            weights[label] = Number(0).checked(f"{place}: the weight of {label!r}", weight)
        return weights

    def parsed(self, text: str) -> object:
        """Return the name."""
        return text


def _json_in(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read as JSON ({error}).") from error


def _whole(size: object) -> int:
    """Return a size given as a whole number, or as one in writing."""
    if isinstance(size, str):
        return int(size)
    if isinstance(size, bool) or not isinstance(size, Integral):
        raise TypeError(f"{size!r} is no whole number")
    return int(size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of training.

    Attributes:
        kind: what values it may have.
        default: the value that it has if it is not given; None where `unset` says what happens then.
        help: one sentence for people.
        unset: what None means, for people.
    """

    kind: Kind
    default: Any
    help: str
    unset: str | None = None

    def checked(self, name: str, value: object) -> Any:
        """Return `value` in its plain form, the default for None.

        Raises:
            ConfigError: the option, called `name` in the sentence, may not have this value.
        """
        return self.default if value is None else self.kind.checked(name, value)


def option(kind: Kind, default: Any, help: str, *, unset: str | None = None) -> Any:  # noqa: A002
    """Return a field of a dataclass that is an option."""
    return field(default=default, metadata={METADATA: Option(kind=kind, default=default, help=help, unset=unset)})
