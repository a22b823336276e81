"""Which core a trained model is saved with. Shapes as in `textcls_training.core`."""

from textcls_training.core.answers import shared_bias
from textcls_training.core.folded import FoldedCore
from textcls_training.core.vectors import VectorCore
from textcls_training.views import Fitted

Core = FoldedCore | VectorCore


def serving_core(fitted: Fitted, temperature: float) -> Core:
    """Return the core of the saved model in PyTorch."""
    classifiers = [view.classifier for view in fitted.views]
    kind = FoldedCore if classifiers[0].foldable else VectorCore
    return kind(classifiers, fitted.shares, temperature).eval()


def empty_text_logits(fitted: Fitted) -> tuple[float, ...]:
    """What the model says of a text without tokens: the biases."""
    return tuple(shared_bias([view.classifier for view in fitted.views], fitted.shares).tolist())
