"""What held-out texts say about a model of masked words: its perplexity, and sample guesses.

Shapes: B texts, M masked tokens, K of these known, V words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import torch
from torch import Tensor

from textcls_torch.pretraining.masked.softmax import word_log_probabilities
from textcls_torch.pretraining.masked.trainer import MaskedTrainer
from textcls_training.data.arrays import Int32, Int64
from textcls_training.data.batches import plain_batches
from textcls_training.data.corpus import Corpus
from textcls_training.pretraining.masked.masking import masked_tokens

# Fixed, so that the same tokens are masked in every measurement.
SEED: Final = 2021
BATCH: Final = 64
EXAMPLES, BEST = 6, 5
# A sample text is about a line or two long; not every one has a known masked word.
SHORTEST, LONGEST = 5, 40


@dataclass(frozen=True, slots=True)
class Guess:
    """A masked word, and what the model expects in its place.

    Attributes:
        tokens: the text; other masked words are `...` in it.
        place: the index of the masked word in it.
        best: the most probable words, with their probabilities.
    """

    tokens: Sequence[str]
    place: int
    best: Sequence[tuple[str, float]]

    def to_json(self) -> dict[str, Any]:
        """Return everything."""
        return {
            "tokens": [*self.tokens],
            "masked": self.place,
            "guesses": [[word, round(p, 4)] for word, p in self.best],
        }


@dataclass(frozen=True, slots=True)
class HeldOutScores:
    """How well masked words of held-out texts are guessed.

    Attributes:
        words: the number of masked words that are in the vocabulary, on which everything is measured.
        perplexity: e to the mean cross-entropy of a softmax over the whole vocabulary.
        frequency_perplexity: the perplexity with word frequencies alone.
        accuracy: how often the most probable word is the right one.
        guesses: a few sample guesses.
    """

    words: int
    perplexity: float
    frequency_perplexity: float
    accuracy: float
    guesses: Sequence[Guess]

    @classmethod
    def of(cls, trainer: MaskedTrainer, corpus: Corpus) -> Self | None:
        """Measure on `corpus`; return None if none of its masked words is known."""
        asked = _Asked(trainer, corpus)
        asked.run()
        if not asked.words:
            return None
        return cls(
            words=asked.words,
            perplexity=float(np.exp(asked.loss / asked.words)),
            frequency_perplexity=float(np.exp(asked.frequency_loss / asked.words)),
            accuracy=asked.right / asked.words,
            guesses=asked.guesses,
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything, rounded."""
        return {
            "words": self.words,
            "perplexity": round(self.perplexity, 2),
            "frequency_perplexity": round(self.frequency_perplexity, 2),
            "accuracy": round(self.accuracy, 4),
            "guesses": [guess.to_json() for guess in self.guesses],
        }


class _Asked:
    """The sums from which scores are computed, over batches that are asked one after the other."""

    def __init__(self, trainer: MaskedTrainer, corpus: Corpus) -> None:
        self.words, self.loss, self.frequency_loss, self.right = 0, 0.0, 0.0, 0
        self.guesses: list[Guess] = []
        self._trainer, self._corpus = trainer, corpus
        length = corpus.lengths()
        fitting = np.flatnonzero((length >= SHORTEST) & (length <= LONGEST))
        self._to_look_at = set(fitting[: 2 * EXAMPLES].tolist())
        self._number_of_type = trainer.vocabulary.numbers(corpus)
        self._encoded = trainer.embedding.encode(corpus)
        count_V = trainer.vocabulary.count_V
        frequency_V = np.log(count_V / count_V.sum()).astype(np.float32)
        self._frequency_V = torch.from_numpy(frequency_V).to(trainer.device)
        self._word_VD = torch.from_numpy(trainer.words.row_VD[1:]).to(trainer.device)

    @torch.no_grad()
    def run(self) -> None:
        """Process all texts."""
        rng = np.random.default_rng(SEED)
        self._trainer.model.eval()
        for text_B in plain_batches(self._corpus.lengths(), BATCH):
            masked_N = masked_tokens(self._corpus.lengths()[text_B], self._trainer.config.mask_rate, rng)
            given = self._trainer.read(self._encoded, text_B, masked_N)
            number_M = self._number_of_type[given.token_M]
            known = np.flatnonzero(number_M)
            h_KD = self._trainer.contexts(given)[torch.from_numpy(known).to(self._trainer.device)]
            log_probability_KV = word_log_probabilities(h_KD, self._word_VD, self._frequency_V)
            self._add(log_probability_KV, number_M[known])
            self._look(given.places(), known, text_B, log_probability_KV)
        self._trainer.model.train()

    def _add(self, log_probability_KV: Tensor, number_K: Int32) -> None:
        right_K = torch.from_numpy(number_K.astype(np.int64) - 1).to(log_probability_KV.device)
        self.words += len(number_K)
        self.loss -= float(log_probability_KV.gather(1, right_K.unsqueeze(1)).double().sum())
        self.frequency_loss -= float(self._frequency_V[right_K].double().sum())
        self.right += int((log_probability_KV.argmax(1) == right_K).sum())

    def _look(self, place_M2: Int64, known_K: Int64, text_B: Int64, log_probability_KV: Tensor) -> None:
        """Keep a guess for each sample text: that for its first masked word that is known."""
        for k, (b, place) in enumerate(place_M2[known_K].tolist()):
            text = int(text_B[b])
            if text not in self._to_look_at or len(self.guesses) == EXAMPLES:
                continue
            self._to_look_at.remove(text)
            types = self._corpus.token[self._corpus.places(text_B[b : b + 1])]
            hidden = {*place_M2[place_M2[:, 0] == b, 1].tolist()} - {place}
            tokens = ["..." if t in hidden else self._corpus.types[number] for t, number in enumerate(types)]
            best = log_probability_KV[k].topk(min(BEST, len(self._word_VD)))
            words = [self._trainer.vocabulary.words[i] for i in best.indices.tolist()]
            self.guesses.append(Guess(tokens, place, list(zip(words, best.values.exp().tolist(), strict=True))))
