"""Sentence vectors of a sentence-transformers model, kept in a cache by content: what was encoded once is read again.

The cache holds a file for each chunk of texts, named by a hash of the model's weights and of the texts; a file appears
whole or not at all, so runs side by side do not disturb each other, and an interrupted run goes on where it stopped.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from textcls._util import optional_dependencies
from textcls._util.atomic_write import atomic_write
from textcls.errors import InputError, SurroundingsError
from textcls_training.data.arrays import Float64
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.interrupt import Stop

Float16 = NDArray[np.float16]

CACHE_VARIABLE: Final = "TEXTCLS_CACHE"
# Texts of a file of the cache, and of them those that the model reads at once.
CHUNK: Final = 2048
BATCH: Final = 64
# A sentence encoder reads a few hundred tokens; what is far beyond them need not be split into word pieces.
MOST_CHARACTERS: Final = 8000


def cache_folder() -> Path:
    """Return where vectors are kept: $TEXTCLS_CACHE, else `textcls` in the user's cache folder."""
    told = os.environ.get(CACHE_VARIABLE)
    if told:
        return Path(told)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "textcls"


def require() -> None:
    """Find out before the work whether encoders can be loaded.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
    """
    with optional_dependencies.needed_by("A teacher"):
        optional_dependencies.look_for("sentence_transformers")


class SentenceEncoder:
    """A sentence-transformers model, by the folder or the name of it.

    Attributes:
        name: the last part of its path or name.
        fingerprint: a hash of its weights and its vocabulary.
    """

    def __init__(self, place: str, device: str = "cpu") -> None:
        """Load the model.

        Args:
            place: a folder, or the name of a model on the Hugging Face Hub.
            device: where it computes, as PyTorch names it.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            InputError: there is no such model, or it cannot be loaded.
        """
        self.name = Path(place).name or place
        self._model = _loaded(place, device)
        self.fingerprint = _fingerprint(self._model)

    def encode(
        self, texts: Sequence[str], callback: Callback = NOBODY, stop: Stop | None = None, folder: Path | None = None
    ) -> Float16:
        """Return the vectors [texts, width], each of length 1; fewer rows if a stop is requested meanwhile.

        Args:
            texts: what to encode.
            callback: told of progress.
            stop: by which somebody may end it.
            folder: where vectors are kept; by default `cache_folder()`.

        Raises:
            SurroundingsError: the cache cannot be written.
        """
        stop = stop or Stop()
        folder = (folder or cache_folder()) / "sentence-vectors" / self.fingerprint[:16]
        _make(folder)
        callback.phase(f"encoding with {self.name}", len(texts))
        began, chunks = time.monotonic(), []
        for first in range(0, len(texts), CHUNK):
            if stop.requested:
                break
            chunk = texts[first : first + CHUNK]
            chunks.append(self._chunk(chunk, folder, callback))
            done = first + len(chunk)
            left = (len(texts) - done) * (time.monotonic() - began) / done
            callback.note(f"{done:,} rows, {left:,.0f} s left")
        return np.concatenate(chunks) if chunks else np.zeros((0, 0), np.float16)

    def _chunk(self, texts: Sequence[str], folder: Path, callback: Callback) -> Float16:
        """Return the vectors of a chunk: those of the cache, or else fresh ones, which are put there."""
        path = folder / f"{_sha256(texts)}.npy"
        if path.is_file():
            kept = np.load(path, allow_pickle=False)
            if kept.dtype == np.float16 and kept.ndim == 2 and len(kept) == len(texts):
                callback.step(len(texts), None)
                return np.asarray(kept)
        found = []
        for first in range(0, len(texts), BATCH):
            batch = [text[:MOST_CHARACTERS] for text in texts[first : first + BATCH]]
            vectors = self._model.encode(batch, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
            found.append(np.asarray(vectors, np.float32))
            callback.step(len(batch), None)
        fresh = _unit(np.concatenate(found)).astype(np.float16)
        with atomic_write(path, f"make room, or set {CACHE_VARIABLE} to another folder") as file:
            np.save(file, fresh)
        return fresh


def as_float64(vectors: Float16) -> Float64:
    """Return vectors as the linear head reads them, of length 1 once more."""
    return _unit(vectors.astype(np.float64))


def _unit(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SurroundingsError(
            f"The cache {folder} cannot be made: {os.strerror(error.errno or 0)}; "
            f"set {CACHE_VARIABLE} to another folder."
        ) from error


def _loaded(place: str, device: str) -> Any:
    with optional_dependencies.needed_by("A teacher"):
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    logging.disable_progress_bar()  # progress is told by the callback
    try:
        return SentenceTransformer(place, device=device)
    # What loading may raise, of a file, the network or the library, is not written down anywhere.
    except Exception as error:
        why = str(error).strip().partition("\n")[0].rstrip(".")[:200] or type(error).__name__
        raise InputError(
            f"The teacher {place!r} is no folder with a sentence-transformers model and cannot be had by that name: "
            f"{why}; give the folder of one."
        ) from error


def _fingerprint(model: Any) -> str:
    """Return a hash of all that decides over a vector: layers, weights, vocabulary, and where texts are cut."""
    digest = hashlib.sha256(repr((model, model.max_seq_length)).encode())
    for name, weight in sorted(model.state_dict().items()):
        array = weight.detach().cpu().contiguous()
        digest.update(f"{name} {tuple(array.shape)} {array.dtype}".encode())
        digest.update(array.reshape(-1).view(torch.uint8).numpy().tobytes())
    vocabulary = getattr(model.tokenizer, "get_vocab", None)
    digest.update(repr(sorted(vocabulary().items()) if vocabulary else None).encode())
    return digest.hexdigest()


def _sha256(texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()
