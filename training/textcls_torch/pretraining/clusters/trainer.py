"""Learning by the objective: a `Trainer` whose batches are read as two views of each text.

Shapes: B texts, T tokens of the longest one, V views of the model, C clusters, R texts of a prediction.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch import Tensor

from textcls_torch.fit.trainer import PREDICTION_BATCH, Trainer
from textcls_torch.fit.view_learner import ViewBatch
from textcls_torch.models.sending import sent
from textcls_torch.pretraining.clusters.objective import Marginal, cross_entropy, information_loss
from textcls_training.config.resolve import ResolvedConfig
from textcls_training.data.arrays import Int64
from textcls_training.data.batches import plain_batches
from textcls_training.data.dataset import Dataset
from textcls_training.fit.interrupt import Stop

# The number of texts that the running mean is over.
MARGINAL_TEXTS: Final = 2000


class ClusterTrainer(Trainer):
    """A trainer of clusters: for a while the initial ones, from either view; then by the objective alone.

    Args:
        dataset: the texts, whose labels are the numbers of their initial clusters.
        clusters: the number of clusters.
        config: the configuration, as for any training.
        first_epochs: how many of its epochs learn the first clusters.
        stop: checked at every step for whether to go on.
    """

    of_targets: ClassVar[bool] = False

    def __init__(
        self, dataset: Dataset, clusters: int, config: ResolvedConfig, first_epochs: int, stop: Stop | None = None
    ) -> None:
        super().__init__(dataset, clusters, config, stop)
        self._first_steps = self.steps * first_epochs // config.epochs
        self._heaps = np.random.default_rng([config.seed, config.epochs])
        share_C = torch.from_numpy(dataset.label_mass(clusters) / len(dataset.labels)).float().to(self.device)
        self._marginal = Marginal(share_C, max(0.0, 1 - config.optim.batch_size / MARGINAL_TEXTS))

    def _loss(self, text_B: Int64, views: Sequence[ViewBatch]) -> Tensor:
        a_VBC, b_VBC = self._both(views, self._heaps)
        if self.step_number < self._first_steps:
            target_BC = torch.eye(self.classes, device=self.device)[sent(self.dataset.labels[text_B], self.device)]
            return (cross_entropy(target_BC, a_VBC) + cross_entropy(target_BC, b_VBC)).sum() / 2
        return information_loss(a_VBC, b_VBC, self._marginal)

    def _both(self, views: Sequence[ViewBatch], rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Divide the tokens of each text between two heaps, and return the logits of both [V, B, C]."""
        mask_BT = views[0].mask_BT
        heap_BT = torch.from_numpy(rng.random(mask_BT.shape) < 0.5)
        pairs = list(zip(self.learners, views, strict=True))
        logits = [
            torch.stack([learner.logits(_without(given, kept_BT)) for learner, given in pairs])
            for kept_BT in (heap_BT, ~heap_BT)
        ]
        return logits[0], logits[1]

    @torch.no_grad()
    def both_views(self, encoded_V: Sequence[Any]) -> tuple[Tensor, Tensor]:
        """Return the logits [R, C] of all views of the model for each of two views of texts encoded by `encode`.

        The same texts are divided in the same way each time.
        """
        corpus = encoded_V[0].corpus
        rng = np.random.default_rng(self.config.seed)
        a_RC, b_RC = torch.zeros(2, len(corpus), self.classes).unbind(0)
        for learner in self.learners:
            learner.classifier.eval()
        for text_B in plain_batches(corpus.lengths(), PREDICTION_BATCH):
            views = [learner.read(encoded, text_B) for learner, encoded in zip(self.learners, encoded_V, strict=True)]
            a_VBC, b_VBC = self._both(views, rng)
            a_RC[text_B], b_RC[text_B] = a_VBC.mean(0).cpu(), b_VBC.mean(0).cpu()
        return a_RC, b_RC


def _without(given: ViewBatch, kept_BT: Tensor) -> ViewBatch:
    """Return texts with only some of their tokens."""
    return given._replace(mask_BT=given.mask_BT & kept_BT.to(given.mask_BT.device))
