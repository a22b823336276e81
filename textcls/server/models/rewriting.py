"""Put a new content into the file of a model that is served: whole or not at all, and never over somebody else's.

Whoever is killed while writing leaves a file beside it, which the next start or rewriting removes.
"""

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from textcls._util.atomic_write import atomic_write, check_output_path, sync_folder
from textcls._util.file_lock import try_lock
from textcls.errors import ArtifactError, SurroundingsError
from textcls.model import artifact

# What the files beside models are called that are being written here.
_KIND: Final = "teaching-"


def check(path: Path) -> None:
    """Refuse a file that cannot be rewritten, before the work.

    Raises:
        SurroundingsError: its folder takes no files.
    """
    try:
        check_output_path(path)
    except SurroundingsError as error:
        why = error.__cause__
        said = f" ({os.strerror(why.errno or 0)})" if isinstance(why, OSError) else ""
        raise SurroundingsError(
            f"What is taught is kept in {path}, whose folder cannot be written to{said}: mount it as a writable volume "
            "of the user of this process, or serve a copy from a folder that is."
        ) from error


def content(path: Path, digest: str, most: int) -> bytes:
    """Return the content of a model file that must still be the one that is served.

    Args:
        path: the file.
        digest: its SHA-256 when it was read.
        most: bytes that it may have.

    Raises:
        ArtifactError: it is another one, or it cannot be read.
    """
    data = artifact.read_file(path, most)
    if sha256(data).hexdigest() != digest:
        raise ArtifactError(
            f"{path} was replaced since it was loaded. Reload first, so that its content is not lost, then try again."
        )
    return data


def is_kept(path: Path, digest: str) -> bool:
    """Say whether a file is there with this SHA-256."""
    try:
        return sha256(artifact.read_file(path)).hexdigest() == digest
    except ArtifactError:
        return False


def replace(path: Path, data: bytes, digest: str, most: int) -> None:
    """Let `data` be the content of a model file, on disk when this returns.

    Args:
        path: the file.
        data: its new content.
        digest: SHA-256 that it must have until then.
        most: bytes that it may have.

    Raises:
        ArtifactError: it is another one, or it cannot be read.
        SurroundingsError: it cannot be written; nothing has changed.
    """
    try:
        with atomic_write(path, "free some space there, and try again", kind=_KIND) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            # Once more, and last: it took some time to come here.
            content(path, digest, most)
        sync_folder(path.resolve().parent)
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be written: {os.strerror(error.errno or 0)}.") from error


def sweep(path: Path) -> None:
    """Remove what those have left beside a model file that were killed while they wrote it."""
    for beside in path.resolve().parent.glob(f".textcls-{_KIND}*"):
        with suppress(OSError), beside.open("rb") as file:  # gone meanwhile, or another user's
            if try_lock(file.fileno()):
                beside.unlink(missing_ok=True)
