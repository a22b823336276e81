"""Learning clusters from beginning to end: texts in, a model whose labels are clusters out."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from textcls.artifact import CLUSTERS, ModelInfo
from textcls.errors import InputError
from textcls_training.clock import Clock
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.config.resolve import ResolvedConfig, resolve
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.english import english, english_if_known
from textcls_training.export.heads.scoring_head import empty_text_logits
from textcls_training.export.save import save, tables_of
from textcls_training.export.versions import versions
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.threads import reproducible
from textcls_training.models.calibration import Calibration
from textcls_training.models.ensemble import TrainedModel
from textcls_training.models.vectors_report import VectorsReport
from textcls_training.pretraining.clusters.names import cluster_names
from textcls_training.pretraining.clusters.objective import information
from textcls_training.pretraining.clusters.report import ClustersReport, HeldOutInformation
from textcls_training.pretraining.clusters.start import first_clusters
from textcls_training.pretraining.clusters.trainer import ClusterTrainer
from textcls_training.pretraining.texts import PretrainingTexts
from textcls_training.vectors.file import load
from textcls_training.vectors.word_vectors import WordVectors

# The column of the cluster, in what is written with the model.
LABEL_COLUMN: Final = "cluster"
# Passes over the texts, and of few texts so many that these are the steps.
EPOCHS: Final = 10
LEAST_STEPS: Final = 300
# Steps that learn the first clusters, rounded to whole epochs. With fewer, views of a text hardly agree yet, and most
# clusters run dry.
FIRST_STEPS: Final = 100
# Texts a step: the steps are then long enough to tell of the clusters, and there are enough of them.
BATCH: Final = 64
# Tokens of a text, in the mean, up to which English vectors of words are of use.
MOST_WORDS_A_TEXT: Final = 100
# The least number of texts to a cluster.
LEAST_TEXTS: Final = 2


class Learned(NamedTuple):
    """Clusters that were learned.

    Attributes:
        model: answers texts with clusters.
        names: of the clusters.
        sizes: how many texts each has.
        epochs: whole epochs.
        held_out: what held-out texts say of them.
        vectors: where the vectors of words come from.
    """

    model: TrainedModel
    names: Sequence[str]
    sizes: Int64
    epochs: int
    held_out: HeldOutInformation
    vectors: VectorsReport | None


def run(
    texts: PretrainingTexts, output: Path, config: PretrainConfig, callback: Callback, stop: Stop
) -> ClustersReport:
    """Learn `config.clusters` clusters of `texts`, and write the model to `output`.

    Raises:
        InputError: there are too few texts, or they share too few words.
        ConfigError: training diverged.
        SurroundingsError: `output` cannot be written.
        KeyboardInterrupt: a stop was requested before there was anything to keep.
    """
    least = LEAST_TEXTS * config.clusters
    if len(texts.train) < least:
        raise InputError(
            f"There are {len(texts.train):,} different texts to learn {config.clusters} clusters from; give at least "
            f"{least:,}, or ask for fewer clusters."
        )
    clock = Clock()
    corpus = Corpus.of(texts.train, config.max_tokens)
    resolved = _resolved(config, texts.train, corpus, _vectors(config, corpus))
    with reproducible(config.seed):
        callback.phase("finding the first clusters", len(texts.train))
        dataset = Dataset(corpus, first_clusters(corpus, config.clusters, config.seed, resolved.vectors))
        clock.lap("starting")
        learned = _learn(dataset, Corpus.of(texts.held_out, config.max_tokens), resolved, config, callback, stop)
        clock.lap("training")
        info = _model_info(texts, learned, resolved, config, interrupted=stop.requested)
        calibration = Calibration(learned.model.ensemble_weights, 1.0)
        save(learned.model, tables_of(learned.model, corpus, resolved.size), calibration, info, output)
        clock.lap("saving")
    return ClustersReport(
        texts=len(texts.train),
        sizes=dict(zip(learned.names, learned.sizes.tolist(), strict=True)),
        epochs=learned.epochs,
        held_out=learned.held_out,
        vectors=learned.vectors,
        file_bytes=output.stat().st_size,
        interrupted=stop.requested,
        seconds=clock.seconds,
    )


def _vectors(config: PretrainConfig, corpus: Corpus) -> WordVectors | None:
    """Return the vectors of words that are asked for; unasked, the English ones for short texts whose words they know.

    Means over the words of long texts tell them apart worse than their singular vectors (training/README.md).
    """
    match config.vectors:
        case Path() as path:
            return load(path)
        case "english":
            return english()
        case None:
            short = len(corpus.token) <= MOST_WORDS_A_TEXT * len(corpus)
            return english_if_known(corpus) if short else None
        case _:
            return None


def _resolved(
    config: PretrainConfig, texts: Sequence[str], corpus: Corpus, vectors: WordVectors | None
) -> ResolvedConfig:
    """Return the training that the clusters are learned by: that of labels, in all but objective and batches."""
    told = TrainConfig(
        epochs=config.epochs or max(EPOCHS, -(-LEAST_STEPS // _steps(corpus))),
        max_tokens=config.max_tokens,
        seed=config.seed,
        device=config.device,
    )
    found = resolve(told, texts, len(corpus.token), config.clusters, vectors=vectors)
    return replace(found, optim=replace(found.optim, batch_size=BATCH))


def _steps(corpus: Corpus) -> int:
    """Return the steps of an epoch."""
    return -(-len(corpus) // BATCH)


def _learn(
    dataset: Dataset, held_out: Corpus, resolved: ResolvedConfig, config: PretrainConfig, callback: Callback, stop: Stop
) -> Learned:
    first_epochs = min(resolved.epochs, max(1, round(FIRST_STEPS / _steps(dataset.corpus))))
    trainer = ClusterTrainer(dataset, config.clusters, resolved, first_epochs, stop)
    callback.phase("learning clusters", resolved.epochs * len(dataset.labels))
    for number in range(1, resolved.epochs + 1):
        trainer.train_epoch(number, callback)
        if stop.requested:
            break
        stop.possible = number >= first_epochs
        callback.epoch(number, None)
    cluster_R = trainer.predict(trainer.encode(dataset.corpus)).mean(0).argmax(1)
    a_RC, b_RC = trainer.both_views(trainer.encode(held_out))
    told = HeldOutInformation(
        texts=len(held_out),
        information=round(information(a_RC, b_RC), 6),
        agreement=round(float((a_RC.argmax(1) == b_RC.argmax(1)).float().mean()), 6),
    )
    views = len(trainer.learners)
    model = trainer.trained_model((1 / views,) * views)
    return Learned(
        model,
        cluster_names(dataset.corpus, cluster_R, config.clusters),
        np.bincount(cluster_R, minlength=config.clusters),
        trainer.epochs,
        told,
        VectorsReport.of(model, dataset.corpus),
    )


def _model_info(
    texts: PretrainingTexts, learned: Learned, resolved: ResolvedConfig, config: PretrainConfig, *, interrupted: bool
) -> ModelInfo:
    return ModelInfo(
        labels=tuple(learned.names),
        bias=empty_text_logits(learned.model),
        temperature=1.0,
        max_tokens=resolved.max_tokens,
        features=resolved.features,
        model=asdict(resolved.model),
        text_columns=texts.text_columns,
        label_column=LABEL_COLUMN,
        training={
            "rows": len(texts.train),
            "data_sha256": texts.sha256,
            "seed": config.seed,
            "epochs": learned.epochs,
            "scheduled_epochs": resolved.epochs,
            "shares": [round(weight, 6) for weight in learned.model.ensemble_weights],
            "optim": asdict(resolved.optim),
            "held_out_rows": len(texts.held_out),
            "held_out_accuracy": None,
            CLUSTERS: {"objective": config.objective, **asdict(learned.held_out)},
            "versions": versions(),
            **({"interrupted": True} if interrupted else {}),
            **({"vectors": asdict(learned.vectors)} if learned.vectors else {}),
        },
    )
