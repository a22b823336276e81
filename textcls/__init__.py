"""textcls: train a text classifier in seconds, deploy one small ONNX file, read what each token added to the answer."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from textcls.errors import (
    ArtifactError,
    ConfigError,
    InputError,
    MissingExtraError,
    NotFoundError,
    SurroundingsError,
    TextclsError,
    TooLargeError,
)

if TYPE_CHECKING:
    from textcls.api.reading import read
    from textcls.api.training import audit_labels, train
    from textcls.api.tuning import TuneReport, tune
    from textcls.display.plots.evaluation import plot_evaluation
    from textcls.display.plots.explanation import plot_explanation
    from textcls.evaluation.comparison.compare import Comparison, compare
    from textcls.evaluation.evaluation import Evaluation, evaluate
    from textcls.evaluation.label_set_evaluation import LabelSetEvaluation
    from textcls.evaluation.reporting.abstention import Costs
    from textcls.evaluation.reporting.label_sets import LabelSetModelReport
    from textcls.evaluation.reporting.model_report import ModelReport
    from textcls.evaluation.reporting.one_label import OneLabelModelReport
    from textcls.evaluation.reporting.report import report
    from textcls.explain.global_explanation.explainer import explain_globally
    from textcls.explain.global_explanation.groups import GroupComparison, compare_groups
    from textcls.explain.global_explanation.summary import GlobalExplanation
    from textcls.model.artifact import ModelInfo
    from textcls.model.classifier import Classifier
    from textcls.model.explanation import Explanation, TokenAttribution
    from textcls.model.prediction import LabelScore, Prediction

# ONNX Runtime reports usage to its makers unless this is set before it is imported. Users of textcls have not asked for
# that; to allow it, set the variable to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.1.0"

# Imported on first use, so that a command or a service loads only what it needs.
_MODULE_OF: Final = {
    "Classifier": "model.classifier",
    "Comparison": "evaluation.comparison.compare",
    "Costs": "evaluation.reporting.abstention",
    "Evaluation": "evaluation.evaluation",
    "Explanation": "model.explanation",
    "GlobalExplanation": "explain.global_explanation.summary",
    "GroupComparison": "explain.global_explanation.groups",
    "LabelScore": "model.prediction",
    "LabelSetEvaluation": "evaluation.label_set_evaluation",
    "LabelSetModelReport": "evaluation.reporting.label_sets",
    "ModelInfo": "model.artifact",
    "ModelReport": "evaluation.reporting.model_report",
    "OneLabelModelReport": "evaluation.reporting.one_label",
    "Prediction": "model.prediction",
    "TokenAttribution": "model.explanation",
    "TuneReport": "api.tuning",
    "audit_labels": "api.training",
    "compare": "evaluation.comparison.compare",
    "compare_groups": "explain.global_explanation.groups",
    "evaluate": "evaluation.evaluation",
    "explain_globally": "explain.global_explanation.explainer",
    "plot_evaluation": "display.plots.evaluation",
    "plot_explanation": "display.plots.explanation",
    "read": "api.reading",
    "report": "evaluation.reporting.report",
    "train": "api.training",
    "tune": "api.tuning",
}

__all__ = [
    "ArtifactError",
    "Classifier",
    "Comparison",
    "ConfigError",
    "Costs",
    "Evaluation",
    "Explanation",
    "GlobalExplanation",
    "GroupComparison",
    "InputError",
    "LabelScore",
    "LabelSetEvaluation",
    "LabelSetModelReport",
    "MissingExtraError",
    "ModelInfo",
    "ModelReport",
    "NotFoundError",
    "OneLabelModelReport",
    "Prediction",
    "SurroundingsError",
    "TextclsError",
    "TokenAttribution",
    "TooLargeError",
    "TuneReport",
    "__version__",
    "audit_labels",
    "compare",
    "compare_groups",
    "evaluate",
    "explain_globally",
    "plot_evaluation",
    "plot_explanation",
    "read",
    "report",
    "train",
    "tune",
]


if not TYPE_CHECKING:  # With __getattr__, a type checker would accept any name.

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'textcls' has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(f"textcls.{_MODULE_OF[name]}"), name)
        return value


def __dir__() -> list[str]:
    return __all__
