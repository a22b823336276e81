"""The folder that the workers of a service share: in memory if possible, gone with the service."""

import fcntl
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from textcls.errors import SurroundingsError

_PREFIX, _OWNER = "textcls-", "owner"
# A folder so young may be that of a service which has not yet taken its lock.
_SETTLED_SECONDS: Final = 5.0


@contextmanager
def shared_folder(wanted: Path | None) -> Iterator[Path]:
    """Make the folder, in `wanted` if that is given, and remove it in the end.

    Raises:
        SurroundingsError: no folder can be written to.
    """
    # None is the temporary folder, which is looked for only then: with a read-only root there may be none.
    places = [wanted] if wanted is not None else [Path("/dev/shm"), None]
    for place in places:
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        except OSError:
            continue
        _sweep(folder.parent)
        # Held as long as this process lives, however it ends; workers do not inherit it.
        with (folder / _OWNER).open("w") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        return
    raise SurroundingsError(
        f"No file can be made in {wanted or '/dev/shm or the temporary folder'}: "
        "name a writable folder with --runtime-dir."
    )


def _sweep(place: Path) -> None:
    """Remove what services that were killed have left in memory."""
    for owner in place.glob(f"{_PREFIX}*/{_OWNER}"):
        try:
            with owner.open("r+") as file:
                if time.time() - owner.stat().st_mtime > _SETTLED_SECONDS:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(owner.parent, ignore_errors=True)
        except OSError:  # alive, another user's, or gone meanwhile
            continue
