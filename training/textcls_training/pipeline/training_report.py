"""The findings of a training."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from textcls.evaluation import label_set_metrics, metrics
from textcls.evaluation.label_set_metrics import LabelSetReport
from textcls.evaluation.label_thresholds import Goal
from textcls.evaluation.metrics import ClassificationReport
from textcls_training.config.resolve import Trainers
from textcls_training.data.arrays import Float32
from textcls_training.distillation.report import DistillationReport
from textcls_training.fit.calibration import MIN_ROWS
from textcls_training.fit.columns.gains import ColumnGain
from textcls_training.fit.label_set_calibration import HeldOutDecisions, assigned_by_others
from textcls_training.fit.selection import SelectionResult
from textcls_training.fit.validation import LabelSetValidation
from textcls_training.models.calibration import LabelSetCalibration, sigmoid, softmax
from textcls_training.models.vectors_report import VectorsReport


class HeldOut(NamedTuple):
    """The figures of a calibrated model on validation rows.

    Attributes:
        report: as in `TrainReport.held_out`.
        ece_before: as in `TrainReport`.
        decisions: with several labels per text, how the rows are answered; else None.
        threshold_rows: as in `TrainReport`.
    """

    report: ClassificationReport | LabelSetReport
    ece_before: float
    decisions: HeldOutDecisions | None = None
    threshold_rows: Mapping[str, int] | None = None

    @classmethod
    def of(cls, selected: SelectionResult, names: Sequence[str]) -> "HeldOut":
        """Measure the calibrated answers to validation rows, and their calibration error before."""
        calibration, validation = selected.calibration, selected.validation
        if isinstance(calibration, LabelSetCalibration) and isinstance(validation, LabelSetValidation):
            return cls._of_sets(selected.logits, calibration, validation, names)
        probabilities = calibration.probabilities(selected.logits)
        before = metrics.expected_calibration_error(softmax(selected.logits), selected.labels)
        return cls(metrics.report(probabilities, selected.labels, names), before)

    @classmethod
    def _of_sets(
        cls, logits: Float32, calibration: LabelSetCalibration, validation: LabelSetValidation, names: Sequence[str]
    ) -> "HeldOut":
        gold = validation.target_RC >= 0.5
        answered = assigned_by_others(logits, validation.target_RC, calibration, validation.goal)
        found = label_set_metrics.report(
            answered.probability_RC, gold, calibration.thresholds, names, assigned=answered.assigned_RC
        )
        rows = dict(zip(names, calibration.rows, strict=True)) if calibration.rows else None
        return cls(found, label_set_metrics.calibration_error(sigmoid(logits), gold), answered, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainReport:
    """The findings of training.

    `held_out` is measured on validation rows: the measured model was not trained on them, though they chose its epoch,
    its ensemble weights and its temperature.

    Attributes:
        rows: labelled rows that the saved model was trained on.
        held_out_rows: validation rows.
        folds: 1 if these are held-out or separate rows; more if few rows were cross-fitted in this many parts.
        epochs: passes over the data.
        temperature: 1 when too few rows were held out to fit it.
        ensemble_weights: the weight of each view: words, vectors if there are any, and pieces of words if they are
            read.
        held_out: accuracy, macro-F1, calibration and the per-label table, at that temperature; if a text may have
            several labels, F1, average precision and the rest, at the thresholds that they chose.
        ece_before: expected calibration error without it.
        gate: the final value of the mixing layer's gate, None without mixing.
        parameters: how many numbers were learned in all.
        mixing_parameters: how many of them are the mixing layer's.
        file_bytes: size of the saved model.
        vectors: the source of the vectors and their gain; None without any.
        interrupted: whether the training was ended early.
        seconds: how long each step took.
        distillation: the gain from unlabelled texts; None without any.
        threshold_rows: the number of held-out rows that the threshold of each label was chosen on; None if thresholds
            reach a target, and if there are none.
        columns: the gain from columns beside the text; none without any.
        trainer: the trainer: the compiled trainer, one-vs-rest support vector machines, or the reference.
        goal: what the thresholds of several labels were to reach; None for a high F1, and with one label per text.
        cannot_go_on: why no other training can continue from the kept state; None if one can, or none was kept.
    """

    rows: int
    held_out_rows: int
    folds: int
    epochs: int
    temperature: float
    ensemble_weights: tuple[float, ...]
    held_out: ClassificationReport | LabelSetReport
    ece_before: float
    gate: float | None
    parameters: int
    mixing_parameters: int
    file_bytes: int
    vectors: VectorsReport | None
    interrupted: bool
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    distillation: DistillationReport | None
    threshold_rows: Mapping[str, int] | None
    columns: tuple[ColumnGain, ...]
    trainer: Trainers
    goal: Goal | None = None
    cannot_go_on: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data, whose names stay the same from version to version."""
        distilled = None if self.distillation is None else self.distillation.to_json()
        columns = [gain.to_json() for gain in self.columns]
        found = asdict(self) | {"held_out": self.held_out.as_json(), "distillation": distilled, "columns": columns}
        return {"shares" if name == "ensemble_weights" else name: value for name, value in found.items()}

    @property
    def calibrated(self) -> bool:
        """Whether there were enough validation rows to calibrate."""
        return self.held_out_rows >= MIN_ROWS

    @property
    def cross_entropy(self) -> float | None:
        """Mean negative log-likelihood, in nats, of the right labels on the held-out rows; see `textcls.evaluation`."""
        return self.held_out.cross_entropy

    @property
    def perplexity(self) -> float | None:
        """The exponential of `cross_entropy`."""
        return None if isinstance(self.held_out, LabelSetReport) else self.held_out.perplexity
