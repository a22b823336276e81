"""Replace the content of a model file: as a whole or not at all, and never another file or a published version."""

import os
from hashlib import sha256
from pathlib import Path

from textcls._util.atomic_write import atomic_write, sync_folder
from textcls.errors import ArtifactError, SurroundingsError
from textcls.model.artifact import REGISTRY, read_file


def check_not_published(path: Path) -> None:
    """Refuse a version of a registry, which never changes.

    Raises:
        ArtifactError: the file is one.
    """
    if (path.resolve().parent.parent / REGISTRY).is_file():
        raise ArtifactError(f"{path} is a version of a registry, which never changes: change a copy, and publish that.")


def content(path: Path, digest: str) -> bytes:
    """Return the content of a model file, which must have the same SHA-256 as when it was read.

    Raises:
        ArtifactError: it has changed, or it cannot be read.
    """
    data = read_file(path)
    if sha256(data).hexdigest() != digest:
        raise ArtifactError(
            f"{path} was replaced since it was read, and its content would be lost: give the command again."
        )
    return data


def rewrite(path: Path, data: bytes, digest: str) -> None:
    """Replace the content of a model file by `data`, which is on disk when this returns.

    Args:
        path: the file.
        data: its new content.
        digest: the SHA-256 that it must have until then.

    Raises:
        ArtifactError: it has changed, or it cannot be read.
        SurroundingsError: it cannot be written; nothing has changed.
    """
    try:
        with atomic_write(path, "free some space there, and try again") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            # Check a last time, since some time has passed.
            content(path, digest)
        sync_folder(path.resolve().parent)
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be written: {os.strerror(error.errno or 0)}.") from error
