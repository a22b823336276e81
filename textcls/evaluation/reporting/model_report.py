"""The content of a report on a model, whether it gives a text one label or several."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from textcls._util.in_notebooks import InNotebooks
from textcls.evaluation import intervals
from textcls.evaluation.intervals import Estimate
from textcls.evaluation.label_set_metrics import LabelSetReport
from textcls.evaluation.metrics import ClassificationReport
from textcls.evaluation.reporting.slices import Slice
from textcls.explain.global_explanation.summary import GlobalExplanation
from textcls.model.artifact import ModelInfo
from textcls.model.classifier import Classifier


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The model file that a report is about.

    Attributes:
        name: the name of the file.
        sha256: the SHA-256 of its content.
        bytes: its size.
        info: its metadata.
    """

    name: str
    sha256: str
    bytes: int
    info: ModelInfo

    @property
    def version(self) -> str:
        """The beginning of the hash, which services use as its name."""
        return self.sha256[:12]

    @classmethod
    def of(cls, classifier: Classifier) -> "ModelFile":
        """Describe the file of a classifier, as it was when it was loaded."""
        graph = classifier.graph
        return cls(graph.path.name, graph.sha256, graph.bytes, graph.info)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport(InNotebooks, ABC):
    """Everything that labelled rows show about a model: a `OneLabelModelReport` or a `LabelSetModelReport`.

    Attributes:
        model: the model file.
        scores: its figures over all rows, and for each label.
        unknown_labels: labels of the rows that the model does not know.
        accuracy: share of the rows answered correctly; with several labels per text, with exactly their labels.
        macro_f1: mean F1 of the labels.
        label_f1: F1 of each label of `scores`.
        slices: kinds of rows, with the accuracy on each.
        evidence: what the model relies on over these rows, and shortcuts.
        learned: the approximate share of the rows that the model has learned from (`LearnedRows.share`).

    Examples:
        >>> found = textcls.report(textcls.Classifier.load("tickets.onnx"), zip(*textcls.read("tickets.csv")))
        >>> found.learned
        0.0
    """

    model: ModelFile
    scores: ClassificationReport | LabelSetReport
    unknown_labels: tuple[str, ...]
    accuracy: Estimate
    macro_f1: Estimate
    label_f1: tuple[Estimate, ...]
    slices: tuple[Slice, ...]
    evidence: GlobalExplanation
    learned: float = 0.0

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.scores.rows

    @property
    def weak_slices(self) -> tuple[Slice, ...]:
        """The slices on which the model is worse by more than chance, those with the greatest loss first."""
        weak = [one for one in self.slices if one.weak]
        return tuple(sorted(weak, key=lambda one: one.rows * (one.accuracy.value - one.others)))

    @abstractmethod
    def figures(self) -> dict[str, float]:
        """Return the figures by which runs are compared, by name."""

    @abstractmethod
    def _own_json(self) -> dict[str, Any]:
        """Return as plain data what reports of the other kind do not contain."""

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        found = self.scores.as_json()
        for label, estimate in zip(found["labels"], self.label_f1, strict=True):
            label["f1_interval"] = [estimate.low, estimate.high]
        return {
            "model": {"name": self.model.name, "sha256": self.model.sha256, "bytes": self.model.bytes},
            **found,
            "learned": self.learned,
            "macro_f1_interval": [self.macro_f1.low, self.macro_f1.high],
            "confidence_of_intervals": intervals.CONFIDENCE,
            "unknown_labels": list(self.unknown_labels),
            **self._own_json(),
            "slices": [one.as_json() for one in self.slices],
            "evidence": self.evidence.as_json(),
        }
