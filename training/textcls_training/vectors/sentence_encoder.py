"""Sentence vectors of a sentence-transformers model, cached by content: no text is encoded twice.

The cache has a folder for each model, named by a hash of its weights, and in it files of vectors, each with a hash of
its text. Files are only added, each completely or not at all, so parallel runs do not disturb each other, and an
interrupted run continues where it stopped.
"""

import copy
import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from textcls._util import optional_dependencies
from textcls._util.atomic_write import atomic_write
from textcls.errors import InputError, SurroundingsError

Float16 = NDArray[np.float16]
Float64 = NDArray[np.float64]

CACHE_VARIABLE: Final = "TEXTCLS_CACHE"
# What to do if there is no space for the cache.
NO_SPACE: Final = f"free some space, or set {CACHE_VARIABLE} to another folder"
# Texts per cache file, and texts per batch of the model. They are sorted by length for that.
CHUNK: Final = 1024
BATCH: Final = 64
# How many bytes of the hash of a text are kept.
KEY: Final = 16
# The file by which a folder is recognised as a model.
_MODULES: Final = "modules.json"
# A sentence encoder reads a few hundred tokens; text far beyond them need not be split into word pieces.
MOST_CHARACTERS: Final = 8000


class Listener(Protocol):
    """A listener for progress: a training callback or any progress bar."""

    def phase(self, name: str, rows: int, /) -> None:
        """Report the number of distinct texts wanted."""

    def step(self, rows: int, /) -> None:
        """Report that this many more are done."""

    def note(self, text: str, /) -> None:
        """Report something worth a line."""


def cache_folder() -> Path:
    """Return where vectors are cached: $TEXTCLS_CACHE, else `textcls` in the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "textcls"


def require() -> None:
    """Check before the work that encoders can be loaded.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
    """
    with optional_dependencies.needed_by("A teacher"):
        optional_dependencies.look_for("sentence_transformers")


class SentenceEncoder:
    """A sentence-transformers model, given by its folder or name.

    Attributes:
        name: the last part of its path or name.
        fingerprint: a hash of its weights and its vocabulary.
        width: the width of a vector.
    """

    def __init__(self, place: str, device: str = "cpu") -> None:
        """Load the model.

        Args:
            place: a folder, or the name of a model on the Hugging Face Hub.
            device: the device it computes on, as PyTorch names it.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            InputError: there is no such model, or it cannot be loaded, or its weights are not finite.
            SurroundingsError: the cache cannot be created.
        """
        self.name = Path(place).name or place
        self._model = _loaded(place, device)
        self.fingerprint = _fingerprint(self._model)
        self._folder = cache_folder() / "sentence-vectors" / self.fingerprint[:16]
        make_folder(self._folder)
        self.width = self._vectors([""]).shape[1]

    def encode(
        self,
        texts: Sequence[str],
        listener: Listener | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Float16:
        """Return the vectors [texts, width], each of length 1; after an early stop, some are zero.

        Args:
            texts: what to encode.
            listener: notified of progress.
            stopped: returns whether a stop was requested; called before each part.

        Raises:
            SurroundingsError: the cache cannot be written.
        """
        rows_of: dict[bytes, list[int]] = {}
        for i, text in enumerate(texts):
            rows_of.setdefault(_key(text), []).append(i)
        vectors = np.zeros((len(texts), self.width), np.float16)
        listener = listener or _Nobody()
        listener.phase(f"encoding with {self.name}", len(rows_of))
        missing = self._read(rows_of, vectors)
        listener.step(len(rows_of) - len(missing))
        began = time.monotonic()
        for first in range(0, len(missing), CHUNK):
            if stopped():
                break
            keys = missing[first : first + CHUNK]
            fresh = self._vectors([texts[rows_of[key][0]] for key in keys])
            _keep(self._folder, keys, fresh)
            for key, vector in zip(keys, fresh, strict=True):
                vectors[rows_of[key]] = vector
            listener.step(len(keys))
            done = first + len(keys)
            left = (len(missing) - done) * (time.monotonic() - began) / done
            listener.note(f"{done:,} of {len(missing):,} new texts, {left:,.0f} s left")
        return vectors

    def trainable(self) -> Any:
        """Return a copy of the model whose weights may change."""
        return copy.deepcopy(self._model)

    def _read(self, rows_of: Mapping[bytes, list[int]], vectors: Float16) -> list[bytes]:
        """Fill in the cached vectors, and return the keys of the others, in the order of their texts."""
        missing = dict.fromkeys(rows_of)
        for path in sorted(self._folder.glob("*.npy")):
            kept = _load(path, self.width)
            sound = np.isfinite(kept["vector"]).all(1).tolist()
            for row, key in enumerate(kept["key"].tolist()):
                if key in missing and sound[row]:
                    vectors[rows_of[key]] = kept["vector"][row]
                    del missing[key]
        return list(missing)

    def _vectors(self, texts: Sequence[str]) -> Float16:
        cut = [text[:MOST_CHARACTERS] for text in texts]
        found = self._model.encode(cut, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
        if not np.isfinite(found).all():
            raise InputError(
                f"The teacher {self.name!r} gives a vector that is not finite, as damaged weights do; get it anew."
            )
        return _unit(np.asarray(found, np.float32)).astype(np.float16)


class _Nobody:
    def phase(self, name: str, rows: int, /) -> None:
        pass

    def step(self, rows: int, /) -> None:
        pass

    def note(self, text: str, /) -> None:
        pass


def _key(text: str) -> bytes:
    return hashlib.sha256(text[:MOST_CHARACTERS].encode("utf-8", "surrogatepass")).digest()[:KEY]


def _layout(width: int) -> np.dtype[Any]:
    return np.dtype([("key", f"V{KEY}"), ("vector", "<f2", (width,))])


def _load(path: Path, width: int) -> NDArray[Any]:
    """Return the keys and vectors of a cache file, which are read lazily; none if it is damaged."""
    try:
        kept = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        kept = np.zeros(0)
    return np.asarray(kept) if kept.dtype == _layout(width) and kept.ndim == 1 else np.zeros(0, _layout(width))


def _keep(folder: Path, keys: Sequence[bytes], vectors: Float16) -> None:
    """Add a file to the cache."""
    rows = np.zeros(len(keys), _layout(vectors.shape[1]))
    rows["key"] = np.frombuffer(b"".join(keys), f"V{KEY}")
    rows["vector"] = vectors
    name = hashlib.sha256(b"".join(keys)).hexdigest()
    with atomic_write(folder / f"{name}.npy", NO_SPACE) as file:
        np.save(file, rows)


def as_float64(vectors: Float16) -> Float64:
    """Return vectors as the linear head reads them, renormalised to length 1."""
    return _unit(vectors.astype(np.float64))


def _unit(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12))


def make_folder(folder: Path) -> None:
    """Create a cache folder.

    Raises:
        SurroundingsError: it cannot be created.
    """
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
    logging.disable_progress_bar()  # the callback reports progress
    try:
        return SentenceTransformer(place, device=device)
    # It is not documented what loading may raise because of a file, the network or the library.
    except Exception as error:
        why = " ".join(str(error).split()).rstrip(".")[:300] or type(error).__name__
        if (Path(place) / _MODULES).is_file():
            raise InputError(f"The teacher {place!r} cannot be loaded: {why}; get it anew if it is damaged.") from error
        raise InputError(
            f"The teacher {place!r} is not a folder with a sentence-transformers model, and none could be loaded "
            f"by that name: {why}; give the folder of one."
        ) from error


def _fingerprint(model: Any) -> str:
    """Return a hash of all that determines a vector: layers, weights, vocabulary, and the maximum length."""
    digest = hashlib.sha256(repr((model, model.max_seq_length)).encode())
    for name, weight in sorted(model.state_dict().items()):
        array = weight.detach().cpu().contiguous()
        digest.update(f"{name} {tuple(array.shape)} {array.dtype}".encode())
        # NumPy has no bfloat16; 32 bits represent the same numbers.
        digest.update((array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy().tobytes())
    vocabulary = getattr(model.tokenizer, "get_vocab", None)
    digest.update(repr(sorted(vocabulary().items()) if vocabulary else None).encode())
    return digest.hexdigest()
