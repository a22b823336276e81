"""What callers of the Python API hand over as a sequence, and what only looks like one."""

from collections.abc import Mapping, Set

from textcls.errors import InputError


def require_sequence(given: object, what: str) -> None:
    """Refuse what Python iterates over but whose items are not those that are meant, or have no order.

    Args:
        given: what should be a sequence.
        what: it should hold, for messages.

    Raises:
        InputError: it is a table, a mapping, a set or bytes; the text says what to pass.
    """
    kind = type(given).__name__
    if hasattr(given, "columns"):  # of pandas, Polars, PyArrow and others
        raise InputError(
            f"A {kind} is a table, not a sequence of {what}: pass one of its columns, as in table['text']."
        )
    if isinstance(given, Mapping):
        raise InputError(
            f"A {kind} is not a sequence of {what}: pass its values as a list, as in list(given.values())."
        )
    if isinstance(given, Set):
        raise InputError(f"A {kind} has no order: pass the {what} as a list.")
    if isinstance(given, bytes | bytearray):
        raise InputError(f"The {what} are {kind}: decode them to strings, as in given.decode('utf-8').")
