"""What others see of a training, and how they end it: the score of an epoch, who watches, and who asks to stop."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from textcls_training import calibration
from textcls_training.arrays import Float32, Int64
from textcls_training.rows import Fold

if TYPE_CHECKING:
    from textcls_training.trainer import Trainer


class EpochScore(NamedTuple):
    """How an epoch did on the judging rows; of equal accuracies the lower loss is better."""

    accuracy: float
    negative_loss: float

    @classmethod
    def of(cls, logits: Float32, labels: Int64) -> "EpochScore":
        """Score the logits [rows, labels] of judging rows."""
        return cls(float((logits.argmax(1) == labels).mean()), -calibration.log_loss(logits, labels))


class Watcher(Protocol):
    """Who wants to know how training goes."""

    def phase(self, name: str, rows: int) -> None:
        """A new pass begins: `rows` rows over all its epochs."""

    def step(self, rows: int, loss: float) -> None:
        """A step was taken."""

    def epoch(self, number: int, score: EpochScore | None) -> None:
        """An epoch is over."""


@dataclass(slots=True)
class Stop:
    """How somebody ends a training early and keeps what has been learned.

    Attributes:
        asked: set by whoever wants it to end; every step looks here.
        kept: the training that will be kept, and its rows: that of the first judging rows, once it has judged an
            epoch. Before, nothing is worth keeping, and a training can only be broken off.
    """

    asked: bool = False
    kept: "tuple[Trainer, Fold] | None" = None
