"""What the rewriting of a model file that is served begins and ends with (`textcls.model.model_file.rewriting`).

Whoever is killed while writing leaves a file beside it, which the next start or rewriting removes.
"""

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from textcls._util.atomic_write import check_output_path
from textcls._util.file_lock import try_lock
from textcls.errors import ArtifactError, SurroundingsError
from textcls.model import artifact

# What the files beside models are called that are being written here.
KIND: Final = "teaching-"


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


def is_kept(path: Path, digest: str) -> bool:
    """Say whether a file is there with this SHA-256."""
    try:
        return sha256(artifact.read_file(path)).hexdigest() == digest
    except ArtifactError:
        return False


def sweep(path: Path) -> None:
    """Remove what those have left beside a model file that were killed while they wrote it."""
    for beside in path.resolve().parent.glob(f".textcls-{KIND}*"):
        with suppress(OSError), beside.open("rb") as file:  # gone meanwhile, or another user's
            if try_lock(file.fileno()):
                beside.unlink(missing_ok=True)
