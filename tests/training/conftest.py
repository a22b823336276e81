"""What the tests of training share: a small sample, a model trained on it once, and features by plain loops."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from textcls import features, tokenizer
from textcls.data import read_labelled
from textcls.features import FeatureConfig
from textcls_training.config import TrainConfig
from textcls_training.encoding import Corpus, FeatureSpace
from textcls_training.model import ModelConfig
from textcls_training.run import Source, TrainReport, train

SMALL = TrainConfig(model=ModelConfig(dim=8), ngram_sizes=(3, 5), epochs=3, max_tokens=48, device="cpu")


@dataclass(frozen=True)
class Trained:
    """A model that was trained by `textcls_training.run.train`."""

    source: Source
    config: TrainConfig
    path: Path
    report: TrainReport


def plain_bigrams(tokens: list[str], full: bool = False) -> list[int]:
    """The hash of START and the first token, of each two neighbours, and of the last token and END.

    The last one is 0 where the text is `full`: there may have been more tokens than are read.
    """
    word = features.word_hashes(tokens)
    left = np.append(np.uint32(features.START), word)
    pairs = features.bigram_hashes(left, np.append(word, np.uint32(features.end_hash()))).tolist()
    return [*pairs[:-1], 0] if full else pairs


def plain_features(text: str, config: FeatureConfig) -> Iterator[list[tuple[str, int]]]:
    """The features (kind, hash) that each token of `text` owns; a bigram is owned by both of its tokens."""
    tokens = tokenizer.tokenize(text)
    bigram = plain_bigrams(tokens)
    for i, token in enumerate(tokens):
        owned = [("word", h) for h in features.word_hashes([token]).tolist()]
        hashes, exist = features.ngram_hashes([token], config)
        owned += [("ngram", h) for h in hashes[exist].tolist()]
        if config.bigrams:
            owned += [("bigram", h) for h in bigram[i : i + 2]]
        yield owned


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The tests run on several processes already; threads would only fight for the cores."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def sample(sample_path: Path) -> Source:
    """The first 150 rows of the bundled table."""
    rows = read_labelled(sample_path, ["text"], "label")
    return Source(texts=rows.texts[:150], labels=rows.labels[:150])


@pytest.fixture(scope="session")
def sample_space(sample: Source) -> FeatureSpace:
    """The features of `sample`, with n-grams of 3 and 5."""
    return FeatureSpace.fit(Corpus.of(sample.texts, 48), FeatureConfig(ngram_sizes=(3, 5)))


@pytest.fixture(scope="session")
def trained(sample: Source, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A model of `sample`: dim 8, words and pieces, three epochs."""
    path = tmp_path_factory.mktemp("trained") / "model.onnx"
    return Trained(sample, SMALL, path, train(sample, path, SMALL))
