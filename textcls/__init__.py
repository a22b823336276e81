"""textcls: train a text classifier in seconds, deploy one small ONNX file, read what each token added to the answer."""

import os

# ONNX Runtime reports usage to its makers unless this is set before it is imported. Nobody who classifies texts with
# us has asked for that; who wants it sets the variable to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from textcls.artifact import ModelInfo
from textcls.classifier import Classifier
from textcls.comparison.compare import Comparison, compare
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
from textcls.evaluation.evaluation import Evaluation, evaluate
from textcls.evaluation.label_set_evaluation import LabelSetEvaluation
from textcls.explanation import Explanation, TokenAttribution
from textcls.global_explanation.explainer import explain_globally
from textcls.global_explanation.summary import GlobalExplanation
from textcls.prediction import LabelScore, Prediction
from textcls.reading import read
from textcls.reporting.label_sets import LabelSetModelReport
from textcls.reporting.model_report import ModelReport
from textcls.reporting.one_label import OneLabelModelReport
from textcls.reporting.report import report
from textcls.training import audit_labels, train
from textcls.tuning import TuneReport, tune

__version__ = "0.1.0"

__all__ = [
    "ArtifactError",
    "Classifier",
    "Comparison",
    "ConfigError",
    "Evaluation",
    "Explanation",
    "GlobalExplanation",
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
    "evaluate",
    "explain_globally",
    "read",
    "report",
    "train",
    "tune",
]
