"""Vectors from a teacher: words go through a sentence encoder one by one. Shapes as in `textcls_training.vectors`.

A sentence encoder makes of a word alone what it knows of it out of context; the mean over a sentence, with frequent
words made light, comes near the vector of the sentence (model2vec, Tulkens and van Dongen 2024).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls._util import optional_dependencies
from textcls.display.terminal.progress import Progress
from textcls.errors import InputError
from textcls_training.vectors import build

# Words that go through the encoder at a time.
BATCH: Final = 256
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
        raise InputError(f"{path} is no UTF-8; convert it first.") from error
    words = [word for _, word in build.usable_words((line.strip() for line in lines), most)]
    if not words:
        raise InputError(f"{path} holds no word that texts can hold; one a line is needed.")
    return words


def encode(teacher: str, words: Sequence[str], progress: Progress) -> NDArray[np.float32]:
    """Return the vector that a teacher gives to each word [V, E].

    Args:
        teacher: a folder of sentence-transformers, or a name that it knows.
        words: what is encoded.
        progress: told of each word.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        InputError: there is no such teacher.
    """
    with optional_dependencies.needed_by("textcls vectors distil"):
        from sentence_transformers import SentenceTransformer
    try:
        model = SentenceTransformer(teacher, device="cpu")
    except (OSError, ValueError) as error:
        why = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise InputError(f"The teacher {teacher!r} cannot be loaded ({why}).") from error
    progress.phase("encoding", len(words))
    parts = []
    for start in range(0, len(words), BATCH):
        batch = list(words[start : start + BATCH])
        parts.append(np.asarray(model.encode(batch, batch_size=BATCH, show_progress_bar=False), np.float32))
        progress.step(len(batch))
    return np.concatenate(parts)
