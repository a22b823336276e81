"""Log a report to MLflow, if it is installed: figures, what was evaluated, and files."""

import os
from collections.abc import Mapping
from contextlib import nullcontext

from textcls._util import optional_dependencies
from textcls.evaluation.reporting.model_report import ModelReport


def log(found: ModelReport, files: Mapping[str, str]) -> str:
    """Log a report to the active MLflow run, or the one that the environment names, or else to a new one.

    Args:
        found: the report.
        files: names of files and their contents, which are logged beside the figures.

    Returns:
        The id of the run.

    Raises:
        MissingExtraError: MLflow is not installed.
    """
    # MLflow reports usage to its makers unless this is set before it is imported.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    with optional_dependencies.needed_by("--mlflow"):
        import mlflow
    with mlflow.start_run() if mlflow.active_run() is None else nullcontext(mlflow.active_run()) as run:
        mlflow.log_params({"model": found.model.name, "model_sha256": found.model.sha256, "rows": found.rows})
        mlflow.log_metrics(found.figures())
        for name, content in files.items():
            mlflow.log_text(content, name)
        return str(run.info.run_id)
