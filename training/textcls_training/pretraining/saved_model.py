"""A model that was learned without labels, written as any other, with a word in its metadata on what its labels are."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from textcls.model.artifact import ModelInfo
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.config.resolve import ResolvedConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.english import english, english_if_known
from textcls_training.export.heads.scoring_head import empty_text_logits
from textcls_training.export.save import save, tables_of
from textcls_training.export.versions import versions
from textcls_training.models.calibration import Calibration
from textcls_training.models.ensemble import TrainedModel
from textcls_training.models.vectors_report import VectorsReport
from textcls_training.pretraining.texts import PretrainingTexts
from textcls_training.vectors.file import load
from textcls_training.vectors.word_vectors import WordVectors


class Unlabelled(NamedTuple):
    """A model that no label has taught.

    Attributes:
        model: the model itself.
        labels: the names of its answers.
        label_column: where they stand in what is written with the model.
        corpus: the texts that it has learned from.
        epochs: whole epochs.
        vectors: where vectors of words come from, if there are any.
        information: what the metadata say of the labels, by its key.
        interrupted: whether somebody has ended the training early.
    """

    model: TrainedModel
    labels: Sequence[str]
    label_column: str
    corpus: Corpus
    epochs: int
    vectors: VectorsReport | None
    information: Mapping[str, Any]
    interrupted: bool

    def write(self, texts: PretrainingTexts, resolved: ResolvedConfig, output: Path) -> None:
        """Write the model to `output`. Nothing is known of how sure it may be: the temperature is 1.

        Raises:
            SurroundingsError: `output` cannot be written.
        """
        calibration = Calibration(self.model.ensemble_weights, 1.0)
        tables = tables_of(self.model, self.corpus, resolved.size)
        save(self.model, tables, calibration, self._info(texts, resolved), output, self.corpus)

    def _info(self, texts: PretrainingTexts, resolved: ResolvedConfig) -> ModelInfo:
        return ModelInfo(
            labels=tuple(self.labels),
            bias=empty_text_logits(self.model),
            temperature=1.0,
            max_tokens=resolved.max_tokens,
            features=resolved.features,
            model=asdict(resolved.model),
            text_columns=texts.text_columns,
            label_column=self.label_column,
            training={
                "rows": len(self.corpus),
                "data_sha256": texts.sha256,
                "seed": resolved.seed,
                "epochs": self.epochs,
                "scheduled_epochs": resolved.epochs,
                "shares": [round(weight, 6) for weight in self.model.ensemble_weights],
                "optim": asdict(resolved.optim),
                "held_out_rows": len(texts.held_out),
                "held_out_accuracy": None,
                **self.information,
                "versions": versions(resolved.impl),
                **({"interrupted": True} if self.interrupted else {}),
                **({"vectors": asdict(self.vectors)} if self.vectors else {}),
            },
        )


def vectors_asked_for(config: PretrainConfig, corpus: Corpus) -> WordVectors | None:
    """Return the vectors of words that are asked for; unasked, the English ones if they know the words of `corpus`.

    Raises:
        InputError: their file is damaged, or is not there.
    """
    match config.vectors:
        case Path() as path:
            return load(path)
        case "english":
            return english()
        case None:
            return english_if_known(corpus)
        case _:
            return None
