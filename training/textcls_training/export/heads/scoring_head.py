"""Which scoring head a trained model is saved with. Shapes as in `textcls_training.export.heads`."""

from textcls_training.export.heads.folded_head import FoldedHead
from textcls_training.export.heads.outputs import ensemble_bias
from textcls_training.export.heads.prototype_head import PrototypeHead
from textcls_training.export.heads.vector_head import VectorHead
from textcls_training.models.calibration import AnyCalibration
from textcls_training.models.ensemble import TrainedModel

ScoringHead = FoldedHead | VectorHead | PrototypeHead


def scoring_head(model: TrainedModel, calibration: AnyCalibration) -> FoldedHead | VectorHead:
    """Return the scoring head of the saved model in PyTorch, where labels are linear."""
    kind = FoldedHead if model.foldable else VectorHead
    return kind(model.classifiers, model.ensemble_weights, calibration).eval()


def empty_text_logits(model: TrainedModel) -> tuple[float, ...]:
    """Return the logits of a text without tokens: the biases."""
    return tuple(ensemble_bias(model.classifiers, model.ensemble_weights).tolist())
