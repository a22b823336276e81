"""Write a file so that it appears whole or not at all, and know before the work whether it can be written.

A link stays a link: what it points to is replaced. A file that is replaced keeps its mode; that of a new one is what
the umask leaves.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from tempfile import TemporaryFile, mkdtemp
from typing import IO, Final

from textcls._util.addresses import store_of
from textcls._util.file_lock import try_lock
from textcls.errors import ConfigError, InputError, SurroundingsError

# How files are called while they are written.
_BESIDE: Final = ".textcls-"
# One so young may be that of a process which has not yet taken its lock.
_SETTLED_SECONDS: Final = 60.0


# Names of devices, whatever follows a dot, and signs and ends that names there cannot have.
_NOT_ON_WINDOWS: Final = re.compile(
    r'^(con|prn|aux|nul|com[0-9\xb9\xb2\xb3]|lpt[0-9\xb9\xb2\xb3])\s*(\.|$)|[<>:"|?*\0-\x1f]|[. ]$', re.IGNORECASE
)


def check_output_path(path: Path) -> None:
    """Refuse a place that nothing can be written to, before hours of work and not after.

    Raises:
        ConfigError: it is an address.
        SurroundingsError: the folder does not exist or is not writable, or `path` is a folder or another thing that
            is not a plain file, such as a device; or Windows knows no file of that name.
    """
    if os.name == "nt" and _NOT_ON_WINDOWS.search(path.name):
        raise SurroundingsError(f"Windows has no file {path.name!r}: that is a device, or a sign not allowed in names.")
    if store := store_of(path):
        raise ConfigError(f"The output is an address, {store}..., and has to be a file of this machine; copy it there.")
    mode = _mode_of(path)
    folder = path.resolve().parent
    if not folder.is_dir():
        raise SurroundingsError(f"The folder {folder} does not exist; make it first, or choose another output.")
    if mode is not None and stat.S_ISDIR(mode):
        raise SurroundingsError(f"{path} is a folder; name a file in it as the output.")
    if mode is not None and not stat.S_ISREG(mode):
        raise SurroundingsError(f"{path} is not a plain file and cannot be replaced; choose another output.")
    try:
        # Rights alone do not tell: some file systems take no files from anybody.
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SurroundingsError(
            f"The folder {folder} cannot be written to: {os.strerror(error.errno or 0)}; choose another output."
        ) from error


def _mode_of(path: Path) -> int | None:
    """Return the mode of what is at `path`, or of what it links to; None if there is nothing yet."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be written: {os.strerror(error.errno or 0)}.") from error


def make_folder(folder: Path, what: str) -> None:
    """Make a folder where there is none, and refuse one that takes no files; `what` is written into it, for messages.

    Raises:
        SurroundingsError: it cannot be made or written to, or is a file.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise SurroundingsError(f"{folder} is a file; name a folder for {what}.") from error
    except OSError as error:
        raise SurroundingsError(f"{folder} cannot be made: {os.strerror(error.errno or 0)}.") from error
    check_output_path(folder / "new")


def check_not_an_input(output: Path, inputs: Iterable[object]) -> None:
    """Refuse to write over what is being read; what is not a path among `inputs` lies elsewhere.

    Raises:
        InputError: `output` is one of `inputs`, under whatever name.
    """
    for path in inputs:
        if not isinstance(path, Path):
            continue
        try:
            same = output.samefile(path)
        except OSError:  # one of the two is not there
            continue
        if same:
            raise InputError(f"The output {output} is also the input; choose another name.")


@contextmanager
def no_space_for(name: str, advice: str = "free some space, or choose another output") -> Iterator[None]:
    """Say so when there is no room for what is written to `name`, with what to do.

    Raises:
        SurroundingsError: the disk, the quota or the largest size of a file is used up.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise
        raise SurroundingsError(f"{name} cannot be written: {os.strerror(error.errno)}; {advice}.") from error


class _KeptBesideError(SurroundingsError):
    """A file could not take its place, and all that was to be written is beside it."""


@contextmanager
def atomic_write(
    path: Path, advice: str = "free some space, or choose another output", kind: str = ""
) -> Iterator[IO[bytes]]:
    """Open a file beside `path` that takes its place once all is written, and disappears when something goes wrong.

    Args:
        path: what is written, or a link to it.
        advice: what to do if there is no room, for the message.
        kind: stands in the name of the file beside it, for whoever looks for those of killed processes.

    Raises:
        SurroundingsError: as `check_output_path` says; there is no room; or what is at `path` by then cannot be
            replaced, and the whole file is beside it.
    """
    check_output_path(path)
    mode = _mode_of(path)
    # A file is renamed only within its file system, and over a link it would take the place of the link.
    target = path.resolve()
    beside = target.with_name(f"{_BESIDE}{kind}{token_hex(8)}")
    # The umask is applied by the system, to a new file alone; what will get the mode of an old one is closed till then.
    rights = 0o666 if mode is None else 0o600
    _sweep(str(target.parent))
    with no_space_for(str(path), advice):
        try:
            with open(beside, "xb", opener=partial(os.open, mode=rights)) as file:
                with suppress(OSError):  # a file system without locks
                    try_lock(file.fileno())
                yield file
                file.flush()
                if mode is not None:
                    beside.chmod(stat.S_IMODE(mode))
                os.fsync(file.fileno())
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    try:
        beside.replace(target)
    except OSError as error:
        # All that was to be written is there, and may have taken hours.
        kept = target.with_name(f"{target.stem}-{token_hex(4)}{target.suffix}")
        beside.replace(kept)
        raise _KeptBesideError(
            f"{path} cannot be replaced: {os.strerror(error.errno or 0)}; the whole file is {kept}."
        ) from error


@cache
def _sweep(folder: str) -> None:
    """Remove, once a process, what others have left in `folder` that were killed while they wrote."""
    for left in Path(folder).glob(f"{_BESIDE}*"):
        with suppress(OSError):  # gone meanwhile, another user's, or a folder
            if time.time() - left.stat().st_mtime > _SETTLED_SECONDS:
                with left.open("rb") as file:
                    alone = try_lock(file.fileno())
                if alone:
                    left.unlink(missing_ok=True)


def write_computed(path: Path, content: bytes) -> None:
    """Write what has taken long to compute, whole or not at all; where that fails, it is kept in another place.

    Raises:
        SurroundingsError: it cannot be written to `path`; the message says where it is.
    """
    try:
        with atomic_write(path) as file:
            file.write(content)
    except _KeptBesideError:
        raise
    except (SurroundingsError, OSError) as error:
        kept = _kept(path.name, content)
        if kept is None:
            raise
        why = str(error) if isinstance(error, SurroundingsError) else f"{path} cannot be written: {error.strerror}."
        raise SurroundingsError(f"{why} What was computed is not lost: {kept}") from error


def _kept(name: str, content: bytes) -> Path | None:
    """Write a file into a folder of its own among those for temporary files; return None if that fails, too."""
    try:
        folder = Path(mkdtemp(prefix="textcls-"))
    except OSError:
        return None
    try:
        (folder / name).write_bytes(content)
    except OSError:
        rmtree(folder, ignore_errors=True)
        return None
    return folder / name


def sync_folder(folder: Path) -> None:
    """Let the names in `folder` be on disk as the content of its files is: they then outlive a crash of the machine."""
    # Some file systems know no such thing of a folder; then there is nothing more to be done.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
