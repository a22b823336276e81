"""The file of answers: JSON lines that `textcls train` reads, on disk before they are confirmed.

An answer is appended and synchronised. When one is taken back or changed, the whole file is replaced; it is then the
new one or, after a kill, still the old one. A line that a kill has cut off was never confirmed, and is removed; a file
of anything other than answers is left unchanged.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Literal

from textcls._util.atomic_write import atomic_write, check_output_path, no_space_for, sync_folder
from textcls._util.file_lock import try_lock
from textcls.errors import InputError, SurroundingsError
from textcls.model.labels import label_problem

# Why a row was asked for: as one of the first; because it is informative; for the estimate of accuracy; because its
# label is doubtful; or it was not asked for, and keeps the label that it came with.
Chosen = Literal["start", "model", "random", "suspect", "given"]
# The fields of an answer itself; a column with one of these names is not kept beside it.
OWN_FIELDS: Final = ("text", "label", "row", "chosen", "by")
_BEGINNING: Final = b'{"text": "'
_ADVICE: Final = "name another file with --output, or repair it"


@dataclass(frozen=True, slots=True)
class Annotation:
    """The label, or the labels, of a text.

    Attributes:
        text: the text as read.
        labels: one label; if a text may have several, any number.
        row: the text's number among those to be labelled, from 0; None for an answer to another text.
        chosen: why it was asked for.
        by: who answered.
        beside: the other columns of the labelled row, by name.
    """

    text: str
    labels: tuple[str, ...]
    row: int | None = None
    chosen: str | None = None
    by: str | None = None
    beside: Mapping[str, Any] = field(default_factory=dict)

    def line(self, *, several: bool) -> bytes:
        """Return the line of the file."""
        label: Any = list(self.labels) if several else self.labels[0]
        fields: dict[str, Any] = {"text": self.text, "label": label, **self.beside}
        fields |= {} if self.row is None else {"row": self.row + 1}
        fields |= {name: value for name, value in (("chosen", self.chosen), ("by", self.by)) if value is not None}
        # An unpaired surrogate has no UTF-8 form; JSON can escape it.
        try:
            return json.dumps(fields, ensure_ascii=False, default=str).encode() + b"\n"
        except UnicodeEncodeError:
            return json.dumps(fields, default=str).encode() + b"\n"

    @classmethod
    def of_line(cls, line: bytes, *, several: bool) -> "Annotation":
        """Read a line written by `line`, or by a person: only `text` and `label` are required.

        Raises:
            ValueError: it is not such a line; the message says why.
        """
        found = json.loads(line)
        if not isinstance(found, dict) or not isinstance(found.get("text"), str):
            raise ValueError("it is not an object with a text")
        given = found.get("label")
        labels = (given,) if isinstance(given, str) else given
        if isinstance(given, str) == several or not isinstance(labels, list | tuple):
            form = "a list of labels, as --several has it" if several else "one label, a string"
            raise ValueError(f"its label is not {form}")
        for label in labels:
            if not isinstance(label, str) or label_problem(label):
                raise ValueError(f"{label!r} cannot be a label")
        row = found.get("row")
        return cls(
            found["text"],
            tuple(labels),
            row - 1 if type(row) is int and row > 0 else None,
            _name(found.get("chosen")),
            _name(found.get("by")),
            {name: value for name, value in found.items() if name not in OWN_FIELDS},
        )


def _name(found: object) -> str | None:
    return found if isinstance(found, str) else None


class AnnotationsFile:
    """The answers on disk, for one process at a time.

    Attributes:
        path: the path of the file.
        several: whether a text may have several labels.
        answers: its answers, in the order of the lines.
    """

    def __init__(self, path: Path, *, several: bool) -> None:
        """Open the file at `path`, which is created if missing.

        Raises:
            InputError: it contains something other than answers.
            SurroundingsError: it cannot be written, or another process is writing it.
        """
        check_output_path(path)
        self.path, self.several = path, several
        self._file, self._lines = self._opened(), dict[int, bytes]()
        self._as_written = (0, 0)
        try:
            self.answers = self._read()
        except InputError:
            self._file.close()
            raise

    def append(self, answer: Annotation) -> None:
        """Add an answer; it is on disk when this returns.

        Raises:
            SurroundingsError: it could not be written, and is not in the file.
        """
        self._check_ours()
        line, before = answer.line(several=self.several), self._as_written[0]
        try:
            with no_space_for(str(self.path), "free some space; this answer was not saved"):
                self._write(line)
        except (OSError, SurroundingsError) as error:
            self._begin_again(before)
            self._as_written = _stamp(os.fstat(self._file.fileno()))
            if isinstance(error, SurroundingsError):
                raise
            raise SurroundingsError(f"{self.path} cannot be written: {error.strerror}; nothing was saved.") from error
        self._as_written = _stamp(os.fstat(self._file.fileno()))
        self.answers.append(answer)

    def exchange(self, answers: Iterable[Annotation]) -> None:
        """Replace all answers; the file then contains these, or after a failure still the earlier ones.

        Raises:
            SurroundingsError: it cannot be written; the earlier ones stay.
        """
        kept = list(answers)
        # Most are unchanged, and still referenced: no other object has the identity of one.
        line_of = {id(answer): self._lines.get(id(answer)) or answer.line(several=self.several) for answer in kept}
        lines = b"".join(line_of[id(answer)] for answer in kept)
        self._check_ours()
        self._file.close()  # Windows replaces no file that is open.
        try:
            with atomic_write(self.path) as file:
                file.write(lines)
            self.answers, self._lines, self._as_written = kept, line_of, _stamp(self.path.stat())
        finally:
            self._file = self._opened()

    def close(self) -> None:
        """Close the file; an empty one is removed."""
        if not self._file.closed and self._is_there(self._file) and not os.fstat(self._file.fileno()).st_size:
            with suppress(PermissionError):  # Windows removes no file that is open: it stays, empty.
                self.path.unlink(missing_ok=True)
        self._file.close()

    def _opened(self) -> IO[bytes]:
        while True:
            try:
                file = self.path.open("ab", buffering=0)
            except OSError as error:
                raise SurroundingsError(f"{self.path} cannot be written: {error.strerror}; {_ADVICE}.") from error
            if not try_lock(file.fileno()):
                file.close()
                advice = "use its page (two people may), or another --output"
                raise SurroundingsError(f"Another process is labelling into {self.path}; {advice}.")
            if self._is_there(file):
                sync_folder(self.path.resolve().parent)
                return file
            # Between opening and locking, the previous holder of the lock has replaced or removed the file.
            file.close()

    def _check_ours(self) -> None:
        """Reopen the file if that failed after an exchange, and refuse one that another program has changed."""
        if self._file.closed:
            self._file = self._opened()
        if not self._is_there(self._file) or _stamp(os.fstat(self._file.fileno())) != self._as_written:
            raise SurroundingsError(
                f"{self.path} was changed, moved or removed by another program; nothing was saved. End textcls label "
                "with Ctrl-C, and start again from the file as it is."
            )

    def _is_there(self, file: IO[bytes]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.path.stat())
        except FileNotFoundError:
            return False

    def _read(self) -> list[Annotation]:
        data = self.path.read_bytes()
        *lines, last = data.split(b"\n")
        # A last line without a line end is complete if another program wrote it, and torn if a kill cut it off.
        torn = _is_torn(last)
        if last and not torn:
            lines.append(last)
        found = []
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                found.append(Annotation.of_line(line, several=self.several))
            except ValueError as error:
                why = "it is not JSON" if isinstance(error, json.JSONDecodeError) else str(error)
                raise InputError(f"{self.path}, line {number}, is not an answer: {why}; {_ADVICE}.") from error
        if torn:
            self._begin_again(len(data) - len(last))
        elif last:
            self._write(b"\n")
        self._as_written = _stamp(os.fstat(self._file.fileno()))
        return found

    def _write(self, data: bytes) -> None:
        written = 0
        while written < len(data):
            written += self._file.write(data[written:])
        os.fsync(self._file.fileno())

    def _begin_again(self, size: int) -> None:
        os.ftruncate(self._file.fileno(), size)
        self._file.seek(size)
        os.fsync(self._file.fileno())


def _stamp(of: os.stat_result) -> tuple[int, int]:
    """Return the size of a file, and the time of its last change."""
    return of.st_size, of.st_mtime_ns


def _is_torn(line: bytes) -> bool:
    """Return whether a line is the beginning of one that `Annotation.line` writes."""
    begins = line.startswith(_BEGINNING) if len(line) > len(_BEGINNING) else bool(line) and _BEGINNING.startswith(line)
    try:
        json.loads(line)
    except ValueError:
        return begins
    return False


def labels_of(answers: Sequence[Annotation]) -> list[str]:
    """Return all labels of answers, in the order in which they first occur."""
    return list(dict.fromkeys(label for answer in answers for label in answer.labels))
