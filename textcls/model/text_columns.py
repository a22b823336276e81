"""The text of a row: its text columns one after the other, each on its own line."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from textcls.errors import InputError
from textcls.model.columns import Column, cells_of, pack
from textcls.model.labels import is_missing

# What joins the columns of a text, as in training on several columns.
JOINT: Final = "\n"
# Most names of columns in a message.
_SHOWN: Final = 5
# How many other fields of a row are compared with the names of missing columns, how much of each, and the similarity
# from which one counts as a misspelling.
_LOOKED_AT, _LONGEST, _ALIKE = 20, 40, 0.8


def join_columns(fields: Mapping[str, Any], columns: Sequence[str], beside: Sequence[Column] = ()) -> str:
    """Return the text of a row, with its cells if there are any (`textcls.model.columns.pack`).

    None and NaN are empty, as a cell of CSV would be.

    Args:
        fields: the row, by the names of its columns; other columns are ignored.
        columns: the columns of the text, in the order of training.
        beside: the columns beside the text, which a row may lack.

    Raises:
        ValueError: one is missing or not a string; the message says which, and what to do.
    """
    texts = []
    for name in columns:
        value = fields.get(name)
        if not isinstance(value, str) and (name not in fields or not is_missing(value)):
            if isinstance(value, Mapping):
                raise ValueError(
                    f"the text in column {name!r} is an object; write what it holds in columns of their own"
                )
            what = "has no value" if value is None else f"is of type {type(value).__name__}"
            raise ValueError(f"the text in column {name!r} {what}; write a string, which may be empty")
        texts.append(value if isinstance(value, str) else "")
    text = JOINT.join(texts)
    return pack(cells_of(fields, beside), text) if beside else text


def text_of_row(row: Mapping[str, Any], columns: Sequence[str], where: str, beside: Sequence[Column] = ()) -> str:
    """Return the text of a row passed by a Python caller or a request, with its cells if there are any.

    Args:
        row: as for `join_columns`.
        columns: as for `join_columns`.
        where: the name of the row in messages, such as `inputs[0]`.
        beside: columns beside the text, which the row may lack.

    Raises:
        InputError: it lacks a column of the text, one is not a string, or the name of one seems to be misspelt.
    """
    lacking = [name for name in columns if name not in row]
    if lacking:
        have = ", ".join([repr(str(name)[:40]) for name in list(row)[:_SHOWN]]) or "nothing"
        more = ", ..." if len(row) > _SHOWN else ""
        raise InputError(
            f"{where} has no {and_(lacking)}: the model reads {and_(columns)} of a row, and this one has {have}{more}."
        )
    absent = [column.name for column in beside if column.name not in row]
    if absent and (pair := misspelt(row, [*columns, *(column.name for column in beside)], absent)):
        other, meant = pair
        raise InputError(
            f"{where} has {other!r}, and the model reads {meant!r}: rename it, or leave {meant!r} empty (None, in JSON "
            "null) if it is another one."
        )
    try:
        return join_columns(row, columns, beside)
    except ValueError as error:
        raise InputError(f"{where}: {error}.") from error


def misspelt(there: Iterable[str], names: Sequence[str], absent: Sequence[str]) -> tuple[str, str] | None:
    """Return an existing column and the absent column with a similar name that it probably stands for, if any.

    Args:
        there: the columns of a row or file.
        names: the columns that the model reads.
        absent: those of them that do not exist.
    """
    meant = {name.casefold(): name for name in absent}
    for other in [name for name in list(there)[:_LOOKED_AT] if isinstance(name, str) and name not in names]:
        if alike := get_close_matches(other[:_LONGEST].casefold(), meant, 1, _ALIKE):
            return other, meant[alike[0]]
    return None


def misspelt_in_file(
    file: str, there: Iterable[str], names: Sequence[str], absent: Sequence[str], who: str = "the model"
) -> str | None:
    """Return what is wrong with a file with these columns, some of which `who` reads; None if nothing is."""
    if (pair := misspelt(there, names, absent)) is None:
        return None
    other, meant = pair
    return (
        f"{file} has the column {other!r}, and {who} reads {meant!r}: rename it, or add an empty column {meant!r} if "
        "it is another one."
    )


def named_columns(columns: Sequence[str], beside: Sequence[Column]) -> tuple[str, ...]:
    """Return the columns that callers have to name; empty if they pass only texts, whose column does not matter."""
    names = (*columns, *(column.name for column in beside))
    return names if len(names) > 1 else ()


def and_(names: Sequence[str]) -> str:
    """Return names as in a sentence: 'subject', 'body' and 'sender'."""
    *others, last = map(repr, names)
    return f"{', '.join(others)} and {last}" if others else last
