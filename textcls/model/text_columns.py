"""The text of a row: what stands in its text columns, one behind the other, a line each."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from textcls.errors import InputError
from textcls.model.columns import Column, cells_of, pack
from textcls.model.labels import is_missing

# Between the columns of one text. A model that was trained on two columns has read its texts like this.
JOINT: Final = "\n"
# Of the names of columns, as many as a sentence holds.
_SHOWN: Final = 5
# Of other fields of a row so many are held against the names of columns that it lacks, so much of each, and from so
# much likeness on they are taken for a mistake.
_LOOKED_AT, _LONGEST, _ALIKE = 20, 40, 0.8


def join_columns(fields: Mapping[str, Any], columns: Sequence[str], beside: Sequence[Column] = ()) -> str:
    """Return the text of a row, with its cells if there are any (`textcls.model.columns.pack`).

    None and NaN are empty, as a cell of CSV would be.

    Args:
        fields: the row, by the names of its columns; there may be more of them than are asked for.
        columns: those of the text, in the order of the training.
        beside: those beside the text; a row may lack them.

    Raises:
        ValueError: one is missing, or holds another thing than a string; the text says which, and what to do.
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
    """Return the text of a row that Python, or a request, has handed over, with its cells if there are any.

    Args:
        row: as `join_columns` takes it.
        columns: likewise.
        where: what the row is called in messages, such as `inputs[0]`.
        beside: columns beside the text, which the row may lack.

    Raises:
        InputError: it lacks a column of the text, or one holds no string; or it has one that seems to be misspelt.
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
    """Return one of the columns that are there, and what a model reads, if it is absent, and is called nearly so.

    Args:
        there: the columns of a row, or a file.
        names: the columns that the model reads.
        absent: those of them that are not there.
    """
    meant = {name.casefold(): name for name in absent}
    for other in [name for name in list(there)[:_LOOKED_AT] if isinstance(name, str) and name not in names]:
        if alike := get_close_matches(other[:_LONGEST].casefold(), meant, 1, _ALIKE):
            return other, meant[alike[0]]
    return None


def misspelt_in_file(
    file: str, there: Iterable[str], names: Sequence[str], absent: Sequence[str], who: str = "the model"
) -> str | None:
    """Return what is wrong with a file of such columns, of which `who` reads some; None if nothing is."""
    if (pair := misspelt(there, names, absent)) is None:
        return None
    other, meant = pair
    return (
        f"{file} has the column {other!r}, and {who} reads {meant!r}: rename it, or add an empty column {meant!r} if "
        "it is another one."
    )


def named_columns(columns: Sequence[str], beside: Sequence[Column]) -> tuple[str, ...]:
    """Return the columns that who asks names; none where texts are asked about alone, whose column does not count."""
    names = (*columns, *(column.name for column in beside))
    return names if len(names) > 1 else ()


def and_(names: Sequence[str]) -> str:
    """Return names as a sentence has them: 'subject', 'body' and 'sender'."""
    *others, last = map(repr, names)
    return f"{', '.join(others)} and {last}" if others else last
