"""Pruning: what matters most stays within a budget."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.training.helpers import LABELS, random_model
from textcls.errors import ConfigError
from textcls.model import features
from textcls.model.features import FeatureConfig
from textcls_torch.export.heads.vector_head import VectorHead
from textcls_torch.models.classifier import ViewClassifier
from textcls_training.config.settings import ModelConfig, Size
from textcls_training.data.corpus import Corpus
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.export import candidates
from textcls_training.export.heads.scoring_head import scoring_head
from textcls_training.export.prune import budget, lookup_tables
from textcls_training.export.tables import LookupTables
from textcls_training.models.calibration import Calibration
from textcls_training.models.ensemble import TrainedModel

MAX_TOKENS = 48
NGRAMS = FeatureConfig(ngram_sizes=(3, 5))


def model_of(corpus: Corpus, config: ModelConfig | None = None) -> TrainedModel:
    """A random model of words and pieces."""
    return random_model(config or ModelConfig(dim=8), NGRAMS.views(), corpus)


@pytest.fixture(scope="module")
def corpus(sample: LabelledTexts) -> Corpus:
    return Corpus.of(sample.texts, MAX_TOKENS)


@pytest.fixture(scope="module")
def whole(corpus: Corpus) -> LookupTables:
    return lookup_tables(model_of(corpus), corpus)


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0)], ids=["the first", "the last"])
def test_what_a_trigram_is_worth_is_what_it_says_in_any_view(corpus: Corpus, weights: tuple[float, float]) -> None:
    views = FeatureConfig(ngram_sizes=(3, 5), trigrams=True).views()
    model = replace(random_model(ModelConfig(dim=8), views, corpus), ensemble_weights=weights)
    assert (candidates.list_candidates(model, corpus).sequences.worth_R > 0).all()


def test_nothing_is_left_out_where_all_fits(corpus: Corpus, whole: LookupTables) -> None:
    fits = lookup_tables(model_of(corpus), corpus, 3_000_000)
    np.testing.assert_array_equal(fits.table(), whole.table())
    assert whole.ngram_index
    assert fits.ngram_index
    assert whole.index.kinds[0] == len(corpus.types)
    assert fits.ngram_index.kinds == whole.ngram_index.kinds


@pytest.mark.parametrize("max_bytes", [100_000, 60_000])
def test_a_budget_keeps_the_words_that_matter(corpus: Corpus, whole: LookupTables, max_bytes: int) -> None:
    model = model_of(corpus)
    kept = lookup_tables(model, corpus, max_bytes)
    assert kept.ngram_index
    assert whole.ngram_index
    assert 0 < sum(kept.index.kinds) < sum(whole.index.kinds)
    assert kept.ngram_index.kinds < whole.ngram_index.kinds
    count = np.bincount(corpus.token)
    often = [corpus.types[i] for i in np.argsort(-count)[:20]]
    rare = [corpus.types[i] for i in np.flatnonzero(count == 1)]

    def known(words: list[str]) -> float:
        return float((kept.index.rows(features.word_hashes(words)) != kept.index.absent).mean())

    assert known(often) > 0.8
    assert known(often) > known(rare)


def test_ngrams_of_one_word_alone_are_the_first_to_go(corpus: Corpus, whole: LookupTables) -> None:
    grams, exist = features.ngram_hashes(corpus.types, NGRAMS)
    found, count = np.unique(grams[exist], return_counts=True)
    kept = lookup_tables(model_of(corpus), corpus, 110_000)
    assert kept.ngram_index
    here = kept.ngram_index.rows(found) != kept.ngram_index.absent
    assert here[count > 1].mean() > 0.9 > here[count == 1].mean()


def test_a_budget_that_holds_not_one_row_is_an_error(corpus: Corpus) -> None:
    with pytest.raises(
        ConfigError, match=r"^A file of 40,000 bytes cannot hold a single embedding row at dim 8 with 3"
    ):
        lookup_tables(model_of(corpus), corpus, 40_000)


WIDE = [
    (ModelConfig(dim=512, attention="cosine"), "default"),
    (ModelConfig(dim=128, attention="cosine"), "tiny"),
    (ModelConfig(dim=512, metric=True, mixing="pool"), "default"),
    (ModelConfig(dim=128, mixing="sha", attention="kernel"), "default"),
]


@pytest.mark.parametrize(("config", "size"), WIDE, ids=str)
def test_what_is_folded_before_saving_takes_no_room_from_the_rows(
    config: ModelConfig, size: Size, corpus: Corpus
) -> None:
    model, max_bytes = model_of(corpus, config), budget(size, LABELS)
    assert not model.hashed_views[0].classifier.foldable
    kept = lookup_tables(model, corpus, max_bytes)
    head = scoring_head(model, Calibration(model.ensemble_weights, 1.0))
    assert isinstance(head, VectorHead)
    core = sum(weight.numel() for weight in head.state_dict().values())
    assert max_bytes is not None
    assert 0 < 4 * core < max_bytes
    assert sum(kept.index.kinds) > 20


@pytest.mark.parametrize("limit", [("SLICE", 100), ("SLICE_NUMBERS", 100 * (LABELS + 1))], ids=["rows", "numbers"])
@pytest.mark.parametrize("config", [None, ModelConfig(dim=8, attention="cosine")], ids=["folded", "vectors"])
def test_rows_are_folded_some_at_a_time_to_the_same_tables(
    config: ModelConfig | None, limit: tuple[str, int], corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(corpus, config)
    expected = lookup_tables(model, corpus, 60_000).table()
    most: list[int] = []

    class Seen(ViewClassifier):
        def fold(self, table_VD: torch.Tensor) -> torch.Tensor:
            most.append(len(table_VD))
            return super().fold(table_VD)

    monkeypatch.setattr(candidates, *limit)
    for view in model.hashed_views:
        view.classifier.__class__ = Seen
    np.testing.assert_allclose(lookup_tables(model, corpus, 60_000).table(), expected, rtol=1e-3, atol=1e-5)
    assert max(most) == 100


@pytest.mark.parametrize(
    ("size", "labels", "expected"),
    [("tiny", 2, 300_000), ("small", 50, 1_000_000), ("default", 10, 3_000_000), ("default", 77, 9_700_000)],
)
def test_the_budget_of_a_size(size: Size, labels: int, expected: int) -> None:
    assert budget(size, labels) == expected
    assert budget("full", labels) is None


def test_the_same_model_has_the_same_tables(corpus: Corpus, whole: LookupTables) -> None:
    again = lookup_tables(model_of(corpus), corpus)
    np.testing.assert_array_equal(again.table(), whole.table())
    np.testing.assert_array_equal(again.index.displacement, whole.index.displacement)
