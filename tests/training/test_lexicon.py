"""The tables of a saved model: every feature is found, others are not, and what matters most stays within a budget."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.models import LABELS, random_model
from textcls import features
from textcls.errors import ConfigError
from textcls.features import FeatureConfig
from textcls_training import lexicon
from textcls_training.choices import Size
from textcls_training.core import serving_core
from textcls_training.encoding import Corpus
from textcls_training.lexicon import Directory, Lexicon, Rounded
from textcls_training.model import ModelConfig, TextClassifier
from textcls_training.run import Source
from textcls_training.views import Fitted

MAX_TOKENS = 48
NGRAMS = FeatureConfig(ngram_sizes=(3, 5))


def hashes(count: int, seed: int = 0) -> features.Uint32:
    found = np.random.default_rng(seed).choice(2**32 - 1, count, replace=False) + 1
    return found.astype(np.uint32)


def model_of(corpus: Corpus, model: ModelConfig | None = None) -> Fitted:
    """A random model of words and pieces."""
    return random_model(model or ModelConfig(dim=8), NGRAMS.views(), corpus)


@pytest.fixture(scope="module")
def corpus(sample: Source) -> Corpus:
    return Corpus.of(sample.texts, MAX_TOKENS)


@pytest.fixture(scope="module")
def whole(corpus: Corpus) -> Lexicon:
    return lexicon.build(model_of(corpus), corpus)


def reads(tables: Lexicon, text: str) -> np.ndarray:
    _, token_btgx = tables.read(Corpus.of([text], MAX_TOKENS))
    found: np.ndarray = token_btgx[0]
    return found


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 5))
@settings(deadline=None, max_examples=40)
def test_every_hash_has_a_row_of_its_own(first: int, second: int, seed: int) -> None:
    every = hashes(first + second, seed)
    kinds = every[:first], every[first:]
    directory, numbers = Directory.of(*kinds)
    assert directory.kinds == (first, second)
    for kind, number in zip(kinds, numbers, strict=True):
        assert sorted(number) == list(range(len(kind)))
    in_order = np.concatenate([kind[number] for kind, number in zip(kinds, numbers, strict=True)])
    np.testing.assert_array_equal(directory.rows(in_order), np.arange(first + second))


def test_hashes_that_share_all_low_bits_are_told_apart() -> None:
    every = (np.arange(1, 200, dtype=np.uint32) << np.uint32(20)) + np.uint32(5)
    directory, (number,) = Directory.of(every)
    np.testing.assert_array_equal(directory.rows(every[number]), np.arange(199))


def test_a_strange_hash_is_taken_for_a_row_about_once_in_four_hundred() -> None:
    directory, _ = Directory.of(hashes(5000))
    strange = hashes(200_000, seed=1)
    taken = (directory.rows(strange) != directory.nothing).mean()
    assert 0.0015 < taken < 0.0035
    # Whoever is taken for a row meets its fingerprint.
    row = directory.rows(strange)
    met = row < 5000
    assert (directory.fingerprint_R[row[met]] == strange[met] >> np.uint32(24)).all()


@pytest.mark.parametrize("seed", range(5))
def test_padding_has_its_row_and_nothing_stands_around_texts(seed: int) -> None:
    end = np.array([features.end_hash()], np.uint32)
    around = features.bigram_hashes(np.array([features.START, end[0]], np.uint32), np.repeat(end, 2))
    # Even if training has seen them: an empty text has the bigram of START and END.
    given_hashes = np.unique(np.concatenate([hashes(3000, seed), end, around, np.zeros(1, np.uint32)]))
    directory, (number,) = Directory.of(given_hashes)
    assert len(number) == len(given_hashes) - 4
    assert directory.rows(end).tolist() == [len(number)]
    assert (directory.rows(np.append(around, np.uint32(0))) == directory.nothing).all()


@pytest.mark.parametrize(("bits", "steps"), [(8, 127), (4, 7)])
def test_rows_are_rounded_by_half_a_step_at_most(bits: int, steps: int) -> None:
    column_rgy = np.random.default_rng(0).normal(size=(50, 2, 5)).astype(np.float32)
    energy_r = np.linspace(0, 20, 50, dtype=np.float32)
    rounded = Rounded.of(column_rgy, energy_r, bits)  # type: ignore[arg-type]
    assert np.abs(rounded.step_RGY).max() == steps
    found = rounded.rows()
    step_rg1 = np.abs(column_rgy).max(2, keepdims=True) / steps
    assert (np.abs(found[..., :-1] - column_rgy) <= 0.6 * step_rg1).all()
    np.testing.assert_allclose(found[:, 0, -1], energy_r, rtol=1e-3, atol=1e-4)
    assert (found[..., -1] > 0).all()


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 65_505, -1e6])
@pytest.mark.parametrize("place", ["column", "energy"])
def test_numbers_that_a_loaded_table_could_not_hold_are_an_error(number: float, place: str) -> None:
    column_rgy, energy_r = np.ones((2, 1, 3), np.float32), np.ones(2, np.float32)
    Rounded.of(65_504 * column_rgy, 65_504 * energy_r, 8)
    (column_rgy if place == "column" else energy_r)[1] = number
    with pytest.raises(
        ConfigError, match=r"^Training diverged: a row .* not finite or above 65,504; lower the learning"
    ):
        Rounded.of(column_rgy, energy_r, 8)


def test_the_scale_of_a_row_is_exact_to_a_share_of_the_largest() -> None:
    largest = np.float32(60_000)
    column_rgy = largest * np.array([1, 1e-3, 1e-5, 1e-7, 1e-9], np.float32).reshape(-1, 1, 1)
    rounded = Rounded.of(column_rgy, np.ones(5, np.float32), 8)
    found = rounded.scale_RG[:, 0].astype(np.float32) * rounded.largest
    np.testing.assert_allclose(found, column_rgy[:, 0, 0] / 127, rtol=1 / 2000, atol=3e-8 * rounded.largest)
    assert found[-1] == 0


def test_a_known_word_says_what_all_its_rows_say(corpus: Corpus, whole: Lexicon) -> None:
    fitted = model_of(corpus)
    view = fitted.row_views[1]
    word = max(corpus.types, key=len)
    grams, exist = features.ngram_hashes([word], view.space.config)
    rows = view.space.rows(np.append(features.word_hashes([word]), grams[exist]))
    weight = torch.from_numpy(view.space.weight)[rows]
    with torch.no_grad():
        (folded,) = (view.classifier.fold(view.table_VD[rows]) * weight.view(-1, 1, 1)).sum(0).numpy()
    found = reads(whole, word)[0, 1]
    expected = np.append(folded[:LABELS] * fitted.shares[1], folded[LABELS])
    np.testing.assert_allclose(found[:-1], expected, atol=np.abs(expected).max() / 100)
    np.testing.assert_allclose(found[-1], weight.square().sum(), rtol=1e-2)


def test_an_unknown_word_says_what_its_ngrams_say(corpus: Corpus, whole: Lexicon) -> None:
    word = "refundings"
    assert word not in corpus.types
    assert "refund" in corpus.types
    grams, exist = features.ngram_hashes([word], NGRAMS)
    assert whole.ngrams
    assert whole.ngram_rows
    row = whole.ngrams.rows(grams[exist])
    known = row[row < whole.ngrams.nothing]
    assert 0 < len(known) < exist.sum()
    (found,) = reads(whole, word)
    np.testing.assert_allclose(found[1], whole.ngram_rows.rows()[known].sum((0, 1)), atol=1e-5)
    assert not found[0, :-1].any()


def test_what_is_neither_known_nor_made_of_known_ngrams_says_nothing(whole: Lexicon) -> None:
    (found,) = reads(whole, "\u6771")
    assert not found.any()


def test_a_word_that_meets_the_row_of_a_bigram_is_unknown_all_the_same(whole: Lexicon) -> None:
    assert whole.pieces
    is_bigram = np.arange(sum(whole.rows.kinds)) >= whole.rows.kinds[0]
    table_rgx = whole.table()[:-2]
    np.testing.assert_array_equal(table_rgx[:, -1, -1] == 0, is_bigram)


def test_nothing_is_left_out_where_all_fits(corpus: Corpus, whole: Lexicon) -> None:
    fits = lexicon.build(model_of(corpus), corpus, 3_000_000)
    np.testing.assert_array_equal(fits.table(), whole.table())
    assert whole.ngrams
    assert fits.ngrams
    assert whole.rows.kinds[0] == len(corpus.types)
    assert fits.ngrams.kinds == whole.ngrams.kinds


@pytest.mark.parametrize("max_bytes", [100_000, 60_000])
def test_a_budget_keeps_the_words_that_matter(corpus: Corpus, whole: Lexicon, max_bytes: int) -> None:
    fitted = model_of(corpus)
    kept = lexicon.build(fitted, corpus, max_bytes)
    assert kept.ngrams
    assert whole.ngrams
    assert 0 < sum(kept.rows.kinds) < sum(whole.rows.kinds)
    assert kept.ngrams.kinds < whole.ngrams.kinds
    count = np.bincount(corpus.token)
    often = [corpus.types[i] for i in np.argsort(-count)[:20]]
    rare = [corpus.types[i] for i in np.flatnonzero(count == 1)]

    def known(words: list[str]) -> float:
        return float((kept.rows.rows(features.word_hashes(words)) != kept.rows.nothing).mean())

    assert known(often) > 0.8
    assert known(often) > known(rare)


def test_ngrams_of_one_word_alone_are_the_first_to_go(corpus: Corpus, whole: Lexicon) -> None:
    grams, exist = features.ngram_hashes(corpus.types, NGRAMS)
    found, count = np.unique(grams[exist], return_counts=True)
    kept = lexicon.build(model_of(corpus), corpus, 110_000)
    assert kept.ngrams
    here = kept.ngrams.rows(found) != kept.ngrams.nothing
    assert here[count > 1].mean() > 0.9 > here[count == 1].mean()


def test_a_budget_that_holds_not_one_row_is_an_error(corpus: Corpus) -> None:
    with pytest.raises(ConfigError, match=r"^A file of 40,000 bytes has no room for a single row at dim 8 with 3"):
        lexicon.build(model_of(corpus), corpus, 40_000)


def test_texts_without_words_leave_tables_that_can_be_read() -> None:
    nothing = Corpus.of(["", " "], MAX_TOKENS)
    kept = lexicon.build(model_of(nothing), nothing, 300_000)
    assert kept.rows.kinds == (0, 0)
    assert not reads(kept, "my card was charged")[..., :-1].any()


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
    fitted, max_bytes = model_of(corpus, model=config), lexicon.budget(size, LABELS)
    assert not fitted.row_views[0].classifier.foldable
    kept = lexicon.build(fitted, corpus, max_bytes)
    core = sum(weight.numel() for weight in serving_core(fitted, 1.0).state_dict().values())
    assert max_bytes is not None
    assert 0 < 4 * core < max_bytes
    assert sum(kept.rows.kinds) > 20


@pytest.mark.parametrize("model", [None, ModelConfig(dim=8, attention="cosine")], ids=["folded", "vectors"])
def test_rows_are_folded_some_at_a_time_to_the_same_tables(
    model: ModelConfig | None, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = model_of(corpus, model=model)
    expected = lexicon.build(fitted, corpus, 60_000).table()
    most: list[int] = []

    class Seen(TextClassifier):
        def fold(self, table_VD: torch.Tensor) -> torch.Tensor:
            most.append(len(table_VD))
            return super().fold(table_VD)

    monkeypatch.setattr(lexicon.candidates, "SLICE", 100)
    for view in fitted.row_views:
        view.classifier.__class__ = Seen
    np.testing.assert_allclose(lexicon.build(fitted, corpus, 60_000).table(), expected, rtol=1e-3, atol=1e-5)
    assert max(most) == 100


@pytest.mark.parametrize(
    ("size", "labels", "expected"),
    [("tiny", 2, 300_000), ("small", 50, 1_000_000), ("default", 10, 3_000_000), ("default", 77, 9_700_000)],
)
def test_the_budget_of_a_size(size: Size, labels: int, expected: int) -> None:
    assert lexicon.budget(size, labels) == expected
    assert lexicon.budget("full", labels) is None


def test_the_same_model_has_the_same_tables(corpus: Corpus, whole: Lexicon) -> None:
    again = lexicon.build(model_of(corpus), corpus)
    np.testing.assert_array_equal(again.table(), whole.table())
    np.testing.assert_array_equal(again.rows.displacement, whole.rows.displacement)
