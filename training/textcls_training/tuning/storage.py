"""The file of what tuning has measured: an Optuna journal, which Optuna's tools can read as well.

A search is a study. Judged proposals are its trials; results of single folds are stored in its attributes as soon as
they are known. Later proposals only depend on the judged ones, so a continued search proposes the same.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Final

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from textcls._util.file_lock import try_lock
from textcls.errors import ConfigError, InputError, SurroundingsError

Identity = Mapping[str, Any]
_IDENTITY: Final = "textcls"
# Each line of a journal begins with this.
_BEGINNING: Final = b'{"'


@contextmanager
def opened(path: Path, identity: Identity) -> Iterator["Storage"]:
    """Open or create the file at `path`, for one process.

    Args:
        path: the file.
        identity: what identifies this run, by names that users know.

    Raises:
        InputError: the file is not a journal, or it is damaged.
        ConfigError: it belongs to another run.
        SurroundingsError: it cannot be written, or another process tunes with it.
    """
    optuna.logging.set_verbosity(logging.WARNING)
    with ExitStack() as kept:
        with _naming(path):
            file = kept.enter_context(path.open("ab+"))
            if not try_lock(file.fileno()):
                raise SurroundingsError(f"Another process tunes with {path}; wait for it, or name another file.")
            whole = _whole_lines(file, path)
            storage = Storage(path, identity)
            # A line truncated by a full disk would corrupt the one written after it.
            file.truncate(whole)
        yield storage


def _whole_lines(file: IO[bytes], path: Path) -> int:
    """Return how many bytes of a file are whole lines: all except the remains of a failed write."""
    file.seek(0)
    content = file.read()
    whole = content.rfind(b"\n") + 1
    if content and not (whole and content.startswith(_BEGINNING)):
        raise InputError(f"{path} is not a journal of trials; name another --storage.")
    return whole


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the journal in errors raised here; errors in trainings name their own source."""
    try:
        yield
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be written: {error.strerror}; name another --storage.") from error


class _Journal(JournalFileBackend):
    """The file, as Optuna reads and writes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # No lock by a link, which few users may create on Windows. No other process is here, see `opened`.
        super().__init__(str(path), JournalFileOpenLock(str(path)))

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        with _naming(self._path):
            super().append_logs(logs)


class Storage:
    """An open file; see `opened`."""

    def __init__(self, path: Path, identity: Identity) -> None:
        self.path, self._identity = path, dict(identity)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                self._storage = JournalStorage(_Journal(path))
            names = optuna.study.get_all_study_names(self._storage)
        except (AssertionError, KeyError, ValueError) as error:
            raise InputError(f"{path} is not a journal of trials, or it is damaged; name another --storage.") from error
        for name in names:
            study = optuna.load_study(study_name=name, storage=self._storage)
            # A kill may leave a study without its identity: it is empty.
            if study.user_attrs or study.trials:
                self._compare(study.user_attrs.get(_IDENTITY))

    def _compare(self, noted: Any) -> None:
        if noted == self._identity:
            return
        if not isinstance(noted, dict):
            raise ConfigError(f"{self.path} holds trials of another program; name another --storage.")
        different = [name for name, now in self._identity.items() if noted.get(name) != now]
        raise ConfigError(
            f"{self.path} holds trials of other {' and '.join(different)}; name another --storage, or remove it."
        )

    def study(self, name: str) -> optuna.Study:
        """Return the study with this name, created if it does not exist."""
        study = optuna.create_study(study_name=name, storage=self._storage, direction="maximize", load_if_exists=True)
        if _IDENTITY not in study.user_attrs:
            study.set_user_attr(_IDENTITY, self._identity)
        return study
