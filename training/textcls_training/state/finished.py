"""What is kept of a finished training, so that another can continue from it with more rows.

    rows            all of them, or a sample to rehearse (`rehearsal`)
    counts          how often tokens and pairs of neighbours occurred in all rows; unless all rows are kept
    facts           options, labels, what was resolved of the model

Beside it stand the last checkpoints of the fits, again unless all rows are kept.
"""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from textcls.data.label_names import LabelNames
from textcls.data.labelled import NOTHING_USUAL, Usual
from textcls.data.targets import TargetOptions
from textcls.errors import InputError
from textcls_training.data.earlier_counts import EarlierCounts
from textcls_training.state import arrays_file
from textcls_training.state.arrays_file import Arrays, DamagedError
from textcls_training.state.folder import FINISHED, FORMAT, file_of
from textcls_training.state.rehearsal import Rehearsal, text_arrays, texts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts about a finished training, as plain data.

    Attributes:
        labels: their names, in the order of their numbers.
        several: whether a text may have several.
        rows: how many rows there were in all, in earlier trainings, too.
        splits: how many train-valid splits there were.
        all_rows: the name of the fit on all rows.
        options: those of the training.
        features, model: as in the metadata of a model.
        even_attention, least_buckets: as in `ResolvedConfig`.
        vectors: "none", "english", or the file of the vectors that are part of the model.
        vectors_sha256: the hash of that file.
        alone: why no other training can continue from this one; None if one can.
        whole: whether all rows are kept.
        text_columns, label_column: of its files.
        labels_written: how labels are written if a text may have several (`TargetOptions.to_json`).
        renamed: the label of each alternative name in the rows.
        learned_texts: the hashes of the rows of all trainings (`LearnedTexts.to_json`).
        weight_column: the column of the weights of rows; None if all counted the same.
        valid: whether there were validation rows of their own.
    """

    labels: list[str]
    several: bool
    rows: int
    splits: int
    all_rows: str
    options: dict[str, Any]
    features: dict[str, Any]
    model: dict[str, Any]
    even_attention: bool
    least_buckets: int
    vectors: str
    vectors_sha256: str | None
    alone: str | None
    whole: bool
    text_columns: list[str]
    label_column: str
    labels_written: dict[str, Any]
    renamed: dict[str, str]
    learned_texts: dict[str, Any]
    weight_column: str | None = None
    valid: bool = False

    @classmethod
    def of(cls, path: Path) -> "Facts":
        """Read only the facts about the finished training in the folder at `path`.

        Raises:
            InputError: as of `Finished.load`.
        """
        file = _file_at(path)
        try:
            return cls._checked(arrays_file.read_about(file), path)
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(file) from error

    @classmethod
    def _checked(cls, about: dict[str, Any], path: Path) -> "Facts":
        if about.pop("format") != FORMAT:
            raise ValueError("another format")
        facts = cls(**about)
        if facts.alone:
            raise InputError(f"No training can continue from {path}: {facts.alone}; train on all rows again.")
        return facts

    def usual(self) -> Usual:
        """Return the columns that are looked for first in files of new rows."""
        names = LabelNames.of_state(self.labels, self.label_column, self.renamed, several=self.several)
        return Usual(tuple(self.text_columns), self.label_column, names=names)

    def usual_targets(self) -> TargetOptions:
        """Return how labels are usually written there."""
        return TargetOptions.from_json(self.labels_written) if self.several else NOTHING_USUAL


def _file_at(path: Path) -> Path:
    """Return the file of the finished training in a folder.

    Raises:
        InputError: there is none, or it has not finished.
    """
    file = path / FINISHED
    if not file.exists():
        why = "has not finished; give its command once more" if file_of(path).exists() else "is not there"
        raise InputError(f"The training whose state is to be in {path} {why}.")
    return file


def _damaged(file: Path) -> DamagedError:
    return DamagedError(f"{file} is damaged, or of another version; train again.")


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished training.

    Attributes:
        path: the folder of its state.
        facts: the facts about it.
        rehearsal: the rows that are kept.
        counts: the counts of all rows; None if all are kept.
        sha256: the SHA-256 of the file that holds all this.
    """

    path: Path
    facts: Facts
    rehearsal: Rehearsal
    counts: EarlierCounts | None
    sha256: str

    @classmethod
    def load(cls, path: Path) -> "Finished":
        """Read the finished training in the folder at `path`.

        Raises:
            InputError: there is none, it has not finished, or it is damaged.
        """
        file = _file_at(path)
        arrays, about = arrays_file.read(file)
        try:
            facts = Facts._checked(about, path)
            rehearsal = Rehearsal.of_arrays(arrays, facts.labels, whole=facts.whole)
            counts = None
            if not facts.whole:
                types = texts_of("type", arrays)
                pairs = arrays["pair"], arrays["pair_count"]
                counts = EarlierCounts(types, arrays["type_count"], *pairs, int(arrays["texts"]))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise _damaged(file) from error
        return cls(path, facts, rehearsal, counts, hashlib.sha256(file.read_bytes()).hexdigest())

    def learned(self, fit: str, *wanted: str) -> Arrays:
        """Return the arrays of a fit of this training, or those that are wanted.

        Raises:
            InputError: they are damaged.
        """
        return arrays_file.read(file_of(self.path, fit), *wanted)[0]


def content(facts: Facts, rehearsal: Rehearsal, counts: EarlierCounts | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of a finished training, and the facts about them."""
    arrays = {} if facts.alone else rehearsal.arrays(facts.labels)
    if counts is not None:
        arrays |= {
            **text_arrays("type", counts.types),
            "type_count": counts.count,
            "pair": counts.pair,
            "pair_count": counts.pair_count,
            "texts": np.array(counts.texts),
        }
    return arrays, asdict(facts)
