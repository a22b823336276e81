"""Learning labels from their names, from beginning to end: texts and names in, a model that predicts them out.

Shapes: R texts, C labels, E width of a vector.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from textcls.data.columns import DEFAULT_LABEL_COLUMN
from textcls.errors import InputError
from textcls.model.artifact import LABEL_NAMES
from textcls_training.config.clock import Clock
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.config.resolve import ResolvedConfig, chosen_impl, resolve
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.cross_fit import make_trainer
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.threads import reproducible
from textcls_training.pretraining.label_names.descriptions import read_descriptions
from textcls_training.pretraining.label_names.nearest import similarities, surest
from textcls_training.pretraining.label_names.report import LabelNamesReport
from textcls_training.pretraining.mean_vectors import mean_vectors
from textcls_training.pretraining.saved_model import learn, vectors_asked_for, write
from textcls_training.pretraining.texts import PretrainingTexts
from textcls_training.vectors import sentence_encoder
from textcls_training.vectors.sentence_encoder import SentenceEncoder
from textcls_training.vectors.word_vectors import WordVectors

# The share of the texts of each label that are learned from: the surest ones.
SHARE: Final = 0.5


class Named(NamedTuple):
    """Texts compared with the names of labels.

    Attributes:
        cosine_RC: the cosine of each text and each name.
        by: the source of the vectors.
    """

    cosine_RC: Float32
    by: str


def run(
    texts: PretrainingTexts, output: Path, config: PretrainConfig, callback: Callback, stop: Stop
) -> LabelNamesReport:
    """Give each of `texts` the label whose name is nearest, and write a model that has learned the surest to `output`.

    Raises:
        InputError: the names cannot be used, or the vectors do not know them.
        ConfigError: training diverged.
        MissingExtraError: the teacher needs a package that is not installed.
        SurroundingsError: `output` cannot be written.
        KeyboardInterrupt: a stop was requested before there was anything to keep.
    """
    if config.names is None:
        raise TypeError("the configuration has checked that there are names")
    descriptions = read_descriptions(config.names)
    labels = tuple(descriptions)
    clock = Clock()
    everything = [*texts.train, *texts.held_out]
    corpus = Corpus.of(everything, config.max_tokens)
    words = vectors_asked_for(config, corpus)
    named = _named(everything, corpus, descriptions, words, config, callback, stop)
    clock.lap("naming")
    learned = surest(named.cosine_RC[: len(texts.train)], SHARE)
    dataset = Dataset(corpus.select(learned), named.cosine_RC[learned].argmax(1).astype(np.int64))
    resolved = _resolved(config, [texts.train[i] for i in learned], dataset, labels, words)
    with reproducible(config.seed, resolved.impl, len(labels)):
        trainer = make_trainer(dataset, len(labels), resolved, stop)
        model = learn(trainer, "learning from the surest texts", callback)
        answer_R = trainer.predict(trainer.encode(corpus)).mean(0).argmax(1)
        held_out = slice(len(texts.train), None)
        agreement = float((answer_R == named.cosine_RC.argmax(1))[held_out].mean())
        clock.lap("training")
        about = {LABEL_NAMES: {"by": named.by, "agreement": round(agreement, 6), "descriptions": descriptions}}
        write(output, model, trainer, labels, DEFAULT_LABEL_COLUMN, texts, about)
        clock.lap("saving")
    return LabelNamesReport(
        texts=len(texts.train),
        learned=len(learned),
        by=named.by,
        sizes=_sizes(labels, answer_R[: len(texts.train)]),
        agreement=round(agreement, 6),
        epochs=trainer.epochs,
        file_bytes=output.stat().st_size,
        interrupted=stop.requested,
        seconds=clock.seconds,
    )


def _named(
    texts: Sequence[str],
    corpus: Corpus,
    descriptions: Mapping[str, str],
    words: WordVectors | None,
    config: PretrainConfig,
    callback: Callback,
    stop: Stop,
) -> Named:
    if config.teacher is not None:
        from textcls_training.fit.device import device_type

        sentence_encoder.require()
        encoder = SentenceEncoder(config.teacher, device_type(config.device))
        found = encoder.encode([*descriptions.values(), *texts], callback, lambda: stop.requested).astype(np.float32)
        if stop.requested:
            raise KeyboardInterrupt
        return Named(similarities(found[len(descriptions) :], found[: len(descriptions)]), encoder.name)
    if words is None:
        raise InputError(
            "The vectors cover too few words of these texts to compare them with the names; add --teacher MODEL."
        )
    name_CE = mean_vectors(Corpus.of([*descriptions.values()], config.max_tokens), words)
    for (label, description), name_E in zip(descriptions.items(), name_CE, strict=True):
        if not name_E.any():
            raise InputError(
                f"No word of {description!r}, which says what {label!r} means, has a vector; describe it in "
                "other words."
            )
    return Named(similarities(mean_vectors(corpus, words), name_CE), words.about.get("source", "vectors of words"))


def _resolved(
    config: PretrainConfig, texts: Sequence[str], dataset: Dataset, labels: Sequence[str], words: WordVectors | None
) -> ResolvedConfig:
    """Return the configuration of an ordinary training on the texts that were named."""
    as_labels = TrainConfig(epochs=config.epochs, max_tokens=config.max_tokens, seed=config.seed, device=config.device)
    impl = chosen_impl(as_labels)
    found = resolve(as_labels, texts, len(dataset.corpus.token), len(labels), vectors=words, names=labels, impl=impl)
    return replace(found, machines_beside=False)  # No held-out row could determine their weight.


def _sizes(labels: Sequence[str], answer_R: Int64) -> dict[str, int]:
    return dict(zip(labels, np.bincount(answer_R, minlength=len(labels)).tolist(), strict=True))
