"""Train many models at once: one per group of rows, or per file, with the same bytes as training each alone."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from textcls.data import Bad, BadRows, ReadOptions, TargetOptions, compression, read_labelled
from textcls.data.rows import Unreadable
from textcls.errors import InputError
from textcls.model.labels import written
from textcls.versions.record import is_plain
from textcls_training.config.settings import from_options
from textcls_training.data.labelled_texts import Rows, labelled_texts_of

# The most bytes of a name that file systems allow, without the suffix.
_LONGEST: Final = 250


@dataclass(frozen=True, slots=True)
class ModelJob:
    """A model to be trained.

    Attributes:
        name: the name of the group, or of the file.
        output: the model file.
        rows: its rows; None if they are to be read from `source`.
        source: a labelled file.
    """

    name: str
    output: Path
    rows: Rows | None = None
    source: Path | None = None

    def __str__(self) -> str:
        """Return its display name."""
        return self.name


class ModelTrained(NamedTuple):
    """The result of training a model.

    Attributes:
        rows: the number of rows that it was trained on.
        labels: the number of labels that it knows.
        accuracy: on validation rows; None if there were none, or texts may have several labels.
        file_bytes: size of its file.
        seconds: the time that it took.
        skipped: rows that were left out, in a sentence.
    """

    rows: int
    labels: int
    accuracy: float | None
    file_bytes: int
    seconds: float
    skipped: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How each model is trained.

    Attributes:
        settings: the options of `textcls train`.
        text_columns: the columns of the texts, for files that are read by the workers.
        label_column: likewise the column of the labels.
        targets: likewise how labels are written.
        options: likewise how the files are read.
        skip: likewise whether rows that cannot be used are left out.
    """

    settings: Mapping[str, Any]
    text_columns: tuple[str, ...] = ()
    label_column: str | None = None
    targets: TargetOptions
    options: ReadOptions
    skip: bool = False

    def ready(self) -> Callable[[ModelJob], ModelTrained]:
        """Check the options, and return a function that trains a model."""
        from_options(dict(self.settings))
        return self._train

    def _train(self, job: ModelJob) -> ModelTrained:
        from textcls_training.pipeline import (
            training as pipeline,  # Late: it imports what training needs, which takes seconds.
        )

        start, bad = time.monotonic(), BadRows(skip=self.skip)
        rows = job.rows if job.rows is not None else self._read(job, bad)
        given = labelled_texts_of(rows, self.targets)
        report = pipeline.train(given, job.output, from_options(dict(self.settings)), new_labels=False)
        held = report.held_out
        accuracy = getattr(held, "accuracy", None) if held.rows else None
        seconds = time.monotonic() - start
        return ModelTrained(report.rows, len(held.labels), accuracy, report.file_bytes, seconds, bad.summary())

    def _read(self, job: ModelJob, bad: BadRows) -> Rows:
        if job.source is None:
            raise ValueError("a model has either rows or a file of them")
        return read_labelled(
            [job.source], self.text_columns, self.label_column, options=self.options, bad=bad, targets=self.targets
        )


def jobs_of_groups(rows: Rows, column: str, output: Path, bad: BadRows) -> list[ModelJob]:
    """Return a job for each value of `column`, in order of first occurrence; rows without a value go to `bad`.

    Raises:
        InputError: a row has no value there, and `bad` skips none; or no row has one.
    """
    groups: dict[str, list[int]] = {}
    for i, value in enumerate(rows.more[column]):
        if isinstance(value, Unreadable):
            bad.add(Bad(str(rows.places[i]), value.problem(column)))
            continue
        if not (name := written(value)):
            why = f"column {column!r}, by which models are told apart, has no value; fill it in, or remove the row, or "
            bad.add(Bad(str(rows.places[i]), f"{why}leave out all such rows with --on-error skip"))
            continue
        groups.setdefault(name, []).append(i)
    if not groups:
        raise InputError(f"No row has a value in column {column!r}, by which models are told apart.")
    return [ModelJob(name, output / file_name(name), rows.only(numbers)) for name, numbers in groups.items()]


def jobs_of_files(files: Sequence[Path], output: Path) -> list[ModelJob]:
    """Return a job for each file, whose model has the same name.

    Raises:
        InputError: two have the same name.
    """
    jobs: dict[Path, ModelJob] = {}
    for path in files:
        bare = path if compression.by_name(path) is None else path.with_suffix("")
        target = output / file_name(bare.stem)
        other = jobs.setdefault(target, ModelJob(str(path), target, source=path))
        if other.source != path:
            raise InputError(f"The models of {other.source} and {path} would both be called {target.name}; rename one.")
    return list(jobs.values())


def file_name(group: str) -> str:
    """Return the name of the model file of a group or file; characters that names do not allow become %XX.

    The end of a name that is too long is replaced by its hash.
    """
    quoted = "".join(sign if is_plain(sign) else "".join(f"%{byte:02X}" for byte in _bytes(sign)) for sign in group)
    if quoted.startswith((".", " ")):
        quoted = f"%{ord(quoted[0]):02X}{quoted[1:]}"
    if len(_bytes(quoted)) > _LONGEST:
        end = f"~{sha256(_bytes(group)).hexdigest()[:12]}"
        quoted = _bytes(quoted)[: _LONGEST - len(end)].decode("utf-8", "ignore") + end
    return f"{quoted}.onnx"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
