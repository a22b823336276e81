"""The support rows of a model file, with labels taught and taken back. Shapes as in `textcls.model.teaching.scores`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from textcls.errors import ArtifactError, ConfigError, NotFoundError, TooLargeError
from textcls.model import artifact
from textcls.model.artifact import ModelInfo
from textcls.model.labels import label_number, labels_problem
from textcls.model.model_file import onnx_file
from textcls.model.prototypes import MOST_SUPPORT_ROWS, Prototypes, SupportRow, kept_text
from textcls.model.teaching.centres import Float32, centres

T = TypeVar("T")
_TYPES: Final = {artifact.SUPPORT_ROWS: np.float16, artifact.SUPPORT_COUNTS: np.int64, artifact.LABEL_BIAS: np.float32}
# The bias of a taught label: the same as of trained labels.
_BIAS: Final = 0.0


@dataclass(frozen=True, slots=True)
class Support:
    """The support rows of a model.

    Attributes:
        info: the description of the model; its `prototypes` say where the rows come from.
        of_label: the vectors of each label [K, F], in the order of the labels.
    """

    info: ModelInfo
    of_label: tuple[Float32, ...]

    @classmethod
    def of_file(cls, data: bytes, path: Path) -> "Support":
        """Read them from the model file whose content is `data`; messages name it `path`.

        Raises:
            ConfigError: it is not a model of prototypes.
            ArtifactError: the file is damaged.
        """
        info = ModelInfo.from_metadata(onnx_file.metadata(data, path), path)
        counts = prototypes_of(info, path).counts
        found = onnx_file.constants(data, _TYPES, path)
        vector_SF, count_C = found[artifact.SUPPORT_ROWS], found[artifact.SUPPORT_COUNTS]
        if vector_SF.ndim != 2 or count_C.tolist() != counts or len(vector_SF) != sum(counts):
            raise ArtifactError(f"{path} is damaged: it has other support rows than it says; copy the model again.")
        parts = np.split(vector_SF.astype(np.float32), np.cumsum(counts)[:-1])
        return cls(info, tuple(parts))

    @property
    def prototypes(self) -> Prototypes:
        """Where the rows come from."""
        found = self.info.prototypes
        if found is None:
            raise TypeError("the model has no prototypes")
        return found

    def with_label(self, label: str, vector_NF: Float32, texts: Sequence[str]) -> "Support":
        """Return them with `label` taught by examples, which replace what it has been taught before.

        Args:
            label: an existing label, whose training rows stay, or a new one.
            vector_NF: the vectors of the examples, of length 1.
            texts: the examples.

        Raises:
            ConfigError: the label is not valid.
            TooLargeError: there would be too many support rows.
        """
        if label not in self.info.labels:
            return self._with_new_label(label).with_label(label, vector_NF, texts)
        number = self.info.labels.index(label)
        found = centres(vector_NF)
        keep = self.prototypes.keeps_texts
        rows = [
            SupportRow(nearest + 1, size, True, kept_text(texts[nearest]) if keep else None)
            for nearest, size in zip(found.nearest_K.tolist(), found.size_K.tolist(), strict=True)
        ]
        trained = [row for row in self.prototypes.support[number] if not row.taught]
        vectors = np.concatenate([self.of_label[number][: len(trained)], found.centre_KF])
        taught = self._replaced(number, (*trained, *rows), vectors)
        if (count := sum(taught.prototypes.counts)) > MOST_SUPPORT_ROWS:
            raise TooLargeError(
                f"With {label!r} the model would have {count:,} support rows; the maximum is "
                f"{MOST_SUPPORT_ROWS:,}; take back labels you no longer need, or retrain."
            )
        return taught

    def without(self, label: str) -> "Support":
        """Return them without what `label` has been taught, and without the label if it has no other rows.

        Raises:
            ConfigError: there is no such label.
            NotFoundError: it has not been taught anything.
        """
        number = label_number(self.info.labels, label)
        trained = [row for row in self.prototypes.support[number] if not row.taught]
        if len(trained) == len(self.prototypes.support[number]):
            raise NotFoundError(
                f"The label {label!r} comes from training and was never taught, so there is nothing to take back."
            )
        if trained:
            return self._replaced(number, tuple(trained), self.of_label[number][: len(trained)])
        info = replace(
            self.info,
            labels=_without(self.info.labels, number),
            bias=_without(self.info.bias, number),
            prototypes=replace(self.prototypes, support=_without(self.prototypes.support, number)),
        )
        return Support(info, _without(self.of_label, number))

    def written_to(self, data: bytes, path: Path) -> bytes:
        """Return the model file `data` with these support rows and labels."""
        values: dict[str, NDArray[Any]] = {
            artifact.SUPPORT_ROWS: np.concatenate(self.of_label).astype(np.float16),
            artifact.SUPPORT_COUNTS: np.array(self.prototypes.counts, np.int64),
            artifact.LABEL_BIAS: np.array(self.info.bias, np.float32),
        }
        return onnx_file.exchanged(data, self.info, path, values)

    def _with_new_label(self, label: str) -> "Support":
        labels = (*self.info.labels, label)
        if wrong := labels_problem(labels):
            raise ConfigError(f"With the label {label[:100]!r} {wrong}.")
        info = replace(
            self.info,
            labels=labels,
            bias=(*self.info.bias, _BIAS),
            prototypes=replace(self.prototypes, support=(*self.prototypes.support, ())),
        )
        width = self.of_label[0].shape[1]
        return Support(info, (*self.of_label, np.zeros((0, width), np.float32)))

    def _replaced(self, number: int, rows: tuple[SupportRow, ...], vectors: Float32) -> "Support":
        support = _with(self.prototypes.support, number, rows)
        info = replace(self.info, prototypes=replace(self.prototypes, support=support))
        return Support(info, _with(self.of_label, number, vectors))


def prototypes_of(info: ModelInfo, path: Path) -> Prototypes:
    """Return the prototypes of a model.

    Raises:
        ConfigError: it has none.
    """
    if info.several or info.columns:
        reads = "gives a text several labels" if info.several else "reads columns beside the text"
        raise ConfigError(f"{path} cannot be taught, because it {reads}: add rows, and train again.")
    if info.prototypes is None:
        raise ConfigError(
            f"{path} cannot be taught, because its labels are not prototypes; train a model that can with "
            'textcls train ... --head prototypes (pip install "textcls[torch]").'
        )
    return info.prototypes


def _with(every: tuple[T, ...], number: int, one: T) -> tuple[T, ...]:
    return (*every[:number], one, *every[number + 1 :])


def _without(every: tuple[T, ...], number: int) -> tuple[T, ...]:
    return every[:number] + every[number + 1 :]
