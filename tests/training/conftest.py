"""The fixtures of training: a small sample, its features, and a model trained on it once."""

import re
from pathlib import Path

import pytest
import torch

from tests.training.helpers import SMALL, Trained, make_sentence_encoder
from textcls.data import read_labelled
from textcls.model.features import FeatureConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.training import train
from textcls_training.vectors import sentence_encoder


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The tests run on several processes already; threads would only fight for the cores."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def sample(sample_path: Path) -> LabelledTexts:
    """The first 150 rows of the bundled table."""
    rows = read_labelled(sample_path, ["text"], "label")
    return LabelledTexts(texts=rows.texts[:150], labels=rows.labels[:150])


@pytest.fixture(scope="session")
def sample_space(sample: LabelledTexts) -> FeatureSpace:
    """The features of `sample`, with n-grams of 3 and 5."""
    return FeatureSpace.fit(Corpus.of(sample.texts, 48), FeatureConfig(ngram_sizes=(3, 5)))


@pytest.fixture(scope="session")
def trained(sample: LabelledTexts, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A model of `sample`: dim 8, words and pieces, three epochs."""
    path = tmp_path_factory.mktemp("trained") / "model.onnx"
    return Trained(sample, SMALL, path, train(sample, path, SMALL))


@pytest.fixture(scope="session")
def encoder_folder(sample: LabelledTexts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small sentence-transformers model that knows the words of `sample`."""
    pytest.importorskip(
        "sentence_transformers", reason="a teacher needs sentence-transformers: pip install textcls[teacher]"
    )
    words = [word for text in sample.texts for word in re.findall(r"\w+", text)]
    return make_sentence_encoder(tmp_path_factory.mktemp("teacher") / "small", words)


@pytest.fixture
def encoder_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of sentence vectors, empty."""
    monkeypatch.setenv(sentence_encoder.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"
