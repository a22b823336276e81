"""Masked words: what is masked, what a context is made of, the softmax and its sample, and what is learned."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from tests.training.helpers import Recorder
from textcls import ConfigError, InputError
from textcls_torch.pretraining.masked.held_out import HeldOutScores
from textcls_torch.pretraining.masked.model import MaskedModel
from textcls_torch.pretraining.masked.run import train
from textcls_torch.pretraining.masked.softmax import WordSampler, sampled_cross_entropy, word_log_probabilities
from textcls_torch.pretraining.masked.trainer import MaskedTrainer
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.threads import reproducible
from textcls_training.pretraining.masked.masking import masked_tokens
from textcls_training.pretraining.texts import PretrainingTexts
from textcls_training.pretraining.vocabulary import Vocabulary


def texts_in_order(words: int = 12, length: int = 7, times: int = 60) -> PretrainingTexts:
    """Texts that are a stretch of one cycle of words with a number before it: order alone tells a masked word."""
    rows = []
    for time in range(times):
        for start in range(words):
            stretch = [f"w{(start + i) % words}" for i in range(length)]
            rows.append(UnlabelledText(" ".join([f"n{time}", *stretch])))
    return PretrainingTexts.of(UnlabelledTexts.sample(rows, 10_000, ()))


@given(st.lists(st.integers(0, 9), max_size=12), st.floats(0.01, 0.9), st.integers(0, 99))
def test_of_each_text_something_is_masked_and_something_is_left(lengths: list[int], rate: float, seed: int) -> None:
    masked_N = masked_tokens(np.array(lengths, np.int64), rate, np.random.default_rng(seed))
    assert len(masked_N) == sum(lengths)
    for part, length in zip(np.split(masked_N, np.cumsum(lengths)), lengths, strict=False):
        assert (0 < part.sum() < length) if length > 1 else not part.any()


def test_as_many_tokens_are_masked_as_the_rate_says() -> None:
    masked_N = masked_tokens(np.full(2000, 50), 0.3, np.random.default_rng(0))
    assert masked_N.mean() == pytest.approx(0.3, abs=0.01)


def places(masked_BT: torch.Tensor) -> torch.Tensor:
    return masked_BT.flatten().nonzero().squeeze(1)


@pytest.mark.parametrize("mixing", ["none", "lambda", "gmlp", "softmax", "mixer"])
def test_a_context_knows_nothing_of_masked_words_and_of_padding(mixing: str) -> None:
    torch.manual_seed(0)
    model = MaskedModel(8, mixing).eval()
    x_BTD, mask_BT = torch.randn(2, 6, 8), torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    masked_BT = torch.zeros(2, 6, dtype=torch.bool)
    masked_BT[0, 2] = masked_BT[0, 5] = masked_BT[1, 0] = True
    x_BTD[~mask_BT] = 0
    squared_norm_BT1 = torch.rand(2, 6, 1) * mask_BT.unsqueeze(-1)
    found_MD = model(x_BTD, squared_norm_BT1, mask_BT, places(masked_BT))
    others_BTD = x_BTD.where(~masked_BT.unsqueeze(-1), 100 * torch.randn(2, 6, 8))
    torch.testing.assert_close(model(others_BTD, squared_norm_BT1, mask_BT, places(masked_BT)), found_MD)
    wider = [F.pad(tensor, (0, 0, 0, 3)) for tensor in (x_BTD, squared_norm_BT1)]
    wider_mask_BT, wider_masked_BT = (F.pad(tensor, (0, 3)) for tensor in (mask_BT, masked_BT))
    torch.testing.assert_close(model(*wider, wider_mask_BT, places(wider_masked_BT)), found_MD)


def test_without_a_mixing_layer_a_context_is_the_bag_of_the_other_words() -> None:
    x_BTD = torch.tensor([[[1.0, 2.0], [5.0, 5.0], [3.0, -1.0]]])
    squared_norm_BT1 = torch.tensor([[[1.0], [7.0], [3.0]]])
    found_MD = MaskedModel(2, "none")(x_BTD, squared_norm_BT1, torch.ones(1, 3, dtype=torch.bool), torch.tensor([1]))
    torch.testing.assert_close(found_MD, torch.tensor([[2.0, 0.5]]))


def test_the_sample_of_every_other_word_once_is_the_softmax_over_all_of_equal_frequency() -> None:
    torch.manual_seed(0)
    h_MD, word_VD = torch.randn(3, 4), torch.randn(6, 4)
    right_M = torch.tensor([5, 0, 2])
    same_MS = right_M.unsqueeze(1) == torch.arange(6)
    found = sampled_cross_entropy(h_MD, word_VD[right_M], word_VD, same_MS)
    log_probability_MV = word_log_probabilities(h_MD, word_VD, torch.full((6,), 1 / 6).log())
    torch.testing.assert_close(found, -log_probability_MV[torch.arange(3), right_M].sum())


def test_a_context_that_says_nothing_expects_words_by_their_frequency() -> None:
    frequency_V = torch.tensor([0.7, 0.2, 0.1])
    found_MV = word_log_probabilities(torch.zeros(1, 4), torch.randn(3, 4), frequency_V.log())
    torch.testing.assert_close(found_MV[0].exp(), frequency_V)


def test_words_are_drawn_by_their_frequency() -> None:
    drawn = WordSampler(np.array([6, 3, 1])).draw(20_000, np.random.default_rng(0))
    assert np.bincount(drawn, minlength=4) / len(drawn) == pytest.approx([0, 0.6, 0.3, 0.1], abs=0.02)


def scores(texts: PretrainingTexts, mixing: str) -> tuple[MaskedTrainer, HeldOutScores]:
    config = PretrainConfig(objective="masked", mixing=mixing, dim=32, epochs=20, device="cpu")
    with reproducible(0):
        trainer, _ = train(texts, config, NOBODY, Stop())
        found = HeldOutScores.of(trainer, Corpus.of(texts.held_out, 100))
    assert found is not None
    return trainer, found


def test_a_mixing_layer_learns_order_which_a_bag_of_words_cannot() -> None:
    texts = texts_in_order()
    _, bag = scores(texts, "none")
    trainer, mixed = scores(texts, "gmlp")
    assert bag.perplexity < 0.9 * bag.frequency_perplexity
    assert mixed.perplexity < 0.6 * bag.perplexity
    assert mixed.accuracy > bag.accuracy
    assert trainer.model.gate is not None
    for guess in mixed.guesses:
        assert len(guess.best) == 5
        probabilities = [probability for _, probability in guess.best]
        assert probabilities == sorted(probabilities, reverse=True)
        assert guess.tokens[guess.place] != "..."
    assert scores(texts, "gmlp")[1] == mixed, "the same seed gives the same numbers"


def test_words_that_stand_there_once_get_no_vector() -> None:
    corpus = Corpus.of(["b a b", "a c b"], 10)
    vocabulary = Vocabulary.of(corpus, 10)
    assert vocabulary.words == ["b", "a"]
    assert vocabulary.number_of_type.tolist() == [1, 2, 0]
    assert vocabulary.numbers(Corpus.of(["a x b"], 10)).tolist() == [2, 0, 1]
    assert Vocabulary.of(Corpus.of(["b a b a"], 10), 2).words == ["b", "a"]
    with pytest.raises(InputError, match="Fewer than two words occur twice in the texts"):
        Vocabulary.of(Corpus.of(["a b c"], 10), 10)


def test_a_stop_keeps_what_the_epochs_before_have_learned() -> None:
    stop, texts = Stop(), texts_in_order(times=5)

    class Stopping(Callback):
        def epoch(self, number: int, score: object) -> None:
            assert stop.possible
            stop.requested = number == 2

    trainer, _ = train(texts, PretrainConfig(objective="masked", dim=8, epochs=9, device="cpu"), Stopping(), stop)
    assert trainer.epochs == 2


def fresh_trainer(texts: list[str]) -> MaskedTrainer:
    corpus = Corpus.of(texts, 10)
    config = PretrainConfig(objective="masked", dim=8, device="cpu")
    with reproducible(0):
        return MaskedTrainer(corpus, Vocabulary.of(corpus, 100), config, 1)


def test_losses_that_are_read_together_are_told_as_those_that_are_read_at_once() -> None:
    texts = ["a"] * 128 + [f"a b{i % 5} c d{i % 7}" for i in range(128)]  # of one word nothing is to be guessed
    told = []
    for at_once in (1, 3, 1000):
        trainer, callback = fresh_trainer(texts), Recorder()
        trainer.losses_at_once = at_once
        trainer.train_epoch(1, callback, Stop())
        told.append(callback.steps)
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == 4
    assert 0 < [loss for _, loss in told[0]].count(None) < 4
    assert sum(tokens for tokens, _ in told[0]) == trainer.tokens


def test_a_loss_that_is_not_finite_ends_the_pre_training_and_names_the_step() -> None:
    trainer, callback = fresh_trainer([f"a b{i % 5} c d{i % 7}" for i in range(128)]), Recorder()
    trainer.losses_at_once = 2
    trainer.words.row_VD[1:] = np.nan
    with pytest.raises(ConfigError, match=r"^Training diverged at step 1: the loss is not finite\.$"):
        trainer.train_epoch(1, callback, Stop())
    assert callback.steps == []


def test_options_of_another_objective_are_refused() -> None:
    with pytest.raises(ConfigError, match="mixing is an option of the objective masked, not of cooccurrence"):
        PretrainConfig(objective="cooccurrence", mixing="gmlp")
