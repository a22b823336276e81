"""Kinds of options that only training has."""

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Final

from textcls._util.options import Kind, Number
from textcls.errors import ConfigError
from textcls.model.artifact import example_problem
from textcls.model.features import FeatureConfig

_UNITS: Final = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_SIZE: Final = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class ExampleText(Kind):
    """A text that is kept in the model file."""

    def checked(self, name: str, value: object) -> str:
        """Return it."""
        if not isinstance(value, str):
            raise ConfigError(f"{name} must be a text, not {value!r}.")
        if problem := example_problem(value):
            raise ConfigError(f"{name} {problem}.")
        return value


@dataclass(frozen=True, slots=True)
class NgramSizes(Kind):
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


@dataclass(frozen=True, slots=True)
class Bytes(Kind):
    """A number of bytes, at least `least`: a whole number, or one with a unit, such as 500MB, 1.5GB or 2GiB."""

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


@dataclass(frozen=True, slots=True)
class ClassWeights(Kind):
    """`auto`, `none`, `balanced`, or the weight of each label: a mapping, or the name of a JSON file with one."""

    def checked(self, name: str, value: object) -> str | dict[str, float]:
        """Return one of the names, or the weights; a label without one has weight 1."""
        if isinstance(value, str) and value in ("auto", "none", "balanced"):
            return str(value)
        if isinstance(value, str | os.PathLike) and Path(value).is_file():
            return self._weights(os.fspath(value), _json_in(Path(value)))
        if isinstance(value, Mapping):
            return self._weights(name, value)
        raise ConfigError(
            f"{name} must be auto, none, balanced, or the weight of each label in a mapping or a JSON file, "
            f"not {value!r}."
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


def _json_in(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read as JSON ({error}).") from error


def _whole(size: object) -> int:
    """Return a size given as a whole number or as its text."""
    if isinstance(size, str):
        return int(size)
    if isinstance(size, bool) or not isinstance(size, Integral):
        raise TypeError(f"{size!r} is not a whole number")
    return int(size)
