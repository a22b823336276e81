"""Files in, one file of answers for each out: in one process, several, or on a cluster; a killed run can be resumed.

The answers to a file appear whole or not at all, so missing ones show what remains to be done. Which model answered
which file, and how, is recorded beside them, since the answers of two models, or to an earlier state of a file, could
not be told apart in one folder.
"""

import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from math import isnan
from pathlib import Path, PurePosixPath
from typing import Any, Final

from textcls.data import BadRows, ReadOptions, compression, formats, storage, writing
from textcls.data.rows import Format
from textcls.data.storage import Found, OutputFolder
from textcls.data.writing import WriteOptions
from textcls.errors import ConfigError, InputError, SurroundingsError, TextclsError
from textcls.jobs import Engine, Failed
from textcls.jobs.batch.answer_columns import AnswerColumns
from textcls.jobs.batch.files import predict_files
from textcls.model.classifier import Classifier

# Records how the files were answered; readers of folders skip names that begin with an underscore.
MANIFEST: Final = "_textcls.json"
# Its entry that maps each file of answers to the file that they answer.
_FILES: Final = "files"
# The number of files whose size and time are asked for at once, on web servers.
_ASKED_AT_ONCE: Final = 16
_ANOTHER: Final = "choose another folder, or empty it"
# The most files whose notes are reported, and the most failures whose reasons are.
SHOWN: Final = 5
# The output format for input formats that are read only; CSV for all others.
_WRITTEN_FOR: Final[dict[Format, Format]] = {"json": "jsonl", "arrow": "parquet"}


@dataclass(frozen=True, slots=True)
class FileJob:
    """A file to be answered.

    Attributes:
        source: its path or URL.
        target: the path or URL of its answers.
        bytes: its size.
    """

    source: str
    target: str
    bytes: int

    def __str__(self) -> str:
        """Return the name of the file for messages."""
        return storage.without_secrets(self.source)


@dataclass(frozen=True, slots=True)
class FileAnswered:
    """The outcome of a file.

    Attributes:
        rows: how many were answered.
        notes: what was detected in the file and is not the default, in sentences.
        skipped: which rows were left out, in a sentence; None if none were.
        seconds: how long it took.
    """

    rows: int
    notes: tuple[str, ...]
    skipped: str | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """How each file is answered: what workers load, and what they do with it.

    Attributes:
        model: the content of the model file, so that the file need not be on every machine.
        path: the path of the model file, for messages.
        answer: the columns that are added.
        text_columns: as `predict_files` says.
        write: how the answers are written.
        options: how the files are read.
        skip: whether rows that cannot be used are left out.
    """

    model: bytes
    path: Path
    answer: AnswerColumns
    text_columns: tuple[str, ...] = ()
    write: WriteOptions = field(default_factory=WriteOptions)
    options: ReadOptions = field(default_factory=ReadOptions)
    skip: bool = False

    def ready(self) -> Callable[[FileJob], FileAnswered]:
        """Load the model, and return the function that answers a file."""
        return partial(self._answer, Classifier.from_bytes(self.model, self.path))

    def _answer(self, classifier: Classifier, job: FileJob) -> FileAnswered:
        start, notes, bad = time.monotonic(), list[str](), BadRows(skip=self.skip)
        with storage.fetched(job.source) as source, storage.delivered(job.target) as target:

            def named(message: str) -> str:
                """Replace the paths of local copies by the names that the user gave."""
                shown = storage.without_secrets(job.source), storage.without_secrets(job.target)
                return message.replace(str(source), shown[0]).replace(str(target), shown[1])

            try:
                rows = self._predict(classifier, source, target, notes, bad)
            except TextclsError as error:
                error.args = (named(str(error)),)
                raise
        skipped = named(bad.summary() or "") or None
        return FileAnswered(rows, tuple(map(named, notes)), skipped, time.monotonic() - start)

    def _predict(self, classifier: Classifier, source: Path, target: Path, notes: list[str], bad: BadRows) -> int:
        return predict_files(
            classifier,
            [source],
            target,
            self.answer,
            text_columns=self.text_columns,
            write=self.write,
            options=self.options,
            bad=bad,
            say=notes.extend,
        )

    def manifest(self) -> dict[str, Any]:
        """Return everything that determines the answers, as plain JSON data."""
        found = {
            "model_sha256": sha256(self.model).hexdigest(),
            "answer": asdict(self.answer),
            "text_columns": self.text_columns,
            "write": asdict(self.write),
            "read": asdict(self.options),
            "skip_bad_rows": self.skip,
        }
        plain: dict[str, Any] = json.loads(json.dumps(found))
        return plain


@dataclass(slots=True)
class Standing:
    """How far a run has come.

    Attributes:
        files: the number of files to answer in this run.
        bytes: their total size in bytes.
        kept: the number of files that were answered before.
        done: the number of files answered so far.
        failed: the files that could not be answered, with the errors that say why.
        rows: the number of rows answered so far.
        done_bytes: the total size of the files that are done, answered or failed.
        seconds: time since the first file was begun.
    """

    files: int
    bytes: int
    kept: int
    done: int = 0
    failed: list[tuple[str, TextclsError]] = field(default_factory=list)
    rows: int = 0
    done_bytes: int = 0
    seconds: float = 0.0

    @property
    def rows_per_second(self) -> float:
        """Rows per second so far."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The time left at the pace so far, by bytes; None before the first file is answered."""
        if not self.seconds or not self.done_bytes:
            return None
        return self.seconds * (self.bytes - self.done_bytes) / self.done_bytes


def answer_folder(
    work: Answering,
    inputs: Sequence[str],
    output: str,
    run: Engine,
    say: Callable[[Sequence[str]], None] = lambda notes: None,
    tell: Callable[[Standing], None] = lambda standing: None,
) -> Standing:
    """Answer each of the files that `inputs` name, into a file of its own in `output`.

    Files that have answers there, and have not changed since, are skipped.

    Args:
        work: how a file is answered.
        inputs: files, folders or patterns, as paths or URLs.
        output: the path or URL of a folder; it is made if it does not exist.
        run: the engine that does the work.
        say: takes notes on what was detected in the files and is not the default, in sentences.
        tell: is called with the progress, at the start and after each file.

    Raises:
        InputError: there are no such files, two have the same name, or some could not be answered.
        ConfigError: the answers in `output` are from another model, from other options, or to other files.
        SurroundingsError: the answers cannot be written, or workers die.
    """
    found = [file for name in inputs for file in storage.find(name)]
    if not found:
        names = " and ".join(repr(storage.without_secrets(name)) for name in inputs)
        raise InputError(
            f"There is no file to answer in {names}; of folders in it name the files, as in 'days/*/*.csv'."
        )
    named = _named(found, work.write.format)
    folder = OutputFolder(output)
    _refuse_own_inputs(folder, named)
    there = folder.files()
    answered = _Answered(folder, work.manifest(), there, named)
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as threads:
        named = dict(zip(named, threads.map(storage.dated, named.values()), strict=True))
    kept = {inside for inside, file in named.items() if inside in there and answered.is_of(inside, file)}
    todo = {inside: file for inside, file in named.items() if inside not in kept}
    jobs = [FileJob(file.name, folder.place(inside), file.bytes) for inside, file in todo.items()]
    redone = there & todo.keys()
    if jobs:
        # Leave out files to redo: old answers may be there until the end, and this run may be killed before then.
        answered.write({inside: file for inside, file in named.items() if inside not in redone})
    # The largest first, so that no worker is left with a large one when the others have ended.
    jobs.sort(key=lambda job: (-job.bytes, job.source))
    standing = Standing(len(jobs), sum(job.bytes for job in jobs), len(kept))
    _run(work, jobs, run, standing, say, tell)
    failed = {name for name, _ in standing.failed}
    if redone:
        answered.write({inside: file for inside, file in named.items() if file.name not in failed})
    _refuse_failures(standing, output)
    return standing


def _run(
    work: Answering,
    jobs: Sequence[FileJob],
    run: Engine,
    standing: Standing,
    say: Callable[[Sequence[str]], None],
    tell: Callable[[Standing], None],
) -> None:
    start: float | None = None
    tell(standing)
    for outcome in run(work, jobs):
        if isinstance(outcome, Failed):
            # A full disk, for example, would fail all later files, too.
            if isinstance(outcome.error, SurroundingsError):
                raise outcome.error
            standing.failed.append((outcome.job.source, outcome.error))
            say([f"not answered: {_reason(outcome.job.source, outcome.error)}"])
        else:
            # Many files of one kind would all give the same notes.
            say(outcome.result.notes if standing.done < SHOWN else ())
            say([outcome.result.skipped] if outcome.result.skipped else ())
            standing.done += 1
            standing.rows += outcome.result.rows
            # Count from when the first file was begun: the time that workers take to start says nothing about the pace.
            start = time.monotonic() - outcome.result.seconds if start is None else start
        standing.done_bytes += outcome.job.bytes
        standing.seconds = 0.0 if start is None else time.monotonic() - start
        tell(standing)


def _named(files: Collection[Found], kind: Format | None) -> dict[str, Found]:
    """Return the files by the names of their answers.

    Raises:
        InputError: the answers of two files would have the same name.
    """
    named: dict[str, Found] = {}
    for file in files:
        name = answers_name(file.inside, kind)
        other = named.setdefault(name, file)
        if other.name != file.name:
            raise InputError(
                f"The answers of {other} and of {file} would both be called {name}; name their folder by a pattern, "
                "as 'data/*/*.csv', or give each an output of its own."
            )
    return named


def answers_name(inside: str, kind: Format | None = None) -> str:
    """Return the name of the answers to a file: that of the file, with the suffix of their format.

    Args:
        inside: the path of the file within its folder.
        kind: the format that was asked for; by default that of the file, or a similar one if that is read only.
    """
    path = PurePosixPath(inside)
    packed = path.suffix if compression.by_name(Path(inside)) is not None else ""
    bare = path.with_suffix("") if packed else path
    own = formats.by_name(Path(bare))
    if kind is None and own in writing.WRITTEN:
        return inside
    written = kind or (_WRITTEN_FOR.get(own, "csv") if own else "csv")
    if own == written:
        return inside
    bare = bare.with_suffix("") if own or bare.suffix.lower() == ".txt" else bare
    return f"{bare}.{written}{packed}"


def _refuse_own_inputs(folder: OutputFolder, named: Mapping[str, Found]) -> None:
    for inside, file in named.items():
        place = folder.place(inside)
        if place == file.name or (not storage.is_url(place) and _same(Path(place), Path(file.name))):
            raise InputError(f"The answers of {file} would take its place; choose another folder.")


def _same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:  # one of the two does not exist
        return False


class _Answered:
    """Which run a folder's answers are from, and which files they answer, as its manifest says.

    Raises:
        ConfigError: they are from another run.
    """

    def __init__(
        self, folder: OutputFolder, manifest: dict[str, Any], there: Collection[str], wanted: Collection[str]
    ) -> None:
        before = _json(folder.read(MANIFEST)) if MANIFEST in there else {}
        self._folder, self._manifest = folder, manifest
        self._wanted, self._files = wanted, _files_of(before)
        before.pop(_FILES, None)
        held = {*there} - {MANIFEST} if before else {*there} & {*wanted}
        if held and before != manifest:
            differ = ", ".join(key for key, value in manifest.items() if before.get(key) != value)
            raise ConfigError(f"{self} holds answers of another run (it differs in {differ}); {_ANOTHER}.")

    def __str__(self) -> str:
        return storage.without_secrets(self._folder.name)

    def is_of(self, inside: str, file: Found) -> bool:
        """Return whether the answers called `inside` are to `file` as it is now.

        Raises:
            ConfigError: they are to another file.
        """
        known = self._files.get(inside)
        if not isinstance(known, list) or not known:
            return False
        name, *state = _origin(file)
        # If the other file is gone, this one is taken to be the same, moved.
        gone = not (storage.is_url(name) or storage.is_url(known[0]) or os.path.lexists(known[0]))
        if known[0] != name and not gone:
            raise ConfigError(f"In {self}, {inside} holds the answers to {known[0]}, and not to {name}; {_ANOTHER}.")
        return known[1:] == state and None not in state

    def write(self, files: Mapping[str, Found]) -> None:
        """Record which of the wanted files the answers, once they are there, belong to."""
        # What other runs have recorded meanwhile stays.
        now = _files_of(_json(self._folder.read(MANIFEST)))
        others = {inside: of for inside, of in now.items() if inside not in self._wanted}
        whole = {**self._manifest, _FILES: {**others, **{inside: _origin(file) for inside, file in files.items()}}}
        self._folder.write(MANIFEST, json.dumps(whole, indent=1).encode() + b"\n")


def _files_of(manifest: dict[str, Any]) -> dict[str, Any]:
    files = manifest.get(_FILES)
    return files if isinstance(files, dict) else {}


def _origin(file: Found) -> list[Any]:
    """Return the name of a file, its size and its time of change (None if unknown), as plain JSON data."""
    here = os.path.abspath(file.name)  # noqa: PTH100 - links keep their own names
    name = storage.without_secrets(file.name) if storage.is_url(file.name) else here
    return [name, file.bytes, None if isnan(file.changed) else file.changed]


def _json(content: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(content or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _refuse_failures(standing: Standing, output: str) -> None:
    if not standing.failed:
        return
    were, them = ("were", "these") if len(standing.failed) > 1 else ("was", "it")
    first = " ".join(_reason(name, error) for name, error in standing.failed[:SHOWN])
    more = f" And {len(standing.failed) - SHOWN:,} more." if len(standing.failed) > SHOWN else ""
    raise InputError(
        f"{len(standing.failed):,} of {standing.files + standing.kept:,} files {were} not answered: {first}{more} "
        f"The others are in {storage.without_secrets(output)}; correct {them} and type the same again."
    )


def _reason(name: str, error: TextclsError) -> str:
    message, shown = str(error), storage.without_secrets(name)
    return message if shown in message else f"{shown}: {message}"
