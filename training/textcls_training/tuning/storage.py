"""The file that keeps what tuning has measured: a journal of Optuna, which its own tools read as well.

A search is a study. Proposals that were judged are its trials; what single folds gave stands in its attributes, as soon
as it is known. Later proposals depend on the judged ones alone, so whoever goes on proposes the same.
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
# A journal begins each of its lines with this.
_BEGINNING: Final = b'{"'


@contextmanager
def opened(path: Path, identity: Identity) -> Iterator["Storage"]:
    """Open the file at `path`, or make it, for one process.

    Args:
        path: the file.
        identity: what makes this run the one that it is, by the names that people know it by.

    Raises:
        InputError: the file is not a journal, or it is damaged.
        ConfigError: it is that of another run.
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
            # A line that a full disk has cut would spoil the one that is written after it.
            file.truncate(whole)
        yield storage


def _whole_lines(file: IO[bytes], path: Path) -> int:
    """Return how many bytes of a file are whole lines, all of it but what a failed write has left."""
    file.seek(0)
    content = file.read()
    whole = content.rfind(b"\n") + 1
    if content and not (whole and content.startswith(_BEGINNING)):
        raise InputError(f"{path} is not a journal of trials; name another --storage.")
    return whole


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Say of what fails here that it was the journal; what fails in the trainings says so itself."""
    try:
        yield
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be written: {error.strerror}; name another --storage.") from error


class _Journal(JournalFileBackend):
    """The file, as Optuna reads and writes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Not by a link, which few may make on Windows. No other process is here, see `opened`.
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
            # A kill may leave a study that does not yet say whose it is: it has nothing.
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
        """Return the study of this name, made if it is not there."""
        study = optuna.create_study(study_name=name, storage=self._storage, direction="maximize", load_if_exists=True)
        if _IDENTITY not in study.user_attrs:
            study.set_user_attr(_IDENTITY, self._identity)
        return study
