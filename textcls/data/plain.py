"""Values of types that Parquet has but CSV and JSON lack: times and decimals as displayed, bytes as text."""

import json
from typing import Final

from textcls.data.rows import Row
from textcls.errors import InputError

NO_FORM: Final = "an unpaired surrogate cannot be written as UTF-8; write JSONL, which escapes it"


def text_of(value: object) -> str:
    """Return `value` as text.

    Raises:
        UnicodeDecodeError: it is bytes that are not UTF-8; `no_text` makes a message for users of it.
    """
    return value.decode() if isinstance(value, bytes) else str(value)


def no_text(row: Row) -> InputError:
    """Return the error for a row that contains bytes that are not UTF-8."""
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
