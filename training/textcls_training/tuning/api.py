"""Tuning from Python, the implementation of `textcls.tune`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

from textcls._util.options import Kind
from textcls.api.tuning import TRIALS, Measure, TuneReport
from textcls.display.terminal.console import notebook_console
from textcls.display.terminal.progress import progress_on
from textcls.errors import ConfigError
from textcls.jobs import Engine
from textcls.model.sequences import as_list, require_sequence
from textcls_training.api import Label, checked_weights, labelled_texts
from textcls_training.tuning import limits, run
from textcls_training.tuning.run import Settings


def tune(
    texts: Sequence[str],
    labels: Sequence[Label],
    *,
    weights: Sequence[float] | None,
    trials: int | None,
    seconds: float | None,
    storage: str | Path | None,
    workers: int,
    **how: Any,
) -> TuneReport:
    """Search for options as described in `textcls.tune`, with the same errors; `how` contains fields of `Settings`."""
    for given, what in ((texts, "texts"), (labels, "labels")):
        require_sequence(given, what)
    kinds: tuple[tuple[str, object, Kind], ...] = (
        ("trials", trials, limits.TRIALS),
        ("seconds", seconds, limits.SECONDS),
        ("folds", how["folds"], limits.FOLDS),
        ("rounds", how["rounds"], limits.ROUNDS),
        ("workers", workers, limits.WORKERS),
    )
    for name, value, kind in kinds:
        if value is not None:
            kind.checked(name, value)
    if odd := next((name for name in limits.LEFT_OUT if name in how["fixed"]), None):
        raise ConfigError(f"A search has no option {odd!r}; leave it to textcls.train.")
    texts = texts if isinstance(texts, str) else as_list(texts)  # They are read twice.
    if any(isinstance(text, Mapping) for text in texts):
        raise ConfigError(
            "A search reads texts alone: join the text columns of each row, and leave columns beside the text to "
            "textcls.train."
        )
    rows = labelled_texts(texts, labels, "texts")
    if weights is not None:
        rows = replace(rows, weights=checked_weights(weights, len(rows.texts))).counting()
    how["measure"] = how["measure"] and str(how["measure"]).replace("-", "_")
    if how["measure"] not in (None, *get_args(Measure)):
        raise ConfigError(f"measure is {how['measure']!r}; it must be one of {', '.join(get_args(Measure))}.")
    settings = Settings(trials=trials or (None if seconds is not None else TRIALS), seconds=seconds, **how)
    with TemporaryDirectory(prefix="textcls-tune-") as folder:
        path = Path(folder) / "trials.journal" if storage is None else Path(storage)
        with progress_on(notebook_console(), "trials", transient=True) as progress:
            return run.tune(rows, settings, path, progress, Engine("local", workers))
