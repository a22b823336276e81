"""Values without a type in CSV and JSON, as Parquet has them: times and decimals as they are shown, bytes as text."""

import json
from typing import Final

from textcls.data.rows import Row
from textcls.errors import InputError

NO_FORM: Final = "an unpaired surrogate cannot be written as UTF-8; write JSONL, which escapes it"


def text_of(value: object) -> str:
    """Return `value` as text.

    Raises:
        UnicodeDecodeError: these are bytes, and no UTF-8; `no_text` says so to a person.
    """
    return value.decode() if isinstance(value, bytes) else str(value)


def no_text(row: Row) -> InputError:
    """Return what is wrong with a row that holds bytes that are not UTF-8."""
    name = next(name for name, value in row.fields.items() if not _is_text(value))
    return InputError(
        f"{row.where}: column {name!r} holds bytes that are not UTF-8, which only Parquet can store; write "
        "Parquet, or leave the column out."
    )


def _is_text(value: object) -> bool:
    try:
        json.dumps(value, default=text_of)
    except UnicodeDecodeError:
        return False
    return True
