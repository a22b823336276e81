"""The wire format of Protocol Buffers, as far as needed to change a saved model: a message is a list of fields.

A field is a varint `number << 3 | kind` and its content: a varint (kind 0), 8 bytes (1), a length and that many bytes
(2), or 4 bytes (5); the obsolete groups (3, 4) do not occur in ONNX files. Source: protobuf.dev, "Encoding". The ONNX
library would do the same, but add 17 MB to the base package.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_WIDTH: Final = {_EIGHT: 8, _FOUR: 4}
# 64 bits, at seven per byte.
_VARINT_BYTES: Final = 10


class Field(NamedTuple):
    """A field of a message: its number, all its bytes, and its content, with which they end."""

    number: int
    whole: memoryview
    content: memoryview


def fields(message: memoryview) -> Iterator[Field]:
    """Yield the fields of a message in order, which are contiguous; the content of a varint is its bytes.

    Raises:
        ValueError: it is not a message.
    """
    place = 0
    while place < len(message):
        start = place
        tag, place = _varint(message, place)
        kind = tag & 7
        if kind == _VARINT:
            end = _varint(message, place)[1]
        elif kind == _BYTES:
            length, place = _varint(message, place)
            end = place + length
        elif kind in _WIDTH:
            end = place + _WIDTH[kind]
        else:
            raise ValueError(f"a field of kind {kind}")
        if end > len(message):
            raise ValueError("a field that goes beyond the end")
        yield Field(tag >> 3, message[start:end], message[place:end])
        place = end


def bytes_field(number: int, content: bytes) -> bytes:
    """Return a field of bytes: a string or a message."""
    return _encoded(number << 3 | _BYTES) + _encoded(len(content)) + content


def varint_field(number: int, value: int) -> bytes:
    """Return a field of a whole number, at least 0."""
    return _encoded(number << 3 | _VARINT) + _encoded(value)


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """Return the number that starts at `place`, and where it ends."""
    # Most have one byte.
    if place < len(message) and (value := message[place]) < 0x80:
        return value, place + 1
    value = 0
    for i, byte in enumerate(message[place : place + _VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, place + i + 1
    raise ValueError("a number without an end")


def _encoded(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
