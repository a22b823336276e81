"""Texts and their labels in, a report on a model out: what `textcls report` calls, and `textcls.report` is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls.artifact import ModelInfo
from textcls.classifier import Classifier
from textcls.errors import ConfigError, InputError
from textcls.evaluation import intervals, metrics
from textcls.evaluation.intervals import Estimate
from textcls.evaluation.metrics import ClassificationReport, ReliabilityBin
from textcls.evaluation.unknown_labels import unknown_labels
from textcls.explanation import Explanation
from textcls.global_explanation.explainer import explain_globally
from textcls.global_explanation.summary import GlobalExplanation
from textcls.reporting.abstention import Abstention, Costs, abstention
from textcls.reporting.answers import Answer
from textcls.reporting.errors import ErrorGroup, SureError, groups, surest
from textcls.reporting.slices import Slice, slices

# Words for and against each label.
WORDS: Final = 8
USUAL_COSTS: Final = Costs()


@dataclass(frozen=True, slots=True)
class ModelFile:
    """What a report is about.

    Attributes:
        name: of the file.
        sha256: of its content.
        bytes: its size.
        info: what it says of itself.
    """

    name: str
    sha256: str
    bytes: int
    info: ModelInfo

    @property
    def version(self) -> str:
        """The beginning of the hash, by which services name it."""
        return self.sha256[:12]

    @classmethod
    def of(cls, classifier: Classifier) -> "ModelFile":
        """Describe the file of a classifier, as it was when it was loaded."""
        graph = classifier.graph
        return cls(graph.path.name, graph.sha256, graph.bytes, graph.info)


@dataclass(frozen=True, slots=True)
class ModelReport:
    """All that labelled rows say of a model.

    Attributes:
        model: which one.
        scores: accuracy, F1 and calibration error over all rows, label by label, and the confusions.
        unknown_labels: labels of the rows that the model does not know.
        accuracy: with its interval.
        macro_f1: likewise.
        label_f1: likewise of each label of `scores`.
        reliability: bins of confidence, and how many answers of each are right.
        abstention: what thresholds do, and cost.
        errors: wrong answers by the words behind them.
        surest_errors: the wrong answers of the highest confidence.
        slices: kinds of rows, with the accuracy on each.
        evidence: what the model goes by over these rows, and shortcuts.
    """

    model: ModelFile
    scores: ClassificationReport
    unknown_labels: tuple[str, ...]
    accuracy: Estimate
    macro_f1: Estimate
    label_f1: tuple[Estimate, ...]
    reliability: tuple[ReliabilityBin, ...]
    abstention: Abstention
    errors: tuple[ErrorGroup, ...]
    surest_errors: tuple[SureError, ...]
    slices: tuple[Slice, ...]
    evidence: GlobalExplanation

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.scores.rows

    @property
    def weak_slices(self) -> tuple[Slice, ...]:
        """The slices on which the model is worse by more than chance, those first where most is lost."""
        weak = [one for one in self.slices if one.weak]
        return tuple(sorted(weak, key=lambda one: one.rows * (one.accuracy.value - one.others)))

    @property
    def confusions(self) -> tuple[tuple[str, str, int], ...]:
        """The right label, the answer, and how many rows, of all that are mixed up; the most frequent first."""
        names = [label.label for label in self.scores.labels]
        wrong = np.array(self.scores.confusion)
        np.fill_diagonal(wrong, 0)
        order = np.argsort(-wrong, axis=None, kind="stable")[: int((wrong > 0).sum())]
        pairs = (divmod(int(index), len(names)) for index in order)
        return tuple((names[right], names[answer], int(wrong[right, answer])) for right, answer in pairs)

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        found = self.scores.as_json()
        for label, estimate in zip(found["labels"], self.label_f1, strict=True):
            label["f1_interval"] = [estimate.low, estimate.high]
        return {
            "model": {"name": self.model.name, "sha256": self.model.sha256, "bytes": self.model.bytes},
            **found,
            "accuracy_interval": [self.accuracy.low, self.accuracy.high],
            "macro_f1_interval": [self.macro_f1.low, self.macro_f1.high],
            "confidence_of_intervals": intervals.CONFIDENCE,
            "unknown_labels": list(self.unknown_labels),
            "reliability": [asdict(each) for each in self.reliability],
            "abstention": self.abstention.as_json(),
            "errors": [_error_json(group) for group in self.errors],
            "surest_errors": [error._asdict() for error in self.surest_errors],
            "slices": [one.as_json() for one in self.slices],
            "evidence": self.evidence.as_json(),
        }


def _error_json(group: ErrorGroup) -> dict[str, Any]:
    return group._asdict() | {"of": dict(group.of), "examples": [asdict(example) for example in group.examples]}


def report(
    classifier: Classifier,
    rows: Iterable[tuple[str, str]],
    *,
    columns: Mapping[str, Sequence[object]] | None = None,
    costs: Costs = USUAL_COSTS,
) -> ModelReport:
    """Return all that labelled rows say of `classifier`, which gives a text one label.

    Args:
        classifier: the model.
        rows: a text and its label each, such as `zip(texts, labels)`.
        columns: further columns of the rows, such as their source, by whose values the model is judged as well.
        costs: what a wrong answer costs, and a row that is left to people.

    Raises:
        MissingExtraError: scikit-learn or SciPy is not installed.
        ConfigError: the model may give several labels a text.
        InputError: there are no rows, the model knows no label of them, or a column is of another length.
    """
    metrics.require()
    require_one_label(classifier)
    texts, right, answers, found = _answered(classifier, rows)
    if not texts:
        raise InputError("There are no rows to report on.")
    for name, column in (columns or {}).items():
        if len(column) != len(texts):
            raise InputError(f"The column {name!r} has {len(column):,} values, and there are {len(texts):,} rows.")
    names = classifier.labels
    unknown = unknown_labels(right, names, len(texts))
    number = {name: i for i, name in enumerate([*names, *unknown])}
    right_N = np.array([number[label] for label in right], np.int64)
    answer_N = np.array([number[answer.label] for answer in answers], np.int64)
    scores = metrics.report(found.probabilities, right_N, names, unknown)
    confidence, is_right = found.probabilities.max(1), right_N == answer_N
    macro_f1, label_f1 = intervals.f1_intervals(right_N, answer_N, len(number))
    return ModelReport(
        model=ModelFile.of(classifier),
        scores=scores,
        unknown_labels=unknown,
        accuracy=intervals.share(int(is_right.sum()), len(texts)),
        macro_f1=macro_f1,
        label_f1=tuple(label_f1),
        reliability=metrics.reliability(confidence, is_right),
        abstention=abstention(confidence, is_right, costs),
        errors=groups(answers, right),
        surest_errors=surest(texts, answers, right),
        slices=slices(answers, is_right, columns or {}),
        evidence=found.evidence,
    )


def require_one_label(classifier: Classifier) -> None:
    """Refuse a model that may give several labels a text.

    Raises:
        ConfigError: it does.
    """
    if classifier.info.several:
        raise ConfigError(
            "Reports are on models of one label per text; textcls evaluate says how good this model is, label by label."
        )


@dataclass(frozen=True, slots=True)
class _Found:
    probabilities: NDArray[np.float32]
    evidence: GlobalExplanation


def _answered(
    classifier: Classifier, rows: Iterable[tuple[str, str]]
) -> tuple[list[str], list[str], list[Answer], _Found]:
    """Answer and explain each row once; return its text, its label and what is kept of its answer."""
    texts, right, answers = list[str](), list[str](), list[Answer]()
    probabilities = [np.zeros((0, len(classifier.labels)), np.float32)]

    def read() -> Iterable[tuple[str, str]]:
        for text, label in rows:
            texts.append(text)
            right.append(label)
            yield text, label

    def keep(explanation: Explanation) -> None:
        answers.append(Answer.of(explanation, right[len(answers)]))
        probabilities.append(explanation.probability_values[None])

    evidence = explain_globally(classifier, read(), top=WORDS, each=keep)
    return texts, right, answers, _Found(np.concatenate(probabilities), evidence)
