"""A model learned without labels, and written like any other, with a note in its metadata on what the labels are."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from textcls.model.artifact import ModelInfo
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.english import english, english_if_known
from textcls_training.export.heads.scoring_head import empty_text_logits
from textcls_training.export.save import save, tables_of
from textcls_training.export.versions import versions
from textcls_training.fit.any_trainer import AnyTrainer
from textcls_training.fit.callbacks import Callback
from textcls_training.models.calibration import Calibration
from textcls_training.models.ensemble import TrainedModel
from textcls_training.models.vectors_report import VectorsReport
from textcls_training.pretraining.texts import PretrainingTexts
from textcls_training.vectors.file import load
from textcls_training.vectors.word_vectors import WordVectors


def learn(trainer: AnyTrainer, name: str, callback: Callback, least_epochs: int = 1) -> TrainedModel:
    """Take all passes, reported as `name`, and return a model whose views have equal weights.

    A stop is possible after `least_epochs` passes.
    """
    epochs, stop = trainer.config.epochs, trainer.stop
    callback.phase(name, epochs * len(trainer.dataset.labels))
    for number in range(1, epochs + 1):
        trainer.train_epoch(number, callback)
        if stop.requested:
            break
        stop.possible = number >= least_epochs
        callback.epoch(number, None)
    return trainer.trained_model((1 / trainer.views,) * trainer.views)


def write(
    output: Path,
    model: TrainedModel,
    trainer: AnyTrainer,
    labels: Sequence[str],
    label_column: str,
    texts: PretrainingTexts,
    information: Mapping[str, Any],
) -> VectorsReport | None:
    """Write a model learned without labels, and return the origin of its word vectors, if it has any.

    Its confidence cannot be calibrated: the temperature is 1.

    Args:
        output: the file.
        model: the model.
        trainer: the trainer that has learned it.
        labels: the names of its labels.
        label_column: the name of their column in output written with the model.
        texts: the texts, some of which were learned from.
        information: what the metadata say about the labels, by its key.

    Raises:
        SurroundingsError: `output` cannot be written.
    """
    resolved, corpus = trainer.config, trainer.dataset.corpus
    vectors = VectorsReport.of(model, corpus)
    info = ModelInfo(
        labels=tuple(labels),
        bias=empty_text_logits(model),
        temperature=1.0,
        max_tokens=resolved.max_tokens,
        features=resolved.features,
        model=asdict(resolved.model),
        text_columns=texts.text_columns,
        label_column=label_column,
        training={
            "rows": len(corpus),
            "data_sha256": texts.sha256,
            "seed": resolved.seed,
            "epochs": trainer.epochs,
            "scheduled_epochs": resolved.epochs,
            "shares": [round(weight, 6) for weight in model.ensemble_weights],
            "optim": asdict(resolved.optim),
            "held_out_rows": len(texts.held_out),
            "held_out_accuracy": None,
            **information,
            "versions": versions(resolved.impl),
            **({"interrupted": True} if trainer.stop.requested else {}),
            **({"vectors": asdict(vectors)} if vectors else {}),
        },
    )
    tables, calibration = tables_of(model, corpus, resolved.size), Calibration(model.ensemble_weights, 1.0)
    save(model, tables, calibration, info, output, corpus)
    return vectors


def vectors_asked_for(config: PretrainConfig, corpus: Corpus) -> WordVectors | None:
    """Return the word vectors that are asked for; by default the English ones, if they know the words of `corpus`.

    Raises:
        InputError: their file is damaged or missing.
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
