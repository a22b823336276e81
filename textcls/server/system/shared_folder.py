"""The shared folder of a service's workers: in memory if possible, and removed with the service."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from textcls._util.file_lock import try_lock
from textcls.errors import SurroundingsError

# The suffix of a file while it is being written.
PART: Final = ".part"
_PREFIX, _OWNER = "textcls-", "owner"
# A folder this young may belong to a service that has not taken its lock yet.
_SETTLED_SECONDS: Final = 5.0


@contextmanager
def shared_folder(wanted: Path | None) -> Iterator[Path]:
    """Create the folder, in `wanted` if that is given, and remove it at the end.

    Raises:
        SurroundingsError: no folder can be written to.
    """
    # None is the temporary folder, which is determined only if needed: with a read-only root there may be none.
    places = [wanted] if wanted is not None else [Path("/dev/shm"), None]
    for place in places:
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        except OSError:
            continue
        _sweep(folder.parent)
        # The lock is held until this process ends, however it ends; workers do not inherit it.
        with (folder / _OWNER).open("w") as owner:
            try_lock(owner.fileno())
            process = os.getpid()
            try:
                yield folder
            finally:
                # A forked child leaves this block, too, and must not remove the folder.
                if os.getpid() == process:
                    shutil.rmtree(folder, ignore_errors=True)
        return
    raise SurroundingsError(
        f"No file can be made in {wanted or '/dev/shm or the temporary folder'}: "
        "name a writable folder with --runtime-dir."
    )


def _sweep(place: Path) -> None:
    """Remove folders in memory left by services that were killed."""
    for owner in place.glob(f"{_PREFIX}*/{_OWNER}"):
        try:
            with owner.open("r+") as file:
                settled = time.time() - owner.stat().st_mtime > _SETTLED_SECONDS
                ended = settled and try_lock(file.fileno())
            if ended:
                shutil.rmtree(owner.parent, ignore_errors=True)
        except OSError:  # in use, another user's, or already removed
            continue


def write(path: Path, data: bytes) -> None:
    """Write a file atomically: it exists as a whole or not at all.

    Raises:
        SurroundingsError: it cannot be written.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}{PART}")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise SurroundingsError(
            f"{path} cannot be written: {os.strerror(error.errno or 0)}; free some space there, or start the service "
            "with --runtime-dir and a folder that has more."
        ) from error


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Turn system errors about the shared folder into one sentence.

    Raises:
        SurroundingsError: it is gone, or something in it cannot be read or created.
    """
    try:
        yield
    except OSError as error:
        raise SurroundingsError(
            f"{error.filename or folder}, which the workers share, cannot be used: "
            f"{os.strerror(error.errno or 0)}; restart the service, and let nothing clear that folder while it "
            "runs."
        ) from error
