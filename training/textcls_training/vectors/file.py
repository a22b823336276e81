"""A file of vectors: a safetensors file of words and of low-bit rows. Shapes as in `textcls_training.vectors`.

    words   U8 [bytes]        the words in UTF-8, each ended by a line break, the most frequent first
    rows    I8 [V, D]         vectors in steps of the scale; or, in four bits,
            U8 [V, D / 2]     two steps a byte, each plus 8, the first in the high half; or, in two bits,
    turned  U8 [V, D / 4]     four steps a byte, 0 to 3 for -3, -1, 1 and 3, the first in the highest bits
    scales  F16 [V]           the step of each row

For two bits rows are rotated before they are rounded: multiplied by the Hadamard matrix over sqrt(D), which requires D
to be a power of two. Principal components differ much in size, and two bits leave nothing of the small ones; rotated,
all numbers of a row are alike. They are not rotated back: only scalar products matter, which do not change.

Its metadata are the contents of `WordVectors.about`, and `format`, which is `textcls vectors 1`.
"""

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from textcls._util.atomic_write import write_computed
from textcls.errors import ConfigError, InputError
from textcls.model import tokenizer
from textcls_training.vectors import tensors
from textcls_training.vectors.tensors import Header, damaged
from textcls_training.vectors.word_vectors import WordVectors

FORMAT: Final = "textcls vectors 1"
# The limit of what training holds in memory: 2 million words of 1,024 numbers would be 8 GB.
MOST_BYTES: Final = 1_000_000_000
MOST_WORDS: Final = 2_000_000
MOST_DIMS: Final = 1024

Bits = Literal[2, 4, 8]
# The step of a number of the standard normal distribution that leaves the least squared error in two bits (Max 1960).
_STEP: Final = 0.4978
_SHIFTS: Final = np.array([6, 4, 2, 0], np.uint8)
# The smallest 16-bit number.
_LEAST: Final = np.float16(6e-8)


def save(path: Path, words: Sequence[str], row_VD: NDArray[np.float32], about: Mapping[str, str], bits: Bits) -> None:
    """Write vectors to `path`; the same vectors give the same bytes.

    Args:
        path: the file, written completely or not at all.
        words: as in `WordVectors`.
        row_VD: likewise.
        about: likewise.
        bits: bits per number; fewer make a smaller file, and cost next to nothing if vectors have many numbers.

    Raises:
        ConfigError: two bits are wanted, but the width is not a power of two of at least 4.
        SurroundingsError: the file cannot be written.
    """
    arrays: dict[str, NDArray[Any]] = {
        "words": np.frombuffer("".join(f"{word}\n" for word in words).encode(), np.uint8),
        **(_turned(row_VD) if bits == 2 else _stepped(row_VD, bits)),
    }
    content = io.BytesIO()
    tensors.write(content, arrays, {**about, "format": FORMAT})
    write_computed(path, content.getvalue())


def check_bits(dims: int, bits: Bits) -> None:
    """Check that vectors of this width can be stored in this many bits.

    Raises:
        ConfigError: they cannot.
    """
    if bits == 2 and not _is_power_of_two(dims):
        raise ConfigError(
            f"In two bits the numbers of a vector must be a power of two from 4 on, not {dims}; see --dims."
        )


def _is_power_of_two(dims: int) -> bool:
    return dims >= 4 and not dims & (dims - 1)


def _stepped(row_VD: NDArray[np.float32], bits: Bits) -> dict[str, NDArray[Any]]:
    most = 2 ** (bits - 1) - 1
    scale_V = (np.abs(row_VD).max(1) / most).astype(np.float16)
    step_VD = np.clip(np.rint(row_VD / np.maximum(scale_V, _LEAST).astype(np.float32)[:, None]), -most, most)
    return {"rows": step_VD.astype(np.int8) if bits == 8 else _packed(step_VD), "scales": scale_V}


def _turned(row_VD: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    check_bits(row_VD.shape[1], 2)
    x_VD = row_VD.astype(np.float64) @ _hadamard(row_VD.shape[1]) / np.sqrt(row_VD.shape[1])
    scale_V = (_STEP * np.sqrt(np.square(x_VD).mean(1))).astype(np.float16)
    number_VD = np.floor(x_VD / (2 * np.maximum(scale_V, _LEAST).astype(np.float64)[:, None])) + 2
    number_VQ4 = np.clip(number_VD, 0, 3).astype(np.uint8).reshape(len(x_VD), -1, 4)
    return {"turned": np.bitwise_or.reduce(number_VQ4 << _SHIFTS, axis=2), "scales": scale_V}


def _hadamard(dims: int) -> NDArray[np.float32]:
    """Return the matrix of ones and minus ones [D, D] whose rows are orthogonal, after Sylvester."""
    matrix_DD = np.ones((1, 1), np.float32)
    while len(matrix_DD) < dims:
        matrix_DD = np.block([[matrix_DD, matrix_DD], [matrix_DD, -matrix_DD]])
    return matrix_DD


def check(path: Path) -> None:
    """Check, without reading much, that there is a file of vectors at `path`.

    Raises:
        InputError: there is none.
    """
    _check_header(path, tensors.read_header(path, MOST_BYTES))


def load(path: Path) -> WordVectors:
    """Read the file of vectors at `path`.

    Raises:
        InputError: there is no such file, it does not contain vectors, it is damaged, or it exceeds a limit.
    """
    check(path)
    arrays, header = tensors.read(path, most_bytes=MOST_BYTES)
    words = _words(path, arrays["words"])
    row_VD = _unscaled(arrays) * arrays["scales"].astype(np.float32)[:, None]
    if len(words) != len(row_VD):
        raise damaged(path, f"it has {len(words):,} words and {len(row_VD):,} vectors")
    if not np.isfinite(row_VD).all():
        raise damaged(path, "a vector holds a number that is not finite")
    if not row_VD.any(1).all():
        raise damaged(path, f"the vector of {words[int(np.argmin(row_VD.any(1)))]!r} is zero")
    row_VD /= np.linalg.norm(row_VD, axis=1).max()
    row_VD.setflags(write=False)
    about = {name: text for name, text in header.about.items() if name != "format"}
    return WordVectors(words, row_VD, about, hashlib.sha256(path.read_bytes()).hexdigest())


def _unscaled(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    if "turned" in arrays:
        number_VQ4 = arrays["turned"][:, :, None] >> _SHIFTS & np.uint8(3)
        return 2 * number_VQ4.reshape(len(number_VQ4), -1).astype(np.float32) - 3
    step_VD: NDArray[np.int8] = _unpacked(arrays["rows"]) if arrays["rows"].dtype == np.uint8 else arrays["rows"]
    return step_VD.astype(np.float32)


def _check_header(path: Path, header: Header) -> None:
    version = header.about.get("format", "")
    if version != FORMAT:
        known = (
            f"its format is {version[:40]!r}, and this textcls reads {FORMAT!r}" if version else "it names no format"
        )
        raise InputError(f"{path} is not a file of vectors ({known}); make one with textcls vectors import.")
    match dict(header.arrays):
        case {"words": ("U8", (_,)), "rows": ("I8" | "U8" as kind, (rows, columns)), "scales": ("F16", (scales,))}:
            dims = columns if kind == "I8" else 2 * columns
        case {"words": ("U8", (_,)), "turned": ("U8", (rows, columns)), "scales": ("F16", (scales,))}:
            dims = 4 * columns
            if not _is_power_of_two(dims):
                raise damaged(path, f"it has vectors of {dims:,} numbers, no power of two, in two bits")
        case _:
            raise damaged(path, "its arrays are not those of vectors")
    if rows != scales or not 1 <= rows <= MOST_WORDS or not 1 <= dims <= MOST_DIMS:
        raise damaged(path, f"it has {rows:,} vectors of {dims:,} numbers and {scales:,} scales")


def _words(path: Path, data: NDArray[np.uint8]) -> list[str]:
    try:
        *words, rest = data.tobytes().decode().split("\n")
    except UnicodeDecodeError as error:
        raise damaged(path, "its words are not UTF-8") from error
    if rest or len(set(words)) < len(words):
        raise damaged(path, "its words are cut off" if rest else "a word stands there twice")
    # One text of all words is tokenised quickly; only then, if needed, word by word, to report the invalid one.
    if tokenizer.tokenize("\n".join(words)) != words:
        odd = next(word for word in words if tokenizer.tokenize(word) != [word])
        raise damaged(path, f"{odd[:40]!r} is not a word that texts are cut into")
    return words


def _packed(step_VD: NDArray[np.float32]) -> NDArray[np.uint8]:
    even_VD = np.pad(step_VD + 8, ((0, 0), (0, step_VD.shape[1] % 2)), constant_values=8).astype(np.uint8)
    return (even_VD[:, ::2] << 4 | even_VD[:, 1::2]).astype(np.uint8)


def _unpacked(byte_VH: NDArray[np.uint8]) -> NDArray[np.int8]:
    half_VH2 = np.stack([byte_VH >> 4, byte_VH & 15], 2).astype(np.int8) - np.int8(8)
    step_VD: NDArray[np.int8] = half_VH2.reshape(len(byte_VH), -1)
    return step_VD
