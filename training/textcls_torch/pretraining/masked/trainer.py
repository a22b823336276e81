"""The training loop of masked words: which tokens are masked is drawn anew in each epoch.

Two tables learn, each by row-wise Adagrad: the vectors of words as context, by their hashes, and those of words to
predict. The mixing layer between them learns by AdamW.

Random draws are made for a whole batch, here and not on the device: so it is known without waiting which tokens are
masked, and how many.

Shapes: B texts, T tokens of the longest one, N tokens of all, concatenated, M masked tokens of a batch, K of these
known, S samples, X = K + S words that are read, D width.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from textcls.errors import ConfigError
from textcls.model.features import FeatureConfig
from textcls_torch.fit.device import resolve_device, runs_kernels
from textcls_torch.fit.optim import AdamWGroup
from textcls_torch.fit.pending_losses import STEPS_ON_A_GPU, PendingLosses
from textcls_torch.models.device_table import DeviceTable
from textcls_torch.models.embedding_table import EmbeddingTable
from textcls_torch.models.hashed_embedding import HashedEmbedding, RowTable
from textcls_torch.models.sending import sent
from textcls_torch.pretraining.masked.model import MaskedModel
from textcls_torch.pretraining.masked.softmax import WordSampler, sampled_cross_entropy
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.config.settings import OptimConfig
from textcls_training.data.arrays import Bools, Int32, Int64
from textcls_training.data.batches import epoch_batches
from textcls_training.data.corpus import Corpus
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.schedule import rate_factor
from textcls_training.pretraining.masked.masking import masked_tokens
from textcls_training.pretraining.vocabulary import Vocabulary

BATCH: Final = 64
SAMPLES: Final = 512
TABLE_RATE: Final = 0.05
MIXING_RATE: Final = 2e-3
ROW_STD: Final = 0.05


class MaskedBatch(NamedTuple):
    """Texts with masked tokens, as read by the tables.

    Attributes:
        read: the rows of all tokens, as a batch of their table.
        x_BTD: token vectors.
        squared_norm_BT1: squared feature norms.
        place_M: the places of masked tokens, counted through the padded batch: b * T + t.
        token_M: the types of these, text by text.
    """

    read: Any
    x_BTD: Tensor
    squared_norm_BT1: Tensor
    place_M: Int64
    token_M: Int32

    def places(self) -> Int64:
        """Return, for each masked token, its text and its index in it [M, 2]."""
        return np.stack(np.divmod(self.place_M, self.x_BTD.shape[1]), 1)


class Question(NamedTuple):
    """Some texts, and the words to be guessed in them.

    Attributes:
        text_B: their numbers.
        masked_N: which of their tokens are masked.
        target_M: the number of the word that each masked token was; 0 for one that has no vector.
    """

    text_B: Int64
    masked_N: Bools
    target_M: Int32

    @property
    def known_K(self) -> Int32:  # noqa: N802
        """Return the words that are to be guessed."""
        return self.target_M[self.target_M > 0]


class QuestionLoss(NamedTuple):
    """What was read for a question, with gradients, and its loss.

    Attributes:
        given: the texts.
        words: the rows of the words to be guessed, then those of the samples, as a batch of their table.
        word_1XD: their vectors.
        loss: the loss summed over the words to be guessed.
    """

    given: MaskedBatch
    words: Any
    word_1XD: Tensor
    loss: Tensor

    def gradients(self) -> tuple[Tensor, Tensor]:
        """Return the gradients of the token vectors [B, T, D] and of the vectors of words [1, X, D]."""
        assert self.given.x_BTD.grad is not None
        assert self.word_1XD.grad is not None
        return self.given.x_BTD.grad, self.word_1XD.grad


class MaskedTrainer:
    """A new model, and the steps that train it.

    Attributes:
        embedding: the vectors of words as context.
        model: computes contexts from these.
        words: what is expected in a context: the vector of each word of the vocabulary, by its number.
        epochs: the number of whole epochs so far.
        tokens: the number of tokens read, in all epochs.
        losses_at_once: the number of steps whose losses are read together.
    """

    def __init__(self, corpus: Corpus, vocabulary: Vocabulary, config: PretrainConfig, epochs: int) -> None:
        torch.manual_seed(config.seed)
        self.corpus, self.vocabulary, self.config = corpus, vocabulary, config
        accumulator = OptimConfig().table_accumulator
        space = FeatureSpace.fit(corpus, FeatureConfig(bigrams=False))
        self.device = resolve_device(config.device)
        self.losses_at_once = STEPS_ON_A_GPU if self.device.type == "cuda" else 1
        table_device = self.device if runs_kernels(config.device) else None
        self.embedding = HashedEmbedding(space, config.dim, ROW_STD, accumulator, table_device)
        weight = np.append(0, np.ones(len(vocabulary))).astype(np.float32)
        words = EmbeddingTable(weight, config.dim, 0.0, accumulator)
        self.words: RowTable = words if table_device is None else DeviceTable(words, table_device)
        self.model = MaskedModel(config.dim, config.mixing).to(self.device)
        self.dense = AdamWGroup(self.model.parameters(), MIXING_RATE)
        self._encoded, self._sampler = self.embedding.encode(corpus), WordSampler(vocabulary.count_V)
        self._steps = epochs * -(-len(corpus) // BATCH)
        self._step_number = self.epochs = self.tokens = 0

    def train_epoch(self, number: int, callback: Callback, stop: Stop) -> None:
        """Pass once over the texts, or until a stop is requested.

        Raises:
            ConfigError: the loss is not finite.
        """
        rng = np.random.default_rng([self.config.seed, number])
        lengths = self.corpus.lengths()
        losses = PendingLosses(callback, self.losses_at_once, _diverged)
        for text_B in epoch_batches(lengths, BATCH, rng):
            if stop.requested:
                losses.read()
                return
            loss, words = self._step(text_B, rng)
            tokens = int(lengths[text_B].sum())
            self.tokens += tokens
            losses.add(self._step_number, tokens, loss, words)
        losses.read()
        self.epochs = number

    def read(self, encoded: Any, text_B: Int64, masked_N: Bools) -> MaskedBatch:
        """Read the vectors of all tokens of texts encoded by the embedding; `masked_N` are masked."""
        corpus: Corpus = encoded.corpus
        batch = self.embedding.batch(encoded, text_B)
        longest = batch.mask_BT.shape[1]
        place_N = np.flatnonzero(np.arange(longest) < corpus.lengths()[text_B, None])
        token_M = corpus.token[corpus.places(text_B)][masked_N]
        return MaskedBatch(batch, *self.embedding.read(batch), place_N[masked_N], token_M)

    def contexts(self, given: MaskedBatch) -> Tensor:
        """Return the context of each masked token [M, D]."""
        read = (tensor.to(self.device) for tensor in (given.x_BTD, given.squared_norm_BT1, given.read.mask_BT))
        h_MD: Tensor = self.model(*read, sent(given.place_M, self.device))
        return h_MD

    def _step(self, text_B: Int64, rng: np.random.Generator) -> tuple[Tensor | None, int]:
        """Learn from a batch; return its loss (None if no word is to be guessed), and its number of words."""
        factor = rate_factor(self._step_number, self._steps, OptimConfig().warmup)
        self._step_number += 1
        masked_N = masked_tokens(self.corpus.lengths()[text_B], self.config.mask_rate, rng)
        asked = self._question(text_B, masked_N)
        known = len(asked.known_K)
        if not known:
            return None, 0
        loss = self._move(asked, self._sampler.draw(SAMPLES, rng), TABLE_RATE * factor)
        self.dense.step(factor)
        return loss, known

    def _question(self, text_B: Int64, masked_N: Bools) -> Question:
        token_N = self.corpus.token[self.corpus.places(text_B)]
        return Question(text_B, masked_N, self.vocabulary.number_of_type[token_N[masked_N]])

    def _move(self, asked: Question, sample_S: Int32, rate: float) -> Tensor:
        """Update the tables, and give the dense weights the gradient of a batch; return its loss."""
        answer = self._answer(asked, sample_S)
        grad_BTD, grad_1XD = answer.gradients()
        self.embedding.update(answer.given.read, grad_BTD, rate)
        self.words.update(answer.words, grad_1XD, rate)
        return answer.loss.detach()

    def _answer(self, asked: Question, sample_S: Int32) -> QuestionLoss:
        """Read texts and words, guess, and propagate the gradient back to what was read."""
        given = self.read(self._encoded, asked.text_B, asked.masked_N)
        given.x_BTD.requires_grad_()
        number_X = np.concatenate([asked.known_K, sample_S])
        words: Any = self.words.rows(number_X)
        word_1XD, _ = self.words.read(words)
        word_1XD.requires_grad_()
        h_KD = self.contexts(given)[sent(np.flatnonzero(asked.target_M), self.device)]
        loss = _loss(h_KD, word_1XD[0].to(self.device), sent(number_X, self.device))
        loss.backward()  # type: ignore[no-untyped-call]
        return QuestionLoss(given, words, word_1XD, loss)


def _loss(h_KD: Tensor, word_XD: Tensor, number_X: Tensor) -> Tensor:
    """Return the loss of contexts; the samples are the last of the words."""
    same_KS = number_X[:-SAMPLES, None] == number_X[-SAMPLES:]
    return sampled_cross_entropy(h_KD, word_XD[:-SAMPLES], word_XD[-SAMPLES:], same_KS)


def _diverged(what: str) -> ConfigError:
    return ConfigError(f"Training diverged{what}.")
