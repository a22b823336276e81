"""What `textcls train` writes next to a model on request: its list of words, and models of resampled rows."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from textcls._util.atomic_write import atomic_write
from textcls.data import Labelled, LabelledSets
from textcls.errors import ConfigError, SurroundingsError
from textcls.explain import stability
from textcls.explain.lexicon import terms
from textcls.explain.lexicon.table import lexicon
from textcls.model.classifier import Classifier
from textcls_training.data.resampling import resampled

if TYPE_CHECKING:
    from textcls_training.pipeline.training_report import TrainReport

Rows = Labelled | LabelledSets
# rows, the model file, options -> the result
Train = Callable[[Any, Path, dict[str, Any]], "TrainReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideModel:
    """What is wanted next to a model.

    Attributes:
        keep_words: the words, pairs and pieces that it knows (`textcls.explain.lexicon`).
        resamples: how many models of reweighted rows (`textcls.explain.stability`).
    """

    keep_words: bool
    resamples: int

    @property
    def wanted(self) -> bool:
        """Return whether there is anything to write."""
        return self.keep_words or self.resamples > 0

    def check(self, unlabelled: Sequence[object], from_state: Path | None) -> None:
        """Refuse what cannot be trained on rows with different weights.

        Raises:
            ConfigError: resamples, or words, are wanted although a model learns from more than the rows at hand.
        """
        if self.keep_words and from_state is not None:
            raise ConfigError("--keep-words lists the words of DATA, and --from is more than these; leave one out.")
        other = "--unlabelled" if unlabelled else "--from" if from_state is not None else None
        if self.resamples and other is not None:
            raise ConfigError(
                f"--resamples weighs the rows of DATA at random, and {other} is more than these; leave one out."
            )

    def outputs(self, model: Path) -> list[Path]:
        """Return which files and folders will be written.

        Raises:
            SurroundingsError: something other than a folder has the name of the folder of resamples.
        """
        folder, places = stability.beside(model), [terms.beside(model)] if self.keep_words else []
        if not self.resamples or not os.path.lexists(folder):
            return places
        if not folder.is_dir():
            raise SurroundingsError(
                f"{folder} is not a folder, and --resamples makes one of that name; remove it first."
            )
        return [*places, *(folder / f"{k}.onnx" for k in range(1, self.resamples + 1))]

    def clear(self, model: Path) -> None:
        """Remove the resamples of an earlier training, which would be mistaken for models of these rows."""
        if self.resamples:
            for path in stability.beside(model).glob("*.onnx"):
                if path.stem.isdecimal():
                    path.unlink()

    def write(self, rows: Rows, model: Path, settings: dict[str, Any], train: Train) -> None:
        """Write what is wanted for a model that was trained on `rows`."""
        if self.keep_words:
            self._write_words(rows, model)
        if self.resamples:
            self._write_resamples(rows, stability.beside(model), settings, train)

    def _write_resamples(self, rows: Rows, folder: Path, settings: dict[str, Any], train: Train) -> None:
        for k in range(1, self.resamples + 1):
            folder.mkdir(exist_ok=True)
            seed = settings["seed"] + k
            again = replace(rows, weights=resampled(rows.weights, len(rows.texts), seed))
            if train(again, folder / f"{k}.onnx", {**settings, "seed": seed}).interrupted:
                return

    @staticmethod
    def _write_words(rows: Rows, model: Path) -> None:
        classifier = Classifier.load(model)
        if not classifier.graph.has_rows:
            click.echo(f"Warning: {model} has no weights of words, so that no list of words was kept.", err=True)
            return
        with atomic_write(terms.beside(model)) as file:
            file.write(lexicon(classifier, rows.texts).as_list(classifier.info).encode())
