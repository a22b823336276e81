"""A file of vectors: a safetensors file of words and of rows in few bits. Shapes as in `textcls_training.vectors`.

    words   U8 [bytes]        the words in UTF-8, each ended by a line break, the most frequent first
    rows    I8 [V, D]         vectors in steps of the scale; or, in four bits,
            U8 [V, D / 2]     two steps a byte, each plus 8, the first in the high half
    scales  F16 [V]           the step of each row

What it says of itself is what `WordVectors.about` holds, and `format`, which is `textcls vectors 1`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from textcls import tokenizer
from textcls._util.atomic_write import atomic_write
from textcls.errors import InputError
from textcls_training.vectors import tensors
from textcls_training.vectors.tensors import Header, damaged
from textcls_training.vectors.word_vectors import WordVectors

FORMAT: Final = "textcls vectors 1"
# What training holds in memory: 2 million words of 1,024 numbers would be 8 GB.
MOST_BYTES: Final = 1_000_000_000
MOST_WORDS: Final = 2_000_000
MOST_DIMS: Final = 1024

Bits = Literal[4, 8]


def save(path: Path, words: Sequence[str], row_VD: NDArray[np.float32], about: Mapping[str, str], bits: Bits) -> None:
    """Write vectors to `path`; the same vectors give the same bytes.

    Args:
        path: the file, which appears whole or not at all.
        words: as in `WordVectors`.
        row_VD: likewise.
        about: likewise.
        bits: of a number; four halve the file, and cost next to nothing where many numbers make a vector.

    Raises:
        SurroundingsError: the file cannot be written.
    """
    most = 2 ** (bits - 1) - 1
    scale_V = (np.abs(row_VD).max(1) / most).astype(np.float16)
    step_VD = np.clip(np.rint(row_VD / np.maximum(scale_V, np.float16(6e-8)).astype(np.float32)[:, None]), -most, most)
    arrays: dict[str, NDArray[Any]] = {
        "words": np.frombuffer("".join(f"{word}\n" for word in words).encode(), np.uint8),
        "rows": step_VD.astype(np.int8) if bits == 8 else _packed(step_VD),
        "scales": scale_V,
    }
    with atomic_write(path) as file:
        tensors.write(file, arrays, {**about, "format": FORMAT})


def check(path: Path) -> None:
    """Find out, without reading much, whether there is a file of vectors at `path`.

    Raises:
        InputError: there is none.
    """
    _check_header(path, tensors.read_header(path, MOST_BYTES))


def load(path: Path) -> WordVectors:
    """Read the file of vectors at `path`.

    Raises:
        InputError: there is no such file, it is none of vectors, it is damaged, or it is beyond a bound.
    """
    arrays, header = tensors.read(path, "words", "rows", "scales", most_bytes=MOST_BYTES)
    _check_header(path, header)
    words = _words(path, arrays["words"])
    step_VD = _unpacked(arrays["rows"]) if arrays["rows"].dtype == np.uint8 else arrays["rows"]
    row_VD = step_VD.astype(np.float32) * arrays["scales"].astype(np.float32)[:, None]
    if len(words) != len(row_VD):
        raise damaged(path, f"it has {len(words):,} words and {len(row_VD):,} vectors")
    if not np.isfinite(row_VD).all():
        raise damaged(path, "a vector holds a number that is not finite")
    if not row_VD.any(1).all():
        raise damaged(path, f"the vector of {words[int(np.argmin(row_VD.any(1)))]!r} is zero")
    row_VD /= np.linalg.norm(row_VD, axis=1).max()
    about = {name: text for name, text in header.about.items() if name != "format"}
    return WordVectors(words, row_VD, about, hashlib.sha256(path.read_bytes()).hexdigest())


def _check_header(path: Path, header: Header) -> None:
    version = header.about.get("format", "")
    if version != FORMAT:
        known = (
            f"its format is {version[:40]!r}, and this textcls reads {FORMAT!r}" if version else "it names no format"
        )
        raise InputError(f"{path} is no file of vectors ({known}); make one with textcls vectors import.")
    match dict(header.arrays):
        case {"words": ("U8", (_,)), "rows": ("I8" | "U8" as kind, (rows, columns)), "scales": ("F16", (scales,))}:
            dims = columns if kind == "I8" else 2 * columns
            if rows != scales or not 1 <= rows <= MOST_WORDS or not 1 <= dims <= MOST_DIMS:
                raise damaged(path, f"it has {rows:,} vectors of {dims:,} numbers and {scales:,} scales")
        case _:
            raise damaged(path, "its arrays are not those of vectors")


def _words(path: Path, data: NDArray[np.uint8]) -> list[str]:
    try:
        *words, rest = data.tobytes().decode().split("\n")
    except UnicodeDecodeError as error:
        raise damaged(path, "its words are no UTF-8") from error
    if rest or len(set(words)) < len(words):
        raise damaged(path, "its words are cut off" if rest else "a word stands there twice")
    odd = next((word for word in words if tokenizer.tokenize(word) != [word]), None)
    if odd is not None:
        raise damaged(path, f"{odd[:40]!r} is no word as texts are cut into")
    return words


def _packed(step_VD: NDArray[np.float32]) -> NDArray[np.uint8]:
    even_VD = np.pad(step_VD + 8, ((0, 0), (0, step_VD.shape[1] % 2)), constant_values=8).astype(np.uint8)
    return (even_VD[:, ::2] << 4 | even_VD[:, 1::2]).astype(np.uint8)


def _unpacked(byte_VH: NDArray[np.uint8]) -> NDArray[np.int8]:
    half_VH2 = np.stack([byte_VH >> 4, byte_VH & 15], 2).astype(np.int8) - np.int8(8)
    step_VD: NDArray[np.int8] = half_VH2.reshape(len(byte_VH), -1)
    return step_VD
