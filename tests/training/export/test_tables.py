"""Lookup tables: what words in and out of vocabulary come to."""

import numpy as np
import pytest
import torch

from tests.training.helpers import LABELS, module_of, random_model
from textcls.model import features
from textcls.model.features import FeatureConfig
from textcls_training.config.settings import ModelConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.export.prune import lookup_tables
from textcls_training.export.tables import LookupTables
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


def reads(tables: LookupTables, text: str) -> np.ndarray:
    _, token_btgx = tables.read(Corpus.of([text], MAX_TOKENS))
    found: np.ndarray = token_btgx[0]
    return found


def test_a_word_in_vocabulary_has_the_sum_of_all_its_rows(corpus: Corpus, whole: LookupTables) -> None:
    model = model_of(corpus)
    view = model.hashed_views[1]
    word = max(corpus.types, key=len)
    grams, exist = features.ngram_hashes([word], view.space.config)
    rows = view.space.rows(np.append(features.word_hashes([word]), grams[exist]))
    weight = torch.from_numpy(view.space.weight)[rows]
    with torch.no_grad():
        (folded,) = (module_of(view).fold(torch.from_numpy(view.table_VD[rows])) * weight.view(-1, 1, 1)).sum(0).numpy()
    found = reads(whole, word)[0, 1]
    expected = np.append(folded[:LABELS] * model.ensemble_weights[1], folded[LABELS])
    np.testing.assert_allclose(found[:-1], expected, atol=np.abs(expected).max() / 100)
    np.testing.assert_allclose(found[-1], weight.square().sum(), rtol=1e-2)


def test_a_word_out_of_vocabulary_has_the_sum_of_its_ngrams(corpus: Corpus, whole: LookupTables) -> None:
    word = "refundings"
    assert word not in corpus.types
    assert "refund" in corpus.types
    grams, exist = features.ngram_hashes([word], NGRAMS)
    assert whole.ngram_index
    assert whole.ngram_rows
    row = whole.ngram_index.rows(grams[exist])
    known = row[row < whole.ngram_index.absent]
    assert 0 < len(known) < exist.sum()
    (found,) = reads(whole, word)
    np.testing.assert_allclose(found[1], whole.ngram_rows.dequantized()[known].sum((0, 1)), atol=1e-5)
    assert not found[0, :-1].any()


def test_a_word_without_a_single_ngram_in_the_tables_adds_nothing(whole: LookupTables) -> None:
    (found,) = reads(whole, "\u6771")
    assert not found.any()


def test_a_word_that_meets_the_row_of_a_bigram_is_out_of_vocabulary_all_the_same(whole: LookupTables) -> None:
    assert len(whole.kinds[0]) == 2
    is_bigram = np.arange(sum(whole.index.kinds)) >= whole.index.kinds[0]
    table_rgx = whole.table()[:-2]
    np.testing.assert_array_equal(table_rgx[:, -1, -1] == 0, is_bigram)


def test_texts_without_words_leave_tables_that_can_be_read() -> None:
    nothing = Corpus.of(["", " "], MAX_TOKENS)
    kept = lookup_tables(model_of(nothing), nothing, 300_000)
    assert kept.index.kinds == (0, 0)
    assert not reads(kept, "my card was charged")[..., :-1].any()
