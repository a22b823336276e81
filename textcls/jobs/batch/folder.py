"""Files in, a file of answers for each out: by one process, several, or a cluster; after a kill it goes on.

Answers of a file are there as a whole or not at all, so that what is missing says what is to be done. Which model
answered, and how, stands beside them, since nobody could tell answers of two models in one folder apart.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
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

# Says who answered; readers of folders pass over names that begin so.
MANIFEST: Final = "_textcls.json"
# Of how many files notes are told, and of how many failures the reasons.
SHOWN: Final = 5
# What is written where the format of an input is read alone; CSV for all others.
_WRITTEN_FOR: Final[dict[Format, Format]] = {"json": "jsonl", "arrow": "parquet"}


@dataclass(frozen=True, slots=True)
class FileJob:
    """A file to be answered.

    Attributes:
        source: its path or URL.
        target: those of its answers.
        bytes: its size.
    """

    source: str
    target: str
    bytes: int

    def __str__(self) -> str:
        """Return how a person knows it."""
        return storage.without_secrets(self.source)


@dataclass(frozen=True, slots=True)
class FileAnswered:
    """What came of a file.

    Attributes:
        rows: how many were answered.
        notes: what was found out about the file and is not the default, in sentences.
        skipped: which rows were left out, in a sentence; None if none was.
        seconds: what it took.
    """

    rows: int
    notes: tuple[str, ...]
    skipped: str | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """How each file is answered: what workers load, and what they do with it.

    Attributes:
        model: the content of the model file, so that it need not lie on every machine.
        path: of the model file, for messages.
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
        """Load the model, and return what answers a file."""
        return partial(self._answer, Classifier.from_bytes(self.model, self.path))

    def _answer(self, classifier: Classifier, job: FileJob) -> FileAnswered:
        start, notes, bad = time.monotonic(), list[str](), BadRows(skip=self.skip)
        with storage.fetched(job.source) as source, storage.delivered(job.target) as target:

            def named(said: str) -> str:
                """Call the files by the names that a person knows, where these are copies."""
                shown = storage.without_secrets(job.source), storage.without_secrets(job.target)
                return said.replace(str(source), shown[0]).replace(str(target), shown[1])

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
        """Return what makes the answers what they are, as JSON reads it."""
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
        files: to be answered in this run.
        bytes: of all of them.
        kept: files that were answered before.
        done: files that were answered.
        failed: files that were not, with the sentence that says why.
        rows: that were answered.
        done_bytes: of the files that were answered or not.
        seconds: since the first file was begun.
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
        """Rows a second so far."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """What the rest takes at the pace so far, by bytes; None before the first file was answered."""
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
    """Answer each of the files that `inputs` mean into a file of its own in `output`.

    Files whose answers are there, and no older than themselves, are left as they are.

    Args:
        work: how a file is answered.
        inputs: files, folders or patterns, as paths or URLs.
        output: a folder, likewise; it is made if it is not there.
        run: who does the work.
        say: is given what was found out about the files and is not the default, in sentences.
        tell: is told how far the work has come, at the start and after each file.

    Raises:
        InputError: there are no such files, two have the same name, or some could not be answered.
        ConfigError: the answers in `output` are those of another model, or of other options.
        SurroundingsError: the answers cannot be written, or workers die.
    """
    found = [file for name in inputs for file in storage.find(name)]
    if not found:
        names = " and ".join(map(repr, inputs))
        raise InputError(
            f"There is no file to answer in {names}; of folders in it name the files, as in 'days/*/*.csv'."
        )
    named = _named(found, work.write.format)
    folder = OutputFolder(output)
    _refuse_own_inputs(folder, named)
    before = folder.changed()
    _claim(folder, work.manifest(), before.keys(), named.keys())
    jobs = [
        FileJob(file.name, folder.place(inside), file.bytes)
        for inside, file in named.items()
        if before.get(inside, -1.0) < file.changed
    ]
    # The largest first, so that no worker is left with one when the others have ended.
    jobs.sort(key=lambda job: (-job.bytes, job.source))
    standing = Standing(len(jobs), sum(job.bytes for job in jobs), len(named) - len(jobs))
    for _ in _run(work, jobs, run, standing, say, tell):
        pass
    _refuse_failures(standing, output)
    return standing


def _run(
    work: Answering,
    jobs: Sequence[FileJob],
    run: Engine,
    standing: Standing,
    say: Callable[[Sequence[str]], None],
    tell: Callable[[Standing], None],
) -> Iterator[None]:
    start: float | None = None
    tell(standing)
    for outcome in run(work, jobs):
        if isinstance(outcome, Failed):
            # A full disk would fail all files that follow.
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
            # From when the first file was begun: how long workers take to start says nothing of the pace.
            start = time.monotonic() - outcome.result.seconds if start is None else start
        standing.done_bytes += outcome.job.bytes
        standing.seconds = 0.0 if start is None else time.monotonic() - start
        tell(standing)
        yield


def _named(files: Collection[Found], kind: Format | None) -> dict[str, Found]:
    """Return the files by the names of their answers.

    Raises:
        InputError: two would have the same.
    """
    named: dict[str, Found] = {}
    for file in files:
        name = answers_name(file.inside, kind)
        other = named.setdefault(name, file)
        if other.name != file.name:
            raise InputError(
                f"The answers of {other.name} and of {file.name} would both be called {name}; name their folder by a "
                "pattern, as 'data/*/*.csv', or give each an output of its own."
            )
    return named


def answers_name(inside: str, kind: Format | None = None) -> str:
    """Return how the answers to a file are called: as the file is, with the suffix of their format.

    Args:
        inside: the path of the file within its folder.
        kind: the format that was asked for; by default that of the file, or one near to it if that is read alone.
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
            raise InputError(f"The answers of {file.name} would take its place; choose another folder.")


def _same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:  # one of the two is not there
        return False


def _claim(folder: OutputFolder, manifest: dict[str, Any], there: Collection[str], wanted: Collection[str]) -> None:
    """Write down whose answers the folder holds, or see that they are the same.

    Raises:
        ConfigError: they are not.
    """
    before = _json(folder.read(MANIFEST)) if MANIFEST in there else {}
    if before == manifest:
        return
    held = set(there) - {MANIFEST} if before else set(there) & set(wanted)
    if held:
        differ = ", ".join(key for key, value in manifest.items() if before.get(key) != value)
        raise ConfigError(
            f"{folder.name} holds answers of another run (it differs in {differ}); choose another folder, or empty it."
        )
    folder.write(MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")


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
        f"The others are in {output}; correct {them} and type the same again."
    )


def _reason(name: str, error: TextclsError) -> str:
    said = str(error)
    return said if name in said else f"{name}: {said}"
