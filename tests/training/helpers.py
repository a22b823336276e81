"""What several tests of training share: small configurations, models without training, features by plain loops."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from textcls.model import features, tokenizer
from textcls.model.features import FeatureConfig
from textcls_torch.fit.trainer import Trainer
from textcls_torch.models.classifier import ViewClassifier
from textcls_torch.models.initial_weights import init_weights
from textcls_training.config.resolve import ResolvedConfig, resolve
from textcls_training.config.settings import ModelConfig, TrainConfig
from textcls_training.data.arrays import Float32
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.any_trainer import AnyTrainer
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.course import Course
from textcls_training.fit.cross_fit import fit
from textcls_training.fit.threads import reproducible
from textcls_training.models.ensemble import HashedView, TrainedModel, View
from textcls_training.pipeline.training_report import TrainReport

M = TypeVar("M", bound=nn.Module)

SMALL = TrainConfig(dim=8, ngrams=(3, 5), epochs=3, max_tokens=48, device="cpu", vectors="none")
LABELS = 3
ENSEMBLES = ((1.0,), (0.3, 0.7))


@dataclass(frozen=True)
class Trained:
    """A model that was trained by `textcls_training.pipeline.training.train`."""

    texts: LabelledTexts
    config: TrainConfig
    path: Path
    report: TrainReport


def dataset_of(given: LabelledTexts, max_tokens: int = 48) -> Dataset:
    """The rows as training counts them."""
    return Dataset.of(given, given.label_names(), max_tokens)


def classes_of(dataset: Dataset) -> int:
    return int(dataset.labels.max()) + 1


def resolved(dataset: Dataset, **options: Any) -> ResolvedConfig:
    """A small configuration for a data set, on the CPU."""
    width = {} if "model" in options else {"dim": 8}
    config = TrainConfig(**{"epochs": 3, "ngrams": (3,), "device": "cpu", **width, **options})
    return resolve(config, [""] * len(dataset.labels), len(dataset.corpus.token), classes_of(dataset))


def random_model(config: ModelConfig, features: Sequence[FeatureConfig], corpus: Corpus) -> TrainedModel:
    """A model with random weights, none at a start where it does nothing: a view for each of `features`."""
    torch.manual_seed(0)
    views = []
    for of_view in features:
        space = FeatureSpace.fit(corpus, of_view)
        table_VD = torch.randn(len(space.weight), config.dim)
        table_VD[0] = 0
        classifier = ViewClassifier(config, LABELS).eval()
        with torch.no_grad():
            for parameter in classifier.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        views.append(HashedView(space, table_VD.numpy(), classifier))
    return TrainedModel(corpus.types, views, ENSEMBLES[len(views) - 1])


def started(module: M) -> M:
    """The module with the weights that training starts from, the same in every run."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        init_weights(module)
    return module


def plain_bigrams(tokens: list[str], full: bool = False) -> list[int]:
    """The hash of START and the first token, of each two neighbours, and of the last token and END.

    The last one is 0 where the text is `full`: there may have been more tokens than are read.
    """
    word = features.word_hashes(tokens)
    left = np.append(np.uint32(features.START), word)
    pairs = features.bigram_hashes(left, np.append(word, np.uint32(features.end_hash()))).tolist()
    return [*pairs[:-1], 0] if full else pairs


def plain_trigrams(tokens: list[str], full: bool = False) -> list[int]:
    """The hash of each three neighbours, where START and END are tokens, too; the last one as of `plain_bigrams`."""
    around = [features.START, *features.word_hashes(tokens).tolist(), features.end_hash()]
    triples = [
        ((a * features.BIGRAM_MULTIPLIER + b) * features.BIGRAM_MULTIPLIER + c) % 2**32
        for a, b, c in zip(around, around[1:], around[2:], strict=False)
    ]
    return [*triples[:-1], 0] if full else triples


def plain_features(text: str, config: FeatureConfig) -> Iterator[list[tuple[str, int]]]:
    """The features (kind, hash) that each token of `text` owns; a bigram and a trigram is owned by all its tokens."""
    tokens = tokenizer.tokenize(text)
    bigram, trigram = plain_bigrams(tokens), plain_trigrams(tokens)
    for i, token in enumerate(tokens):
        owned = [("word", h) for h in features.word_hashes([token]).tolist()]
        hashes, exist = features.ngram_hashes([token], config)
        owned += [("ngram", h) for h in hashes[exist].tolist()]
        if config.bigrams:
            owned += [("bigram", h) for h in bigram[i : i + 2]]
        if config.trigrams:
            owned += [("trigram", h) for h in trigram[max(0, i - 1) : i + 2]]
        yield owned


class Recorder(Callback):
    """A callback that writes everything down."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, int]] = []
        self.steps: list[tuple[int, float | None]] = []
        self.notes: list[str] = []
        self.epochs: list[tuple[int, float | None]] = []

    def phase(self, name: str, rows: int) -> None:
        self.phases.append((name, rows))

    def step(self, rows: int, loss: float | None = None) -> None:
        self.steps.append((rows, loss))

    def note(self, text: str) -> None:
        self.notes.append(text)

    def epoch(self, number: int, score: float | None) -> None:
        self.epochs.append((number, score))


def fit_all(dataset: Dataset, config: ResolvedConfig, callback: Callback = NOBODY) -> Trainer:
    """A fit on all rows for all epochs, by the reference."""
    with reproducible(config.seed):
        trainer = fit(dataset, classes_of(dataset), config, config.epochs, Course(callback))
    assert isinstance(trainer, Trainer)
    return trainer


def module_of(view: View) -> ViewClassifier:
    """The classifier of a view as the module that was trained."""
    assert isinstance(view.classifier, ViewClassifier)
    return view.classifier


def logits_of(trainer: AnyTrainer, corpus: Corpus) -> Float32:
    """The logits [V, rows, C]."""
    return trainer.predict(trainer.encode(corpus))


def same_weights(one: TrainedModel, other: TrainedModel) -> bool:
    return all(torch.equal(a, b) for a, b in zip(_weights(one), _weights(other), strict=True))


def _weights(model: TrainedModel) -> list[torch.Tensor]:
    found = []
    for view in model.hashed_views:
        found += [torch.from_numpy(view.table_VD), *module_of(view).state_dict().values()]
    return found


def make_sentence_encoder(folder: Path, words: list[str], seed: int = 0) -> Path:
    """Write a model that gives each of `words` a random vector, and a text their mean."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    vocabulary = {word: i for i, word in enumerate(["[UNK]", *sorted(set(words))])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    weights = np.random.default_rng(seed).standard_normal((len(vocabulary), 16)).astype(np.float32)
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)]).save_pretrained(str(folder))
    return folder
