"""textcls: train a text classifier in seconds, deploy one small ONNX file, read what each token added to the answer."""

import os

# ONNX Runtime reports usage to its makers unless this is set before it is imported. Nobody who classifies texts with
# us has asked for that; who wants it sets the variable to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from textcls.api.reading import read
from textcls.api.training import audit_labels, train
from textcls.api.tuning import TuneReport, tune
from textcls.display import notebook
from textcls.display.plots.evaluation import plot_evaluation
from textcls.display.plots.explanation import plot_explanation
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
from textcls.evaluation.comparison.compare import Comparison, compare
from textcls.evaluation.evaluation import Evaluation, evaluate
from textcls.evaluation.label_set_evaluation import LabelSetEvaluation
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

__version__ = "0.1.0"

notebook.register()

__all__ = [
    "ArtifactError",
    "Classifier",
    "Comparison",
    "ConfigError",
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
