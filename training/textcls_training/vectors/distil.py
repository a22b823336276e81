"""Vectors from a teacher: words go through a sentence encoder one by one. Shapes as in `textcls_training.vectors`.

A sentence encoder makes of a word alone what it knows of it out of context; the mean over a sentence, with frequent
words made light, comes near the vector of the sentence (model2vec, Tulkens and van Dongen 2024).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.display.terminal.progress import Progress
from textcls.errors import InputError
from textcls_training.vectors import build

Float32 = NDArray[np.float32]

WORDS_BYTES: Final = 100_000_000


def read_words(path: Path, most: int) -> list[str]:
    """Return the first `most` words of a list that texts can hold, in lower case: one a line, the most frequent first.

    Raises:
        InputError: the list cannot be read, or holds none.
    """
    try:
        if path.stat().st_size > WORDS_BYTES:
            raise InputError(f"{path} has more than {WORDS_BYTES:,} bytes.")
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8; convert it first.") from error
    words = [word for _, word in build.usable_words((line.strip() for line in lines), most)]
    if not words:
        raise InputError(f"{path} contains no usable word; write one word per line.")
    return words


def distilled(
    teacher: str, words: Sequence[str], texts: Sequence[str], dims: int, progress: Progress
) -> tuple[list[str], Float32]:
    """Return words and vectors [V, D] as `file.save` takes them, fitted to texts, if there are any.

    Args:
        teacher: a folder of sentence-transformers, or a name that it knows.
        words: usable ones, the most frequent first; each by itself goes through the encoder.
        texts: sentences for `fit.fitted`.
        dims: principal components of the words' vectors that are kept, if there are so many.
        progress: told of words and texts that are encoded.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        InputError: there is no such teacher, or no text holds one of the words.
        SurroundingsError: the cache of sentence vectors cannot be written.
    """
    raw_XE = _encoded(teacher, [*words, *texts], progress)
    raw_VE, text_TE = raw_XE[: len(words)], raw_XE[len(words) :]
    kept, row_VD = build.prepared(words, raw_VE, dims)
    if texts:
        from textcls_training.vectors import fit  # SciPy takes its time

        row_VD = fit.fitted(kept, row_VD, texts, build.projected(text_TE, raw_VE, dims))
    return kept, row_VD


def _encoded(teacher: str, texts: Sequence[str], progress: Progress) -> Float32:
    """Return the vectors [texts, E] of length 1 that a teacher gives, from the cache or for the cache."""
    # PyTorch, which importing files of vectors does without.
    from textcls_training.vectors import sentence_encoder

    sentence_encoder.require()
    return sentence_encoder.SentenceEncoder(teacher).encode(texts, progress).astype(np.float32)
