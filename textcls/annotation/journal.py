"""Keep paid answers in an SQLite file: each is stored as soon as it is given, however the process ends."""

import json
import sqlite3
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, Self

from textcls.errors import ConfigError, SurroundingsError

# Distinguishes such a file from other SQLite files ("tcls").
_APPLICATION: Final = 0x74636C73
# The beginning of every SQLite file.
_MAGIC: Final = b"SQLite format 3\0"
_TABLE: Final = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID"


class JournalEntry(NamedTuple):
    """The answer to a text.

    Attributes:
        probabilities: the probabilities of each label; None if the answer was none of them.
        tokens_in: the tokens that were read to answer it.
        tokens_out: the tokens that were written.
        at: the time, in ISO 8601 format.
        seconds: the seconds that it took.
    """

    probabilities: Sequence[float] | None
    tokens_in: int
    tokens_out: int
    at: str
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """How many tokens were read and written."""
        return self.tokens_in + self.tokens_out


class Journal:
    """A file of answers, for one process at a time.

    Args:
        path: the file; None for answers that are not stored.

    Raises:
        ConfigError: the file is of another kind.
        SurroundingsError: another process is using it, or it cannot be opened.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._file = path, _opened(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def answers(self, *about: str) -> "Answers":
        """Return the answers to one question.

        Args:
            about: who is asked, and what: another model, address or prompt has other answers.
        """
        return Answers(self._file, self._path, about)


class Answers:
    """The answers of one model to one prompt, by text."""

    def __init__(self, file: sqlite3.Connection, path: Path | None, about: Sequence[str]) -> None:
        self._asked, self._path, self._file = "\0".join([*about, ""]), path, file

    def get(self, text: str) -> JournalEntry | None:
        """Return the answer to a text; None if it has not been asked.

        Raises:
            ConfigError: the file is damaged.
        """
        try:
            found = self._file.execute("SELECT answer FROM answers WHERE key = ?", [self._key(text)]).fetchone()
        except sqlite3.DatabaseError as error:
            raise _foreign(self._path, error) from error
        return None if found is None else JournalEntry(*json.loads(found[0]))

    def put(self, text: str, answer: JournalEntry) -> None:
        """Store an answer, however this process ends.

        Raises:
            SurroundingsError: there is no room for it.
        """
        try:
            with self._file:
                self._file.execute("REPLACE INTO answers VALUES (?, ?)", [self._key(text), json.dumps(answer)])
        except sqlite3.OperationalError as error:
            raise SurroundingsError(f"An answer cannot be kept: {error}; free some space, and go on.") from error

    def _key(self, text: str) -> str:
        return sha256((self._asked + text).encode("utf-8", "surrogatepass")).hexdigest()


def _foreign(path: Path | None, error: Exception) -> ConfigError:
    return ConfigError(f"{path} holds no answers of textcls annotate ({error}); move it, or name another output.")


def _opened(path: Path | None) -> sqlite3.Connection:
    """Open the file, which is created if missing, for this process alone."""
    if path is not None and path.is_file() and path.stat().st_size:
        with path.open("rb") as start:
            if start.read(len(_MAGIC)) != _MAGIC:
                raise _foreign(path, sqlite3.DatabaseError("it is not a database"))
    try:
        file = sqlite3.connect(path or ":memory:", timeout=0, isolation_level="IMMEDIATE")
    except sqlite3.OperationalError as error:
        raise SurroundingsError(f"{path} cannot be opened: {error}.") from error
    try:
        file.execute("PRAGMA locking_mode = EXCLUSIVE")
        # Committed data outlives the process, though not a machine failure: answers do not wait for the disk.
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = NORMAL")
        found = file.execute("PRAGMA application_id").fetchone()[0]
        if found != _APPLICATION:
            if file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise sqlite3.DatabaseError("it has other tables")
            file.execute(f"PRAGMA application_id = {_APPLICATION}")
        with file:
            file.execute("BEGIN IMMEDIATE")
            file.execute(_TABLE)
    except sqlite3.OperationalError as error:
        file.close()
        raise SurroundingsError(f"{path} cannot be used ({error}): does another process annotate into it?") from error
    except sqlite3.DatabaseError as error:
        file.close()
        raise _foreign(path, error) from error
    return file
