"""Vectors from a teacher: words are encoded one by one by a sentence encoder. Shapes as in `textcls_training.vectors`.

From a word alone a sentence encoder makes what it knows about it out of context; the mean over a sentence, with less
weight for frequent words, comes close to the vector of the sentence (model2vec, Tulkens and van Dongen 2024).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls._util.text_file import read_text
from textcls.display.terminal.progress import Progress
from textcls.errors import InputError
from textcls_training.vectors import build

Float32 = NDArray[np.float32]

WORDS_BYTES: Final = 100_000_000


def read_words(path: Path, most: int) -> list[str]:
    """Return the first `most` usable words of a list, in lower case: one per line, the most frequent first.

    Raises:
        InputError: the list cannot be read, or contains none.
    """
    lines = read_text(path, WORDS_BYTES, "The list of words").splitlines()
    words = [word for _, word in build.usable_words((line.strip() for line in lines), most)]
    if not words:
        raise InputError(f"{path} contains no usable word; write one word per line.")
    return words


def distilled(
    teacher: str, words: Sequence[str], texts: Sequence[str], dims: int, progress: Progress
) -> tuple[list[str], Float32]:
    """Return words and vectors [V, D] as expected by `file.save`, fitted to texts, if there are any.

    Args:
        teacher: a sentence-transformers folder, or a name that the library knows.
        words: usable ones, the most frequent first; each is encoded by itself.
        texts: sentences for `fit.fitted`.
        dims: principal components of the words' vectors that are kept, if there are that many.
        progress: notified of encoded words and texts.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        InputError: there is no such teacher, or no text contains any of the words.
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
    """Return the vectors [texts, E] of length 1 of a teacher, read from the cache or added to it."""
    # Imports PyTorch, which is not needed for importing files of vectors.
    from textcls_training.vectors import sentence_encoder

    sentence_encoder.require()
    return sentence_encoder.SentenceEncoder(teacher).encode(texts, progress).astype(np.float32)
