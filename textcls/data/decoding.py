"""Bytes to text: UTF-8, what a byte order mark says, or the encoding that was asked for. Nothing else is guessed.

Guessing an encoding from the bytes is wrong too often where it matters: a few curly quotes in an English text look
alike in a dozen encodings, and a wrong guess changes texts without a word. A byte that is not UTF-8 is therefore said,
with the word around it as Windows' Western encoding would have it.
"""

import codecs
import io
import re
from collections.abc import Iterator
from typing import Final, Literal

from textcls.data.rows import LONGEST, ReadOptions
from textcls.data.source import Source
from textcls.errors import ConfigError, InputError

# The longer marks first: that of UTF-32 begins with that of UTF-16.
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DEFAULT: Final = "utf-8-sig"
# What bytes become that the encoding does not know (PEP 383). Text that decodes never holds these.
_ESCAPED: Final = re.compile("[\udc80-\udcff]")
_WORD: Final = re.compile(r"[\w\udc80-\udcff'-]*[\udc80-\udcff][\w\udc80-\udcff'-]*")
_LIKELY: Final = "cp1252"
_PASSED_OVER: Final = 1 << 16
# From so many lines on, and from such a share of the first lines on, it is the encoding of the file that is another.
_LEAST_BAD: Final = 3
_MOST_BAD: Final = 0.05


def encoding_of(source: Source, options: ReadOptions) -> tuple[str, tuple[str, ...]]:
    """Return the encoding of `source` by Python's name, and a note if the file and not the caller chose another.

    Raises:
        ConfigError: there is no encoding of the name asked for.
        InputError: this is not text.
    """
    if options.encoding is not None:
        name = text_encoding(options.encoding)
        return (_DEFAULT if name == "utf-8" else name), ()
    first = source.peek()[:4]
    found = next((name for mark, name in _MARKS if first.startswith(mark)), None)
    if found is None and b"\0" in first:
        raise InputError(
            f"{source.name} begins with zero bytes: it is not text, or it is UTF-16 without a byte order mark, "
            "which needs --encoding utf-16-le or utf-16-be."
        )
    if found is None:
        _refuse_another_encoding(source)
        return _DEFAULT, ()
    return found, (f"{source.name} is read as {found.upper()}, according to its byte order mark.",)


def _refuse_another_encoding(source: Source) -> None:
    """Refuse a file that is in another encoding throughout, whose rows are not to be skipped one by one.

    Raises:
        InputError: it is.
    """
    *lines, _ = source.peek().splitlines() or [b""]
    decoded = [line.decode(_DEFAULT, "surrogateescape") for line in lines]
    bad = [(number, why) for number, line in enumerate(decoded, 1) if (why := undecodable(line, _DEFAULT))]
    # Of a file of two encodings, rows are bad.
    good = sum(not line.isascii() for line in decoded) - len(bad)
    if len(bad) >= max(_LEAST_BAD, _MOST_BAD * len(lines), good):
        number, why = bad[0]
        raise InputError(
            f"{source.name} is not UTF-8, in {len(bad):,} of its first {len(lines):,} lines; line {number}: {why}."
        )


def text_encoding(name: str) -> str:
    """Return an encoding by Python's name.

    Raises:
        ConfigError: there is none of the name `name`.
    """
    try:
        found = codecs.lookup(name).name
        "".encode(found)  # some codecs are not text encodings
    except LookupError as error:
        raise ConfigError(f"Unknown encoding {name!r}; examples are cp1252 and gb18030.") from error
    return found


def open_text(source: Source, encoding: str, newline: Literal["", "\n"]) -> io.TextIOWrapper:
    """Return the text of `source`; `undecodable` finds bytes in it that are not of the encoding."""
    text = io.TextIOWrapper(source.stream, encoding, "surrogateescape", newline)
    return source.stack.enter_context(text)


class Lines:
    """The lines of a text, None for each that is longer than a row may be: it is passed over, and never held.

    Attributes:
        number: the number of the line that came last.
    """

    def __init__(self, text: io.TextIOWrapper, *, universal: bool = False) -> None:
        self.number = 0
        self._text = text
        self._ends = ("\n", "\r") if universal else ("\n",)
        self._within = False

    def __iter__(self) -> Iterator[str | None]:
        return self

    def __next__(self) -> str | None:
        # Only whoever goes on has to wait for the end of a long line.
        while self._within and (rest := self._text.readline(_PASSED_OVER)):
            self._within = not rest.endswith(self._ends)
        line = self._text.readline(LONGEST + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self._within = len(line) > LONGEST and not line.endswith(self._ends)
        return None if self._within else line


def first_text(source: Source, encoding: str) -> str:
    """Return the beginning of `source` as text, without moving on."""
    return source.peek().decode(encoding, "replace")


def undecodable(text: str, encoding: str) -> str | None:
    """Return what is wrong with `text` as `open_text` gives it; None if all its bytes were of the encoding."""
    found = None if text.isascii() else _ESCAPED.search(text)
    if found is None:
        return None
    byte = f"byte 0x{ord(found[0]) - 0xDC00:02x} is not {'UTF-8' if encoding == _DEFAULT else encoding}"
    word = _WORD.search(text)
    if encoding != _DEFAULT or word is None:
        return f"{byte}; name the right --encoding, or save the file as UTF-8"
    meant = word[0].encode("utf-8", "surrogateescape").decode(_LIKELY, "replace")
    return f"{byte}; add --encoding {_LIKELY} if {meant!r} is meant, otherwise name its encoding or save it as UTF-8"
