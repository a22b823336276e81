"""The text of a row: what stands in its text columns, one behind the other, a line each."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from textcls.errors import InputError
from textcls.model.columns import Column, cells_of, pack

# Between the columns of one text. A model that was trained on two columns has read its texts like this.
JOINT: Final = "\n"
# Of the names of columns, as many as a sentence holds.
_SHOWN: Final = 5


def join_columns(fields: Mapping[str, Any], columns: Sequence[str], beside: Sequence[Column] = ()) -> str:
    """Return the text of a row, with its cells if there are any (`textcls.model.columns.pack`).

    Args:
        fields: the row, by the names of its columns; there may be more of them than are asked for.
        columns: those of the text, in the order of the training.
        beside: those beside the text; a row may lack them.

    Raises:
        ValueError: one is missing, or holds no string; the text says which, and what to do.
    """
    texts = []
    for name in columns:
        value = fields.get(name)
        if not isinstance(value, str):
            what = "has no value" if value is None else f"is of type {type(value).__name__}"
            raise ValueError(f"the text in column {name!r} {what}; write a string, which may be empty")
        texts.append(value)
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
        InputError: it lacks a column, or one holds no string.
    """
    lacking = [name for name in columns if name not in row]
    if lacking:
        have = ", ".join([repr(str(name)[:40]) for name in list(row)[:_SHOWN]]) or "nothing"
        more = ", ..." if len(row) > _SHOWN else ""
        raise InputError(
            f"{where} has no {and_(lacking)}: the model reads {and_(columns)} of a row, and this one has {have}{more}."
        )
    try:
        return join_columns(row, columns, beside)
    except ValueError as error:
        raise InputError(f"{where}: {error}.") from error


def and_(names: Sequence[str]) -> str:
    """Return names as a sentence has them: 'subject', 'body' and 'sender'."""
    *others, last = map(repr, names)
    return f"{', '.join(others)} and {last}" if others else last
