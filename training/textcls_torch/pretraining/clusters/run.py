"""Learning clusters from beginning to end: texts in, a model whose labels are clusters out."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import numpy as np

from textcls.display.text import plural
from textcls.errors import InputError
from textcls.model.artifact import CLUSTERS
from textcls_torch.pretraining.clusters.objective import information
from textcls_torch.pretraining.clusters.trainer import ClusterTrainer
from textcls_training.config.clock import Clock
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.config.resolve import ResolvedConfig, resolve
from textcls_training.config.settings import TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.threads import reproducible
from textcls_training.pretraining.clusters.names import cluster_names
from textcls_training.pretraining.clusters.report import ClustersReport, HeldOutInformation
from textcls_training.pretraining.clusters.start import first_clusters
from textcls_training.pretraining.saved_model import learn, vectors_asked_for, write
from textcls_training.pretraining.texts import PretrainingTexts
from textcls_training.vectors.word_vectors import WordVectors

# The name of the column of clusters in output written with the model.
LABEL_COLUMN: Final = "cluster"
# Passes over the texts; with few texts there are more, so that there are `LEAST_STEPS` steps.
EPOCHS: Final = 10
LEAST_STEPS: Final = 300
# Steps that learn the first clusters, rounded to whole epochs. With fewer, views of a text hardly agree yet, and most
# clusters become empty.
FIRST_STEPS: Final = 100
# Texts per step: enough for a step to say something about the clusters, and few enough for many steps.
BATCH: Final = 64
# The mean number of tokens per text up to which English word vectors help.
MOST_WORDS_A_TEXT: Final = 100
# The least number of texts per cluster.
LEAST_TEXTS: Final = 2


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
            f"{plural(len(texts.train), 'different text')} to learn {config.clusters} clusters from; give at least "
            f"{least:,}, or ask for fewer clusters."
        )
    clock = Clock()
    corpus = Corpus.of(texts.train, config.max_tokens)
    resolved = _resolved(config, texts.train, corpus, _vectors(config, corpus))
    with reproducible(config.seed):
        callback.phase("finding the first clusters", len(texts.train))
        dataset = Dataset(corpus, first_clusters(corpus, config.clusters, config.seed, resolved.vectors))
        clock.lap("starting")
        first_epochs = min(resolved.epochs, max(1, round(FIRST_STEPS / _steps(corpus))))
        trainer = ClusterTrainer(dataset, config.clusters, resolved, first_epochs, stop)
        model = learn(trainer, "learning clusters", callback, first_epochs)
        cluster_R = trainer.predict(trainer.encode(corpus)).mean(0).argmax(1)
        held_out = _held_out(trainer, Corpus.of(texts.held_out, config.max_tokens))
        names = cluster_names(corpus, cluster_R, config.clusters)
        clock.lap("training")
        about = {CLUSTERS: {"objective": config.objective, **asdict(held_out)}}
        vectors = write(output, model, trainer, names, LABEL_COLUMN, texts, about)
        clock.lap("saving")
    sizes = np.bincount(cluster_R, minlength=config.clusters).tolist()
    return ClustersReport(
        texts=len(texts.train),
        sizes=dict(zip(names, sizes, strict=True)),
        epochs=trainer.epochs,
        held_out=held_out,
        vectors=vectors,
        file_bytes=output.stat().st_size,
        interrupted=stop.requested,
        seconds=clock.seconds,
    )


def _vectors(config: PretrainConfig, corpus: Corpus) -> WordVectors | None:
    """Return the word vectors asked for; by default, the English ones for short texts whose words they know.

    Means over the words of long texts distinguish them less well than singular vectors (training/README.md).
    """
    long = len(corpus.token) > MOST_WORDS_A_TEXT * len(corpus)
    return None if config.vectors is None and long else vectors_asked_for(config, corpus)


def _resolved(
    config: PretrainConfig, texts: Sequence[str], corpus: Corpus, vectors: WordVectors | None
) -> ResolvedConfig:
    """Return the configuration for learning clusters: as for labels, except for the objective and the batches."""
    as_labels = TrainConfig(
        epochs=config.epochs or max(EPOCHS, -(-LEAST_STEPS // _steps(corpus))),
        max_tokens=config.max_tokens,
        seed=config.seed,
        device=config.device,
    )
    found = resolve(as_labels, texts, len(corpus.token), config.clusters, vectors=vectors)
    return replace(found, optim=replace(found.optim, batch_size=BATCH))


def _steps(corpus: Corpus) -> int:
    """Return the number of steps per epoch."""
    return -(-len(corpus) // BATCH)


def _held_out(trainer: ClusterTrainer, corpus: Corpus) -> HeldOutInformation:
    """Return what held-out texts say about the clusters."""
    a_RC, b_RC = trainer.both_views(trainer.encode(corpus))
    return HeldOutInformation(
        texts=len(corpus),
        information=round(information(a_RC, b_RC), 6),
        agreement=round(float((a_RC.argmax(1) == b_RC.argmax(1)).float().mean()), 6),
    )
