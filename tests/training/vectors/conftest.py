"""Vectors of words of the sample, and of a few that it does not hold."""

from pathlib import Path

import numpy as np
import pytest

from tests.training.helpers import Trained
from textcls_training.config.settings import TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.training import train
from textcls_training.vectors import file

# Words that the sample does not hold, each beside one that it does: their vectors are nearly the same.
TWINS = {"remunerate": "refund", "consignment": "parcel", "abrogate": "cancel", "remittance": "invoice"}


@pytest.fixture(scope="session")
def vectors_path(sample: LabelledTexts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of vectors: random ones, in which each of `TWINS` stands beside its twin."""
    types = Corpus.of(sample.texts, 48).types
    assert not set(TWINS) & set(types)
    words = [*types, *TWINS]
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((len(words), 24)).astype(np.float32)
    for word, twin in TWINS.items():
        rows[words.index(word)] = rows[words.index(twin)]
    path = tmp_path_factory.mktemp("vectors") / "some.vectors"
    file.save(path, words, rows, {"source": "dice", "licence": "CC0", "how": "drawn"}, 8)
    return path


@pytest.fixture(scope="session")
def with_vectors(sample: LabelledTexts, vectors_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A model of `sample` with vectors: dim 8, words, vectors and pieces."""
    config = TrainConfig(dim=8, ngrams=(3, 5), epochs=6, max_tokens=48, device="cpu", vectors=vectors_path)
    path = tmp_path_factory.mktemp("trained") / "vectors.onnx"
    return Trained(sample, config, path, train(sample, path, config))
