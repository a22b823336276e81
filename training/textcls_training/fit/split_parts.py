"""The vectors of the rows of a split, in parts: what the attention of each view sums up, and the spelling of each text.

Shapes: R rows, D entries of a part.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Split
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.fit.any_trainer import AnyTrainer
from textcls_training.models.bit_codes import codes

if TYPE_CHECKING:  # PyTorch is there only where prototypes are asked for.
    from textcls_torch.fit.trainer import Trainer

# Rows from which support rows are made for a split; the more labels, the more.
MOST_ROWS = 20_000


@dataclass(slots=True)
class SplitParts:
    """The parts of the vectors of a split, the spelling last.

    Attributes:
        train: of the rows that were learned from and are sure of their label, `MOST_ROWS` of them at most.
        labels: of these.
        valid: of the validation rows.
    """

    train: list[Float32]
    labels: Int64
    valid: list[Float32]

    @classmethod
    def of(cls, trainer: AnyTrainer, split: Split, valid: list[Any]) -> "SplitParts":
        """Read the rows of a split.

        Args:
            trainer: the fit on its training rows.
            split: the rows.
            valid: what `trainer.encode` has made of the validation rows.

        Raises:
            TypeError: the trainer is not the reference.
        """
        from textcls_torch.fit.trainer import Trainer

        if not isinstance(trainer, Trainer):
            raise TypeError("prototypes are for the reference")
        sure = np.arange(len(split.train.labels))
        if split.train.probability_RC is not None:
            sure = np.flatnonzero(split.train.probability_RC.max(1) == 1)
        some = sure[np.unique(np.linspace(0, len(sure) - 1, MOST_ROWS).astype(np.int64))]
        corpus = split.train.corpus.select(some)
        train = [*trainer.pooled(trainer.encode(corpus)), _spelling(trainer, corpus)]
        return cls(train, split.train.labels[some], [*trainer.pooled(valid), _spelling(trainer, split.valid.corpus)])

    def drop(self, view: int) -> None:
        """Leave out a view, which validation rows do not want."""
        del self.train[view], self.valid[view]


def _spelling(trainer: "Trainer", corpus: Corpus) -> Float32:
    """Return the sum of the codes of the words of each text [R, D] by weight, of an unseen one 1, which is the most.

    As under `norm` attention it is divided by the root of the sum of the squared weights.
    """
    from textcls_torch.models.hashed_embedding import HashedEmbedding

    embedding = trainer.learners[0].embedding
    if not isinstance(embedding, HashedEmbedding):
        raise TypeError("the first view has rows")
    weight_V = _word_weights(embedding.space, corpus)
    code_VD = codes(corpus.types) * weight_V[:, None]
    spelling_RD = np.zeros((len(corpus), code_VD.shape[1]), np.float32)
    for i in range(len(corpus)):
        token = corpus.token[corpus.start[i] : corpus.start[i + 1]]
        if len(token):
            spelling_RD[i] = code_VD[token].sum(0) / np.linalg.norm(weight_V[token])
    return spelling_RD


def _word_weights(space: FeatureSpace, corpus: Corpus) -> Float32:
    weight_V = space.weight[space.word_rows(corpus.types)[:, 0]]
    return np.where(weight_V == 0, np.float32(1), weight_V)
