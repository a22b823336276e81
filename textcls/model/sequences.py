"""Checks of the sequences that callers of the Python API pass, and of what only looks like one."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Set, Sized
from typing import Any, TypeVar

from textcls.errors import ConfigError, InputError

T = TypeVar("T")
Text_T = TypeVar("Text_T", bound="str | Mapping[str, Any]")


def require_sequence(given: object, what: str) -> None:
    """Refuse iterables whose items are not the intended ones, or have no order.

    Args:
        given: what should be a sequence.
        what: what it should contain, for messages.

    Raises:
        InputError: it is a table, a mapping, a set, bytes or not a sequence at all; the message says what to pass.
    """
    kind = type(given).__name__
    if hasattr(given, "columns"):  # of pandas, Polars, PyArrow and others
        rows = ", or its rows, as in table.to_dict('records')" if what == "texts" else ""
        raise InputError(
            f"A {kind} is a table, not a sequence of {what}: pass one of its columns, as in table['text']{rows}."
        )
    if not isinstance(given, Iterable):
        raise InputError(f"The {what} are not a sequence but {kind}: pass a list of them.")
    if isinstance(given, Mapping):
        raise InputError(
            f"A {kind} is not a sequence of {what}: pass its values as a list, as in list(given.values())."
        )
    if isinstance(given, Set):
        raise InputError(f"A {kind} has no order: pass the {what} as a list.")
    if isinstance(given, bytes | bytearray):
        raise InputError(f"The {what} are {kind}: decode them to strings, as in given.decode('utf-8').")


def row_of(given: Any, columns: Collection[str]) -> Any:
    """Return a row of a pandas table, which is a sequence of its values, as a mapping; anything else unchanged.

    Args:
        given: what a caller passes as a text, or as several.
        columns: the columns of a row.
    """
    if hasattr(given, "to_dict") and all(name in getattr(given, "index", ()) for name in columns):
        return given.to_dict()
    return given


def as_list(given: Iterable[T]) -> list[T]:
    """Return what a caller passes as a list of Python objects, which PyArrow's columns do not contain."""
    return list(given.to_pylist() if hasattr(given, "to_pylist") else given)


def require_texts(given: object, what: str = "texts") -> None:
    """Refuse what `require_sequence` refuses, and a single text.

    Raises:
        InputError: it is one of these.
    """
    if isinstance(given, str):
        raise InputError(f"The {what} are one string: pass a list of them, as in [text].")
    require_sequence(given, what)


def pairs(rows: Iterable[tuple[Text_T, T]]) -> Iterator[tuple[Text_T, T]]:
    """Yield rows, each a text and its expected result.

    Raises:
        InputError: one of them is something else.
    """
    if not isinstance(rows, Iterable):
        raise InputError(f"The rows are not a sequence but {type(rows).__name__}: pass pairs of a text and its label.")
    for i, row in enumerate(rows):
        if isinstance(row, str | Mapping) or not isinstance(row, Sized) or len(row) != 2:
            raise InputError(f"Row {i} is not a pair of a text and what it should get: pass zip(texts, labels).")
        text, target = row
        if not isinstance(text, str | Mapping):
            raise InputError(f"Row {i} has a text that is not a string but {type(text).__name__}.")
        yield text, target


def require_top(top: object) -> None:
    """Refuse an invalid number of strongest items.

    Raises:
        ConfigError: it is not a whole number of at least 1.
    """
    if type(top) is not int or top < 1:
        raise ConfigError(f"top must be a whole number from 1, not {top!r}.")
