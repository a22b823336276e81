"""The softmax over all words, estimated with a sample of them.

A word's probability is its frequency p_w, shifted by its context h:

    P(w | h) = p_w exp(h . o_w) / sum_v p_v exp(h . o_v)

So vectors say how a context changes what is to be expected, and nothing about how frequent words are. In training the
right word stands among a sample of S others alone, drawn by a distribution q, and each is corrected by how often it is
to be drawn: its logit is h . o_w + log p_w - log(S q_w) (sampled softmax, Jean et al. 2015, arXiv 1412.2007, section
3). If drawn by frequency, q = p, the correction is the same for all words, and only h . o_w is left.

Shapes: M masked tokens, S samples, D width, V words.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from textcls_training.data.arrays import Int32, Int64


class WordSampler:
    """A sampler of words, numbered from 1, by their frequency."""

    def __init__(self, count_V: Int64) -> None:
        self._upto_V = np.cumsum(count_V)

    def draw(self, samples: int, rng: np.random.Generator) -> Int32:
        """Return the numbers of `samples` words [S], drawn independently."""
        place_S = rng.integers(self._upto_V[-1], size=samples)
        return (np.searchsorted(self._upto_V, place_S, "right") + 1).astype(np.int32)


def sampled_cross_entropy(h_MD: Tensor, target_MD: Tensor, sample_SD: Tensor, same_MS: Tensor) -> Tensor:
    """Return the cross-entropy of the right word among itself and the samples, in nats, summed over masked tokens.

    Args:
        h_MD: contexts.
        target_MD: vectors of the right words.
        sample_SD: vectors of words drawn by frequency.
        same_MS: whether a sample is the right word itself, which does not count twice.
    """
    right_M1 = (h_MD * target_MD).sum(1, keepdim=True)
    others_MS = (h_MD @ sample_SD.T).masked_fill(same_MS, -torch.inf)
    logits_MX = torch.cat([right_M1, others_MS], 1)
    return F.cross_entropy(logits_MX, torch.zeros(len(h_MD), dtype=torch.long, device=h_MD.device), reduction="sum")


def word_log_probabilities(h_MD: Tensor, word_VD: Tensor, log_frequency_V: Tensor) -> Tensor:
    """Return the log-probability of every word in every context [M, V]: the softmax itself."""
    return F.log_softmax(h_MD @ word_VD.T + log_frequency_V, dim=1)
