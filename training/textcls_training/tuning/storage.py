"""The file that keeps what tuning has measured: a journal of Optuna, which its own tools read as well.

A search is a study. Proposals that were judged are its trials; what single folds gave stands in its attributes, as soon
as it is known. Later proposals hang on the judged ones alone, so whoever goes on proposes the same.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, Final

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

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
        InputError: the file is no journal, or it is damaged.
        ConfigError: it is that of another run.
        SurroundingsError: it cannot be written, or another process tunes with it.
    """
    optuna.logging.set_verbosity(logging.WARNING)
    try:
        with path.open("ab+") as file:
            try:
                flock(file, LOCK_EX | LOCK_NB)
            except OSError as error:
                raise SurroundingsError(
                    f"Another process tunes with {path}; wait for it, or name another file."
                ) from error
            file.seek(0)
            if file.read(len(_BEGINNING)) not in (b"", _BEGINNING):
                raise InputError(f"{path} is no journal of trials; name another --storage.")
            yield Storage(path, identity)
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be written: {error.strerror}; name another --storage.") from error


class Storage:
    """An open file; see `opened`."""

    def __init__(self, path: Path, identity: Identity) -> None:
        self.path, self._identity = path, dict(identity)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                self._storage = JournalStorage(JournalFileBackend(str(path)))
            names = optuna.study.get_all_study_names(self._storage)
        except (AssertionError, KeyError, ValueError) as error:
            raise InputError(f"{path} is no journal of trials, or it is damaged; name another --storage.") from error
        for name in names:
            self._compare(optuna.load_study(study_name=name, storage=self._storage).user_attrs.get(_IDENTITY))

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
