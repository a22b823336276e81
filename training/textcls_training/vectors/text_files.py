"""Vectors as text: the files of word2vec, GloVe and fastText, one word per line followed by its numbers.

word2vec and fastText files begin with a line with the numbers of words and dimensions; GloVe files do not. A file may
be compressed with gzip. Shapes as in `textcls_training.vectors`; E width of the raw vectors.
"""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

from textcls.errors import InputError
from textcls.model import tokenizer

# 10,000 written numbers, and a word.
LINE_BYTES: Final = 300_000
GZIP: Final = b"\x1f\x8b"


def read(path: Path, most: int) -> tuple[list[str], NDArray[np.float32]]:
    """Return the first `most` words that texts can contain, in lower case, and their vectors [V, E].

    Lines whose word would be split into several tokens, or differs from an earlier one only in case, are skipped.

    Raises:
        InputError: there is no such file, a line is not a word with as many numbers as the others have, or there are
            fewer than the first line says.
    """
    words: dict[str, None] = {}
    rows: list[NDArray[np.float32]] = []
    width: int | None = None
    told = number = 0
    with _lines(path) as lines:
        for number, line in enumerate(lines, 1):
            fields = line.rstrip().split(" ")
            if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
                told, width = int(fields[0]), int(fields[1])
                continue
            width = width or len(fields) - 1
            word = " ".join(fields[:-width])
            if tokenizer.tokenize(word) == [tokenizer.lower(word)] and tokenizer.lower(word) not in words:
                rows.append(_numbers(path, number, fields[-width:], width))
                words[tokenizer.lower(word)] = None
            elif len(fields) <= width:
                raise _no_vector(path, number, width)
            if len(words) == most:
                break
        else:
            if told and number - 1 < told:
                raise InputError(
                    f"{path} has {number - 1:,} words, and its first line says {told:,}: copy it again, or remove that "
                    "line if it was shortened on purpose."
                )
    if not words:
        raise InputError(f"{path} contains no usable word; is it a text file of vectors?")
    return list(words), np.stack(rows)


def _numbers(path: Path, number: int, fields: list[str], width: int) -> NDArray[np.float32]:
    try:
        found = np.array(fields, np.float32)
    except ValueError as error:
        raise _no_vector(path, number, width) from error
    if len(found) != width or not width or not np.isfinite(found).all():
        raise _no_vector(path, number, width)
    return found


def _no_vector(path: Path, number: int, width: int) -> InputError:
    return InputError(f"{path}, line {number}: expected a word and {width} finite numbers, separated by single spaces.")


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[str]]:
    """Yield the lines of a text file, unpacked if it is compressed.

    Raises:
        InputError: it cannot be read, or does not consist of lines of text.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(2) == GZIP
            file.seek(0)
            if packed:
                with gzip.open(file) as unpacked:
                    yield _decoded(path, unpacked)
            else:
                yield _decoded(path, file)
    except (EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is cut off, or no gzip file; copy it again.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


def _decoded(path: Path, file: IO[bytes] | gzip.GzipFile) -> Iterator[str]:
    number = 0
    while line := file.readline(LINE_BYTES):
        number += 1
        if len(line) == LINE_BYTES:
            raise InputError(f"{path}, line {number}: it has {LINE_BYTES:,} bytes or more; is it a text file?")
        # Published files contain a few words with invalid bytes, which no text will match.
        yield line.decode(errors="replace")
