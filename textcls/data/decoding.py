"""Bytes to text: UTF-8, what a byte order mark says, or the encoding that was asked for. Nothing else is guessed.

Guessing an encoding from the bytes is wrong too often when it matters: a few curly quotes in an English text look
alike in a dozen encodings, and a wrong guess silently changes texts. A byte that is not UTF-8 is therefore reported,
with the word around it decoded as Windows' Western encoding.
"""

import codecs
import io
import re
from collections.abc import Iterator
from typing import Final, Literal

from textcls.data.rows import LONGEST, ReadOptions
from textcls.data.source import Source
from textcls.errors import ConfigError, InputError

# The longer marks first: the UTF-32 mark begins with the UTF-16 mark.
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DEFAULT: Final = "utf-8-sig"
# What undecodable bytes become (PEP 383). Text that decodes never contains these.
_ESCAPED: Final = re.compile("[\udc80-\udcff]")
_WORD: Final = re.compile(r"[\w\udc80-\udcff'-]*[\udc80-\udcff][\w\udc80-\udcff'-]*")
_LIKELY: Final = "cp1252"
_PASSED_OVER: Final = 1 << 16
# If at least this many, and this share, of the first lines are bad, the whole file is in another encoding.
_LEAST_BAD: Final = 3
_MOST_BAD: Final = 0.05


def encoding_of(source: Source, options: ReadOptions) -> tuple[str, tuple[str, ...]]:
    """Return Python's name for the encoding of `source`, and a note if the file, not the caller, chose another one.

    Raises:
        ConfigError: there is no encoding with the name asked for.
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
    """Refuse a file that is in another encoding throughout, rather than skip its rows one by one.

    Raises:
        InputError: it is in another encoding.
    """
    *lines, _ = source.peek().splitlines() or [b""]
    decoded = [line.decode(_DEFAULT, "surrogateescape") for line in lines]
    bad = [(number, why) for number, line in enumerate(decoded, 1) if (why := undecodable(line, _DEFAULT))]
    # In a file that mixes two encodings, single rows are bad instead.
    good = sum(not line.isascii() for line in decoded) - len(bad)
    if len(bad) >= max(_LEAST_BAD, _MOST_BAD * len(lines), good):
        number, why = bad[0]
        raise InputError(
            f"{source.name} is not UTF-8, in {len(bad):,} of its first {len(lines):,} lines; line {number}: {why}."
        )


def text_encoding(name: str) -> str:
    """Return Python's name for an encoding.

    Raises:
        ConfigError: there is no text encoding called `name`.
    """
    try:
        found = codecs.lookup(name).name
        "".encode(found)  # some codecs are not text encodings
    except LookupError as error:
        raise ConfigError(f"Unknown encoding {name!r}; examples are cp1252 and gb18030.") from error
    return found


def open_text(source: Source, encoding: str, newline: Literal["", "\n"]) -> io.TextIOWrapper:
    """Open `source` as text; `undecodable` finds bytes in it that are invalid in the encoding."""
    text = io.TextIOWrapper(source.stream, encoding, "surrogateescape", newline)
    return source.stack.enter_context(text)


class Lines:
    """The lines of a text; None for each that is longer than a row may be, which is skipped and never kept in memory.

    Attributes:
        number: the number of the last line returned.
    """

    def __init__(self, text: io.TextIOWrapper, *, universal: bool = False) -> None:
        self.number = 0
        self._text = text
        self._ends = ("\n", "\r") if universal else ("\n",)
        self._within = False

    def __iter__(self) -> Iterator[str | None]:
        return self

    def __next__(self) -> str | None:
        # Skip the rest of a long line only when the next line is asked for.
        while self._within and (rest := self._text.readline(_PASSED_OVER)):
            self._within = not rest.endswith(self._ends)
        line = self._text.readline(LONGEST + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self._within = len(line) > LONGEST and not line.endswith(self._ends)
        return None if self._within else line


def first_text(source: Source, encoding: str) -> str:
    """Return the beginning of `source` as text, without consuming it."""
    return source.peek().decode(encoding, "replace")


def undecodable(text: str, encoding: str) -> str | None:
    """Return what is wrong with `text` as `open_text` returns it; None if all its bytes were valid."""
    found = None if text.isascii() else _ESCAPED.search(text)
    if found is None:
        return None
    byte = f"byte 0x{ord(found[0]) - 0xDC00:02x} is not {'UTF-8' if encoding == _DEFAULT else encoding}"
    word = _WORD.search(text)
    if encoding != _DEFAULT or word is None:
        return f"{byte}; name the right --encoding, or save the file as UTF-8"
    meant = word[0].encode("utf-8", "surrogateescape").decode(_LIKELY, "replace")
    return f"{byte}; add --encoding {_LIKELY} if {meant!r} is meant, otherwise name its encoding or save it as UTF-8"
