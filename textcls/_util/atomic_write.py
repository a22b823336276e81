"""Write a file so that it appears whole or not at all, and check before the work that it can be written.

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

# The prefix of files that are being written.
_BESIDE: Final = ".textcls-"
# A file younger than this may belong to a process that has not yet taken its lock.
_SETTLED_SECONDS: Final = 60.0


# Device names, with any suffix, and characters and endings that Windows does not allow in names.
_NOT_ON_WINDOWS: Final = re.compile(
    r'^(con|prn|aux|nul|com[0-9\xb9\xb2\xb3]|lpt[0-9\xb9\xb2\xb3])\s*(\.|$)|[<>:"|?*\0-\x1f]|[. ]$', re.IGNORECASE
)


def check_output_path(path: Path) -> None:
    """Refuse a path that cannot be written to, before hours of work and not after.

    Raises:
        ConfigError: it is an address.
        SurroundingsError: the folder does not exist or is not writable, or `path` is a folder or anything else that
            is not a plain file, such as a device; or Windows does not allow a file of that name.
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
        # Permissions alone do not show this: some file systems accept no files from anyone.
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
    """Make a folder if there is none, and refuse one that is not writable; `what` names its content, for messages.

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
    """Refuse to overwrite what is being read; `inputs` that are not paths are ignored.

    Raises:
        InputError: `output` is one of `inputs`, under whatever name.
    """
    for path in inputs:
        if not isinstance(path, Path):
            continue
        try:
            same = output.samefile(path)
        except OSError:  # one of the two does not exist
            continue
        if same:
            raise InputError(f"The output {output} is also the input; choose another name.")


@contextmanager
def no_space_for(name: str, advice: str = "free some space, or choose another output") -> Iterator[None]:
    """Report that there is no room for what is written to `name`, and what to do.

    Raises:
        SurroundingsError: the disk is full, or the quota or the largest size of a file is reached.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise
        raise SurroundingsError(f"{name} cannot be written: {os.strerror(error.errno)}; {advice}.") from error


class _KeptBesideError(SurroundingsError):
    """A written file could not replace the old one, and was kept, whole, beside it."""


@contextmanager
def atomic_write(
    path: Path, advice: str = "free some space, or choose another output", kind: str = ""
) -> Iterator[IO[bytes]]:
    """Open a file beside `path` that takes its place once all is written, and disappears if something goes wrong.

    Args:
        path: the file to write, or a link to it.
        advice: what to do if there is no room, for the message.
        kind: a part of the temporary file's name, by which files of killed processes can be found.

    Raises:
        SurroundingsError: as `check_output_path` says; there is no room; or what is at `path` by then cannot be
            replaced, and the whole file is beside it.
    """
    check_output_path(path)
    mode = _mode_of(path)
    # A file can be renamed only within its file system, and renaming it to a link would replace the link.
    target = path.resolve()
    beside = target.with_name(f"{_BESIDE}{kind}{token_hex(8)}")
    # The system applies the umask to a new file; one that will get the mode of an old file stays private until then.
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
        # The content is complete, and may have taken hours.
        kept = target.with_name(f"{target.stem}-{token_hex(4)}{target.suffix}")
        beside.replace(kept)
        raise _KeptBesideError(
            f"{path} cannot be replaced: {os.strerror(error.errno or 0)}; the whole file is {kept}."
        ) from error


@cache
def _sweep(folder: str) -> None:
    """Remove, once per process, the files that killed processes were writing in `folder`."""
    for left in Path(folder).glob(f"{_BESIDE}*"):
        with suppress(OSError):  # gone meanwhile, another user's, or a folder
            if time.time() - left.stat().st_mtime > _SETTLED_SECONDS:
                with left.open("rb") as file:
                    alone = try_lock(file.fileno())
                if alone:
                    left.unlink(missing_ok=True)


def write_computed(path: Path, content: bytes) -> None:
    """Write what took long to compute, whole or not at all; if that fails, keep it in another place.

    Raises:
        SurroundingsError: it cannot be written to `path`; the message says where it is, if it could be kept.
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
    """Write a file into a new temporary folder, and return its path; None if that fails, too."""
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
    """Sync the names in `folder` to disk, as the content of its files is, so that they survive a machine crash."""
    # Some file systems cannot sync a folder; then there is nothing more to do.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
