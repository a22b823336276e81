"""The training loop of masked words: which tokens are masked is drawn anew in each epoch.

Two tables learn, each by row-wise Adagrad: what words say as context, by their hashes, and what is expected of a
context. The mixing layer between them learns by AdamW.

What is drawn is drawn for a whole batch. The gradients of its shards (`PretrainConfig.step_shards`) are computed apart,
by this process or by several that share them (`textcls_training.fit.processes`).

Shapes: B texts, N their tokens, end to end, M masked tokens of a batch, K of these known, S samples, D width.
"""

import math
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
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
from textcls_training.fit.processes import here
from textcls_training.fit.schedule import rate_factor
from textcls_training.fit.shards import shards_of
from textcls_training.fit.shared_gradients import (
    Layout,
    SharedGradient,
    arrays_of,
    checksums,
    gradient_of_shards,
    padded,
    taken,
)
from textcls_training.models.embedding_table import EmbeddingTable, HashedBatch
from textcls_training.models.hashed_embedding import HashedEmbedding
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


class Question(NamedTuple):
    """Some texts, and what is to be guessed in them.

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
        """The words that are to be guessed."""
        return self.target_M[self.target_M > 0]


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
        self.processes = here()

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
        if self.processes.number > 1:
            self.processes.agree("weights after an epoch", checksums(self._learned()))
        self.epochs = number

    def _learned(self) -> list[NDArray[Any]]:
        return [self.embedding.table.row_VD, self.words.row_VD, *arrays_of(self.dense.params)]

    def read(self, encoded: EncodedFeatures, text_B: Int64, masked_N: Bools) -> MaskedBatch:
        """Read the vectors of all tokens of texts, of which `masked_N` are masked."""
        corpus = encoded.corpus
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
        masked_N = masked_tokens(self.corpus.lengths()[text_B], self.config.mask_rate, rng)
        questions = self._in_shards(text_B, masked_N)
        known_K = np.concatenate([asked.known_K for asked in questions])
        if not len(known_K):
            return None
        sample_S = self._sampler.draw(SAMPLES, rng)
        weights, dim = self.dense.params, self.config.dim
        layout = Layout([(), *(weight.shape for weight in weights), (SAMPLES, dim)], [dim, dim])
        rows_K = [(len(asked.masked_N), len(asked.known_K)) for asked in questions]
        found = gradient_of_shards(layout, rows_K, lambda k: self._gradient(questions[k], sample_S), self.processes)
        loss, *gradients, sample_SD = found.total
        token_ND, target_KD = found.own
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient.to(self.device)
        read = self.embedding.batch(self._encoded, text_B)
        self.embedding.update(read, padded(token_ND, read.mask_BT), TABLE_RATE * factor)
        words = _each_once(np.concatenate([known_K, sample_S]))
        self.words.update(words, torch.cat([target_KD, sample_SD])[None], TABLE_RATE * factor)
        self.dense.step(factor)
        mean = float(loss) / len(known_K)
        if not math.isfinite(mean):
            raise ConfigError(f"Training diverged at step {self._step_number}: the loss is not finite.")
        return mean

    def _in_shards(self, text_B: Int64, masked_N: Bools) -> list[Question]:
        """Deal the texts of a batch to shards; none is without a text."""
        shards = [shard_B for shard_B in shards_of(text_B, self.config.step_shards) if len(shard_B)]
        ends = np.cumsum([self.corpus.lengths()[shard_B].sum() for shard_B in shards])
        return [self._question(*each) for each in zip(shards, np.split(masked_N, ends[:-1]), strict=True)]

    def _question(self, text_B: Int64, masked_N: Bools) -> Question:
        token_N = self.corpus.token[self.corpus.places(text_B)]
        return Question(text_B, masked_N, self.vocabulary.number_of_type[token_N[masked_N]])

    def _gradient(self, asked: Question, sample_S: Int32) -> SharedGradient:
        """Return the gradient of some texts: the loss and that of the dense weights and the samples; that of the
        tokens and of the words that are to be guessed.
        """
        given = self.read(self._encoded, asked.text_B, asked.masked_N)
        given.x_BTD.requires_grad_()
        h_KD = self.contexts(given)[torch.from_numpy(asked.target_M > 0).to(self.device)]
        word_1XD, _ = self.words.read(_each_once(np.concatenate([asked.known_K, sample_S])))
        word_1XD.requires_grad_()
        word_XD = word_1XD[0].to(self.device)
        same_KS = torch.from_numpy(asked.known_K[:, None] == sample_S).to(self.device)
        loss = sampled_cross_entropy(h_KD, word_XD[:-SAMPLES], word_XD[-SAMPLES:], same_KS)
        loss.backward()  # type: ignore[no-untyped-call]
        assert given.x_BTD.grad is not None
        assert word_1XD.grad is not None
        target_KD, sample_SD = word_1XD.grad[0, :-SAMPLES], word_1XD.grad[0, -SAMPLES:]
        total = [loss, *taken(self.dense.params), sample_SD]
        return SharedGradient(total, [given.x_BTD.grad[given.read.mask_BT], target_KD])


def _each_once(row_X: Int32) -> HashedBatch:
    """Return rows of a table as one text, each row a token of it."""
    return HashedBatch(row_X, np.arange(len(row_X), dtype=np.int32), torch.ones(1, len(row_X), dtype=torch.bool))
