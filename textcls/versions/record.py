"""What a registry records about itself and its versions: plain data, checked when it is read.

registry.json                        for the registry: its name, and all promotions
1/version.json, 2/version.json, ...  for a version: what was published, when, and what the file says about its training
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from unicodedata import category

from textcls.errors import ConfigError, InputError
from textcls.model.artifact import ModelInfo

FORMAT: Final = 1
# The names by which a model can be served.
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MOST_VERSIONS: Final = 999_999_999
BY_CHARACTERS: Final = 200
NOTE_CHARACTERS: Final = 10_000
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
# The metadata on held-out rows: the first for one label per text, the others for several.
_HELD_OUT: Final = ("held_out_accuracy", "held_out_micro_f1", "held_out_macro_f1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A published model.

    Attributes:
        version: its number, from 1.
        sha256: the SHA-256 of the model file.
        bytes: its size.
        created: when it was published, as ISO 8601 in UTC.
        textcls: version of the package that published it.
        labels: how many labels it knows.
        held_out: what the file says about held-out rows of its training, by the names of its metadata.
        by: who published it, if given.
        note: their note on it, if given.
    """

    version: int
    sha256: str
    bytes: int
    created: str
    textcls: str
    labels: int
    held_out: Mapping[str, float]
    by: str | None = None
    note: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the content of version.json."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, found: Any) -> "Version":
        """Read the content of version.json.

        Raises:
            ValueError: it is not valid.
        """
        fields = _object(found)
        sha256 = _text(fields, "sha256")
        if not _SHA256.fullmatch(sha256):
            raise ValueError("sha256 is not a SHA-256")
        held_out = _object(fields.get("held_out", {}))
        return cls(
            version=_number(fields, "version", MOST_VERSIONS),
            sha256=sha256,
            bytes=_number(fields, "bytes"),
            created=_text(fields, "created"),
            textcls=_text(fields, "textcls"),
            labels=_number(fields, "labels"),
            held_out={name: float(held_out[name]) for name in _HELD_OUT if _is_share(held_out.get(name))},
            by=_optional(fields, "by"),
            note=_optional(fields, "note"),
        )


@dataclass(frozen=True, slots=True)
class Promotion:
    """A version that was promoted.

    Attributes:
        version: its number.
        time: when it was promoted, as ISO 8601 in UTC.
        by: who promoted it, if given.
        rolled_back_from: the version that this one replaced, if this was a roll-back.
    """

    version: int
    time: str
    by: str | None = None
    rolled_back_from: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the promotion as an entry of the history."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, found: Any) -> "Promotion":
        """Read an entry of the history.

        Raises:
            ValueError: it is not a valid entry.
        """
        fields = _object(found)
        back = _number(fields, "rolled_back_from", MOST_VERSIONS) if "rolled_back_from" in fields else None
        return cls(_number(fields, "version", MOST_VERSIONS), _text(fields, "time"), _optional(fields, "by"), back)


@dataclass(frozen=True, slots=True)
class State:
    """What a registry records about itself.

    Attributes:
        name: the name by which its model is served.
        history: all promotions; the last one is in effect.
    """

    name: str
    history: tuple[Promotion, ...] = ()

    @property
    def promoted(self) -> int | None:
        """The version that is promoted; None before the first."""
        return self.history[-1].version if self.history else None

    @property
    def before(self) -> list[int]:
        """The versions that can be rolled back to, latest first: those promoted before and not rolled back since."""
        standing: list[int] = []
        for one in self.history:
            if one.rolled_back_from is None:
                standing.append(one.version)
                continue
            standing.pop()
            while standing and standing[-1] != one.version:  # skipped by the roll-back
                standing.pop()
        return standing[-2::-1]

    def promote(self, version: int, time: str, by: str | None) -> "State":
        """Return the state in which `version` is promoted."""
        if version == self.promoted:
            return self
        return self._with(Promotion(version, time, by))

    def roll_back(self, time: str, by: str | None, usable: Callable[[int], bool] = lambda _: True) -> "State":
        """Return the state in which the latest usable version promoted before is promoted again.

        Raises:
            InputError: there is no such version.
        """
        if self.promoted is None:
            raise InputError("Nothing is promoted yet, so there is nothing to roll back.")
        found = next(filter(usable, self.before), None)
        if found is None:
            can = " that can be used" if self.before else ""
            raise InputError(f"Nothing{can} was promoted before version {self.promoted}, so there is no way back.")
        return self._with(Promotion(found, time, by, self.promoted))

    def _with(self, promotion: Promotion) -> "State":
        return replace(self, history=(*self.history, promotion))

    def to_json(self) -> dict[str, Any]:
        """Return the content of registry.json."""
        history = [one.to_json() for one in self.history]
        return {"registry_format": FORMAT, "name": self.name, "history": history}

    @classmethod
    def from_json(cls, found: Any) -> "State":
        """Read the content of registry.json.

        Raises:
            ValueError: it is not valid, or of a newer format.
        """
        fields = _object(found)
        if _number(fields, "registry_format") > FORMAT:
            raise ValueError("it is of a newer format; upgrade with pip install --upgrade textcls")
        name, history = _text(fields, "name"), fields.get("history")
        if not NAME.fullmatch(name):
            raise ValueError("its name is none")
        if not isinstance(history, list):
            raise ValueError("there is no history")
        state = cls(name, tuple(map(Promotion.from_json, history)))
        state._check_history()
        return state

    def _check_history(self) -> None:
        """Refuse a history in which more was rolled back than was promoted."""
        standing = 0
        for one in self.history:
            standing += 1 if one.rolled_back_from is None else -1
            if standing < 1:
                raise ValueError("its history rolls back what was never promoted")


def is_plain(sign: str) -> bool:
    """Return whether a character is kept as it is in the name of a model file, by which the model may be served.

    Kept are letters, marks and digits of any script, spaces, and some ASCII signs; `@` separates name and version.
    """
    return sign.isalnum() or sign in " ._-+,=" or category(sign).startswith("M")


def checked_name(name: str, how: str) -> str:
    """Return a name by which a model can be served.

    Args:
        name: the name.
        how: what to do if it is not one, as the end of a sentence.

    Raises:
        ConfigError: it is not one.
    """
    if NAME.fullmatch(name):
        return name
    raise ConfigError(f"{name!r} is not a name: names are up to 64 letters, digits, '.', '_' and '-'; {how}.")


def checked_text(text: str | None, option: str, most: int) -> str | None:
    """Return a text that a person gives for a version; None if it is empty.

    Raises:
        ConfigError: it is too long, or cannot be encoded as UTF-8.
    """
    if text is not None and len(text) > most:
        raise ConfigError(f"{option} has {len(text):,} characters; the maximum is {most:,}.")
    try:
        (text or "").encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{option} holds bytes that are not UTF-8.") from error
    return text or None


def held_out_of(info: ModelInfo) -> dict[str, float]:
    """Return what a model says about held-out rows of its training."""
    return {name: float(info.training[name]) for name in _HELD_OUT if _is_share(info.training.get(name))}


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _object(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError("it is not an object")
    return found


def _number(fields: Mapping[str, Any], name: str, most: int = 2**40) -> int:
    value = fields.get(name)
    if type(value) is not int or not 1 <= value <= most:
        raise ValueError(f"{name} is not a number from 1 on")
    return value


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text")
    return value


def _optional(fields: Mapping[str, Any], name: str) -> str | None:
    return _text(fields, name) if fields.get(name) is not None else None
