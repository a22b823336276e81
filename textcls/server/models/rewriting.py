"""The start and end of rewriting a served model file (`textcls.model.model_file.rewriting`).

A process that is killed while writing leaves a file beside it, which the next start or rewrite removes.
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

# The name prefix of the files beside models that are being written here.
KIND: Final = "teaching-"


def check(path: Path) -> None:
    """Refuse a file that cannot be rewritten, before any work is done.

    Raises:
        SurroundingsError: no file can be created in its folder.
    """
    try:
        check_output_path(path)
    except SurroundingsError as error:
        why = error.__cause__
        reason = f" ({os.strerror(why.errno or 0)})" if isinstance(why, OSError) else ""
        raise SurroundingsError(
            f"What is taught is kept in {path}, whose folder cannot be written to{reason}: mount it as a "
            "writable volume of the user of this process, or serve a copy from a folder that is."
        ) from error


def is_kept(path: Path, digest: str) -> bool:
    """Return whether the file exists and has this SHA-256."""
    try:
        return sha256(artifact.read_file(path)).hexdigest() == digest
    except ArtifactError:
        return False


def sweep(path: Path) -> None:
    """Remove what processes that were killed while writing have left beside a model file."""
    for beside in path.resolve().parent.glob(f".textcls-{KIND}*"):
        with suppress(OSError), beside.open("rb") as file:  # gone meanwhile, or another user's
            if try_lock(file.fileno()):
                beside.unlink(missing_ok=True)
