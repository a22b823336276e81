"""Folders of model2vec: static vectors of the pieces of a tokenizer, read without the model2vec library.

`model.safetensors` contains the vectors, `tokenizer.json` the names of the rows. Names of whole words are used, pieces
within words are not. The vectors were already weighted by frequency, so they stay as they are.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls.errors import InputError
from textcls_training.vectors import build, tensors

TOKENIZER_BYTES: Final = 200_000_000


def read(folder: Path, most: int) -> tuple[list[str], NDArray[np.float32]]:
    """Return the first `most` words of a folder, in lower case, and their vectors [V, D].

    Raises:
        InputError: it is not a model2vec folder.
    """
    names = _names(folder)
    arrays, _ = tensors.read(folder / "model.safetensors")
    if "embeddings" not in arrays or arrays["embeddings"].ndim != 2:
        raise InputError(f"{folder / 'model.safetensors'} holds no table 'embeddings'; is it a model2vec folder?")
    # In newer folders several names share a row, and each has its own weight.
    row_N = arrays.get("mapping", np.arange(len(arrays["embeddings"])))
    weight_N = arrays.get("weights", np.ones(len(row_N)))
    words, which = [], []
    for number, word in build.usable_words(names, most):
        if number >= len(row_N) or number >= len(weight_N) or not 0 <= row_N[number] < len(arrays["embeddings"]):
            raise InputError(f"{folder}: the tokenizer names more rows than the table has; copy the folder again.")
        words.append(word)
        which.append(number)
    vectors_VD = arrays["embeddings"][row_N[which]].astype(np.float32) * weight_N[which].astype(np.float32)[:, None]
    if not np.isfinite(vectors_VD).all():
        raise InputError(f"{folder}: a vector holds a number that is not finite.")
    return build.without_zeros(words, vectors_VD)


def _names(folder: Path) -> list[str]:
    """Return the name of each row: a word, or an empty one if the row is that of a piece or a mark."""
    path = folder / "tokenizer.json"
    try:
        if path.stat().st_size > TOKENIZER_BYTES:
            raise InputError(f"{path} has more than {TOKENIZER_BYTES:,} bytes.")
        model = json.loads(path.read_text(encoding="utf-8"))["model"]
        vocabulary = model["vocab"]
        if isinstance(vocabulary, list):  # Unigram: pairs of a name and a score.
            vocabulary = {name: number for number, (name, _) in enumerate(vocabulary)}
        names = [""] * len(vocabulary)
        whole = _whole_word(model)
        for name, number in vocabulary.items():
            names[number] = whole(name)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; is it a model2vec folder?") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is not a known kind of tokenizer (WordPiece, Unigram or BPE).") from error
    return names


def _whole_word(model: dict[str, Any]) -> Callable[[str], str]:
    """Return the function that maps the name of a piece to its word, empty if it is none."""
    if model.get("type", "WordPiece") == "WordPiece":
        prefix = model.get("continuing_subword_prefix", "##")
        return lambda name: "" if name.startswith(prefix) or name[:1] + name[-1:] == "[]" else name
    # One of these marks represents a space before a word.
    return lambda name: name[1:] if name[:1] in ("\u2581", "\u0120") else ""
