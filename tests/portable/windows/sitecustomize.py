"""Lets textcls see what it would see of Python on Windows, wherever it runs. Put this folder on PYTHONPATH.

What the modules of textcls import is what Windows has: no `fcntl` and its like, an `os` and a `signal` without what
POSIX alone has, `sys.platform` of Windows. No file is renamed, replaced or removed while it is open, for anybody.
All other libraries see the machine as it is, since their own ways for Windows cannot be run elsewhere.
"""

import builtins
import fcntl
import os
import signal
import socket
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_OURS = ("textcls", "textcls_training", "textcls_torch", "textcls_kernels")
_MISSING = frozenset({"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty", "uvloop", "triton"})
# What is there on Linux alone, or on all systems but Windows, as the reference of the standard library says.
_NOT_THERE = {
    "os": """
        O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_SYNC chown confstr fchdir fchmod fchown fdatasync fork forkpty
        fstatvfs getegid getgid getgroups getloadavg getpgid getpriority geteuid getuid killpg lchown lockf mkfifo mknod
        nice openpty pipe2 posix_fadvise posix_fallocate posix_spawn pread preadv pwrite pwritev readv register_at_fork
        sched_getaffinity sched_setaffinity sched_yield sendfile setpgid setpriority setsid statvfs sync sysconf ttyname
        uname wait wait3 wait4 waitid writev WIFEXITED WIFSIGNALED""",
    "signal": """
        SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGUSR1 SIGUSR2 SIG_BLOCK SIG_SETMASK SIG_UNBLOCK alarm
        pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigwait""",
    "socket": "AF_UNIX SO_REUSEPORT TCP_NOTSENT_LOWAT",
    "time": "clock_gettime tzset",
}
_INSTEAD: dict[str, dict[str, Any]] = {"os": {"name": "nt"}, "sys": {"platform": "win32"}}


class _AsThere(types.ModuleType):
    """A module without the names that Windows does not have."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(_INSTEAD.get(module.__name__, {}))
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        if name in _NOT_THERE.get(self.__name__, "").split():
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on Windows")
        return getattr(self._module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)


def _msvcrt() -> types.ModuleType:
    """Return what textcls asks of Windows' own module, made of what there is here."""
    module = types.ModuleType("msvcrt")
    module.LK_NBLCK, module.LK_UNLCK = 2, 0  # type: ignore[attr-defined]

    def locking(file: int, mode: int, length: int) -> None:
        del length
        try:
            fcntl.flock(file, fcntl.LOCK_UN if mode == 0 else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error

    module.locking = locking  # type: ignore[attr-defined]
    return module


_HERE: dict[str, types.ModuleType] = {each.__name__: _AsThere(each) for each in (os, signal, socket, sys, time)}
# Not among `sys.modules`, where the standard library looks for it to tell which system this is.
_HERE["msvcrt"] = _msvcrt()
_import = builtins.__import__


def _import_as_there(name: str, scope: Any = None, local: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    caller = (scope or {}).get("__name__") or ""
    if level == 0 and (caller.partition(".")[0] in _OURS):
        if name.partition(".")[0] in _MISSING:
            raise ModuleNotFoundError(f"No module named {name!r} on Windows", name=name)
        if name in _HERE:
            return _HERE[name]
    return _import(name, scope, local, fromlist, level)


def _open_files() -> Iterator[str]:
    # Files that are mapped into memory are open, too.
    for link in Path("/proc/self/fd").iterdir():
        try:
            yield str(link.readlink())
        except OSError:  # closed meanwhile
            continue
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        yield "/" + line.partition("/")[2]


def _refusing_open_files(change: Callable[..., Any]) -> Callable[..., Any]:
    def changed(*arguments: Any, **named: Any) -> Any:
        for path in arguments:
            if isinstance(path, (str, os.PathLike)) and not named:
                named_file = Path(os.fspath(path))
                real = named_file.parent.resolve() / named_file.name
                # Libraries keep files of their own in memory.
                if "site-packages" not in real.parts and str(real) in set(_open_files()):
                    raise PermissionError(13, "The process cannot access the file: it is being used", str(path))
        return change(*arguments, **named)

    return changed


for _name in ("rename", "replace", "remove", "unlink"):
    setattr(os, _name, _refusing_open_files(getattr(os, _name)))
builtins.__import__ = _import_as_there  # type: ignore[assignment]
