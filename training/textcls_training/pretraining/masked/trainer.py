"""The training loop of masked words: which tokens are masked is drawn anew in each epoch.

Two tables learn, each by row-wise Adagrad: what words say as context, by their hashes, and what is expected of a
context. The mixing layer between them learns by AdamW.

Shapes: B texts, M masked tokens of a batch, S samples, D width.
"""

import math
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from textcls.errors import ConfigError
from textcls.features import FeatureConfig
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.config.settings import OptimConfig
from textcls_training.data.arrays import Bools, Int32, Int64
from textcls_training.data.batches import epoch_batches
from textcls_training.data.corpus import Corpus
from textcls_training.data.feature_space import EncodedFeatures, FeatureSpace
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.device import resolve_device
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.optim import AdamWGroup
from textcls_training.fit.schedule import rate_factor
from textcls_training.models.hashed_embedding import EmbeddingTable, HashedBatch, HashedEmbedding
from textcls_training.pretraining.masked.masking import masked_tokens
from textcls_training.pretraining.masked.model import MaskedModel
from textcls_training.pretraining.masked.softmax import WordSampler, sampled_cross_entropy
from textcls_training.pretraining.vocabulary import Vocabulary

BATCH: Final = 64
SAMPLES: Final = 512
TABLE_RATE: Final = 0.05
MIXING_RATE: Final = 2e-3
ROW_STD: Final = 0.05


class MaskedBatch(NamedTuple):
    """Texts with masked tokens, as the tables read them.

    Attributes:
        read: the rows of all tokens.
        x_BTD: token vectors.
        squared_norm_BT1: squared feature norms.
        masked_BT: True at masked tokens.
        token_M: the types of these, text by text.
    """

    read: HashedBatch
    x_BTD: Tensor
    squared_norm_BT1: Tensor
    masked_BT: Tensor
    token_M: Int32


class MaskedTrainer:
    """A fresh model, and the steps that train it.

    Attributes:
        embedding: what a word says as context.
        model: what contexts are made of it.
        words: what is expected of a context: the vector of each word of the vocabulary, by its number.
        epochs: how many whole epochs there were.
        tokens: how many tokens were read, in all epochs.
    """

    def __init__(self, corpus: Corpus, vocabulary: Vocabulary, config: PretrainConfig, epochs: int) -> None:
        torch.manual_seed(config.seed)
        self.corpus, self.vocabulary, self.config = corpus, vocabulary, config
        accumulator = OptimConfig().table_accumulator
        space = FeatureSpace.fit(corpus, FeatureConfig(bigrams=False))
        self.embedding = HashedEmbedding(space, config.dim, ROW_STD, accumulator)
        weight = np.append(0, np.ones(len(vocabulary))).astype(np.float32)
        self.words = EmbeddingTable(weight, config.dim, 0.0, accumulator)
        self.device = resolve_device(config.device)
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
        for text_B in epoch_batches(lengths, BATCH, rng):
            if stop.requested:
                return
            loss, tokens = self._step(text_B, rng), int(lengths[text_B].sum())
            self.tokens += tokens
            callback.step(tokens, loss)
        self.epochs = number

    def read(self, encoded: EncodedFeatures, text_B: Int64, rng: np.random.Generator) -> MaskedBatch:
        """Mask tokens of texts, and read the vectors of all."""
        corpus = encoded.corpus
        masked_N = masked_tokens(corpus.lengths()[text_B], self.config.mask_rate, rng)
        batch = self.embedding.batch(encoded, text_B)
        masked_BT: Bools = np.zeros(batch.mask_BT.shape, np.bool_)
        masked_BT[batch.mask_BT.numpy()] = masked_N
        token_M = corpus.token[corpus.places(text_B)][masked_N]
        return MaskedBatch(batch, *self.embedding.read(batch), torch.from_numpy(masked_BT), token_M)

    def contexts(self, given: MaskedBatch) -> Tensor:
        """Return what surrounds each masked token [M, D]."""
        read = given.x_BTD, given.squared_norm_BT1, given.read.mask_BT, given.masked_BT
        h_MD: Tensor = self.model(*(tensor.to(self.device) for tensor in read))
        return h_MD

    def _step(self, text_B: Int64, rng: np.random.Generator) -> float | None:
        """Learn from a batch; return the mean loss of a masked token, None where no word is to be guessed."""
        factor = rate_factor(self._step_number, self._steps, OptimConfig().warmup)
        self._step_number += 1
        given = self.read(self._encoded, text_B, rng)
        target_M = self.vocabulary.number_of_type[given.token_M]
        known_M = target_M > 0
        if not known_M.any():
            return None
        given.x_BTD.requires_grad_()
        h_MD = self.contexts(given)[torch.from_numpy(known_M).to(self.device)]
        target_M = target_M[known_M]
        sample_S = self._sampler.draw(SAMPLES, rng)
        words = _each_once(np.concatenate([target_M, sample_S]))
        word_1XD, _ = self.words.read(words)
        word_1XD.requires_grad_()
        word_XD = word_1XD[0].to(self.device)
        target_MD, sample_SD = word_XD[:-SAMPLES], word_XD[-SAMPLES:]
        same_MS = torch.from_numpy(target_M[:, None] == sample_S).to(self.device)
        loss = sampled_cross_entropy(h_MD, target_MD, sample_SD, same_MS)
        loss.backward()  # type: ignore[no-untyped-call]
        for table, read, x_BTD in ((self.embedding, given.read, given.x_BTD), (self.words, words, word_1XD)):
            assert x_BTD.grad is not None
            table.update(read, x_BTD.grad, TABLE_RATE * factor)
        self.dense.step(factor)
        mean = float(loss.detach()) / len(target_M)
        if not math.isfinite(mean):
            raise ConfigError(f"Training diverged at step {self._step_number}: the loss is not finite.")
        return mean


def _each_once(row_X: Int32) -> HashedBatch:
    """Return rows of a table as one text, each row a token of it."""
    return HashedBatch(row_X, np.arange(len(row_X), dtype=np.int32), torch.ones(1, len(row_X), dtype=torch.bool))
