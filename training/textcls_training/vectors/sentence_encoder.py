"""Sentence vectors of a sentence-transformers model, kept in a cache by content: no text is encoded twice.

The cache has a folder for each model, named by a hash of its weights, and in it files of vectors, each with a hash of
its text. Files are only added, and each appears whole or not at all, so runs side by side do not disturb each other,
and a run that was interrupted goes on where it stopped.
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
# What to do where the cache finds no room.
NO_SPACE: Final = f"free some space, or set {CACHE_VARIABLE} to another folder"
# Texts of a file of the cache, and of them those that the model reads at once. They are sorted by length for that.
CHUNK: Final = 1024
BATCH: Final = 64
# Of the hash of a text so many bytes are kept.
KEY: Final = 16
# The file by which a folder is known as a model.
_MODULES: Final = "modules.json"
# A sentence encoder reads a few hundred tokens; what is far beyond them need not be split into word pieces.
MOST_CHARACTERS: Final = 8000


class Listener(Protocol):
    """Who wants to know how far it is: whoever is told of a training, and any progress bar."""

    def phase(self, name: str, rows: int, /) -> None:
        """So many different texts are wanted."""

    def step(self, rows: int, /) -> None:
        """So many more are there."""

    def note(self, text: str, /) -> None:
        """Something is worth a line."""


def cache_folder() -> Path:
    """Return where vectors are kept: $TEXTCLS_CACHE, else `textcls` in the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
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
        width: the width of a vector.
    """

    def __init__(self, place: str, device: str = "cpu") -> None:
        """Load the model.

        Args:
            place: a folder, or the name of a model on the Hugging Face Hub.
            device: where it computes, as PyTorch names it.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            InputError: there is no such model, or it cannot be loaded, or its weights are not finite.
            SurroundingsError: there can be no cache.
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
        """Return the vectors [texts, width], each of length 1; if somebody ends it meanwhile, zeros are among them.

        Args:
            texts: what to encode.
            listener: told of progress.
            stopped: whether somebody has ended it: asked before each part.

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
        """Return a copy of the model, whose weights may change."""
        return copy.deepcopy(self._model)

    def _read(self, rows_of: Mapping[bytes, list[int]], vectors: Float16) -> list[bytes]:
        """Fill in the vectors that the cache has, and return the keys of the others, in the order of their texts."""
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
    """Return the keys and vectors of a file of the cache, which are read on use; none if it is damaged."""
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
    """Return vectors as the linear head reads them, of length 1 once more."""
    return _unit(vectors.astype(np.float64))


def _unit(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12))


def make_folder(folder: Path) -> None:
    """Make a folder of the cache.

    Raises:
        SurroundingsError: it cannot be made.
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
    logging.disable_progress_bar()  # progress is told by the callback
    try:
        return SentenceTransformer(place, device=device)
    # What loading may raise, of a file, the network or the library, is not written down anywhere.
    except Exception as error:
        why = " ".join(str(error).split()).rstrip(".")[:300] or type(error).__name__
        if (Path(place) / _MODULES).is_file():
            raise InputError(f"The teacher {place!r} cannot be loaded: {why}; get it anew if it is damaged.") from error
        raise InputError(
            f"The teacher {place!r} is not a folder with a sentence-transformers model, and none could be loaded "
            f"by that name: {why}; give the folder of one."
        ) from error


def _fingerprint(model: Any) -> str:
    """Return a hash of all that decides over a vector: layers, weights, vocabulary, and where texts are cut."""
    digest = hashlib.sha256(repr((model, model.max_seq_length)).encode())
    for name, weight in sorted(model.state_dict().items()):
        array = weight.detach().cpu().contiguous()
        digest.update(f"{name} {tuple(array.shape)} {array.dtype}".encode())
        # NumPy has no bfloat16; 32 bits hold the same numbers.
        digest.update((array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy().tobytes())
    vocabulary = getattr(model.tokenizer, "get_vocab", None)
    digest.update(repr(sorted(vocabulary().items()) if vocabulary else None).encode())
    return digest.hexdigest()
