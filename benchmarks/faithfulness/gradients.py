"""PyTorch over a saved file, for the methods that need gradients.

The text graph (text to token sums) runs in ONNX Runtime, asked for one tensor more; the scoring head is
`textcls_training.export.heads.folded_head.FoldedHead` once more, of what the file says of itself. Captum then
attributes to the token sums: all columns of a token (values, scores, squared norms) of all groups are one token's
input.

Shapes: T tokens, G groups, X columns, C labels, N inputs of a batch.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper
from torch import Tensor

from textcls.errors import ArtifactError, ConfigError
from textcls.model import artifact, tokenizer
from textcls.model.artifact import ModelInfo
from textcls.model.classifier import Classifier
from textcls_torch.models.classifier import ViewClassifier
from textcls_training.config.settings import ModelConfig
from textcls_training.data.arrays import Float64
from textcls_training.export.heads.folded_head import FoldedHead
from textcls_training.export.heads.outputs import INPUTS
from textcls_training.models.calibration import Calibration

STEPS: Final = 50
TOLERANCE: Final = 1e-4
NEEDS_FOLDED: Final = (
    "it needs a model whose scores and values are linear in its token vectors, "
    "and this one has a mixing layer, cosine attention or many seeds"
)
Target = Literal["probability", "log-odds"]
_CHECKED: Final = ("one", "My card was charged twice, and nobody answers!")


def foldable(info: ModelInfo) -> bool:
    """Whether a model's scoring head is a `FoldedHead`, the only one that is rebuilt here."""
    # Beside vectors and machines all views are folded, see `TrainedModel.foldable`.
    return _classifier(info).foldable or "vectors" in info.training or "seeds" in info.training


def _classifier(info: ModelInfo, seeds: int | None = None) -> ViewClassifier:
    """Return the classifier of a view, which has as many seeds as the model says of all views, or others."""
    try:
        model = ModelConfig(**info.model)
        return ViewClassifier(model if seeds is None else replace(model, seeds=seeds), len(info.labels))
    except TypeError as error:
        raise ConfigError(f"The model is made of something that this version does not know ({error}).") from error


class SavedHead:
    """A saved model that gradients can be taken of.

    Args:
        classifier: the loaded model.

    Attributes:
        calls: how many inputs the head has been asked about.

    Raises:
        ConfigError: the model is not foldable.
        ArtifactError: what was rebuilt does not answer as the file does.
    """

    def __init__(self, classifier: Classifier) -> None:
        info = classifier.info
        if not foldable(info):
            raise ConfigError(f"Gradients of {classifier.path} cannot be had: {NEEDS_FOLDED}.")
        weights = [float(weight) for weight in info.training["shares"]]
        views = [_classifier(info, seeds) for seeds in info.training.get("seeds", [None] * len(weights))]
        for view in views:
            view.head.bias.data = torch.tensor(info.bias)
        self.temperature = info.temperature
        self.head = FoldedHead(views, weights, Calibration(tuple(weights), info.temperature))
        self.session = _open_with_token_sums(classifier)
        self.calls = 0
        self._check(classifier)

    @torch.no_grad()
    def _check(self, classifier: Classifier) -> None:
        for text in _CHECKED:
            found = torch.softmax(self.logits(self.token_sums(text)) / self.temperature, -1)[0].numpy()
            error = float(np.abs(found - classifier.predict(text).probabilities).max())
            if not error < TOLERANCE:
                raise ArtifactError(
                    f"{classifier.path} answers other than its scoring head in PyTorch, by {error:.1e}; "
                    "gradients would be those of another model. Train it again with this version."
                )

    def token_sums(self, text: str) -> Tensor:
        """Return the token sums [1, T, G, X] of a text that has a token."""
        given = {artifact.INPUT: np.array([tokenizer.clean(text)], object)}
        padding_BT, token_BTGX = self.session.run(list(INPUTS), given)
        self.calls += 1
        return torch.from_numpy(token_BTGX[:, ~padding_BT[0]])

    def logits(self, token_NTGX: Tensor) -> Tensor:
        """Return the logits [N, C]."""
        self.calls += len(token_NTGX)
        logits_NC: Tensor = self.head(torch.zeros(token_NTGX.shape[:2], dtype=torch.bool), token_NTGX, torch)[1]
        return logits_NC

    def scalar(self, label: int, target: Target) -> Callable[[Tensor], Tensor]:
        """Return the function [N, T, G, X] -> [N] whose gradient is taken."""

        def log_odds(token_NTGX: Tensor) -> Tensor:
            logits_NC = self.logits(token_NTGX) / self.temperature
            others_NC = torch.cat([logits_NC[:, :label], logits_NC[:, label + 1 :]], 1)
            return logits_NC[:, label] - torch.logsumexp(others_NC, 1)

        return log_odds if target == "log-odds" else lambda token_NTGX: torch.sigmoid(log_odds(token_NTGX))

    def gradient_x_input(self, text: str, label: int, target: Target) -> Float64:
        """Return gradient times input [tokens], by Captum."""
        from captum.attr import InputXGradient

        return self._attribute(InputXGradient, text, label, target)

    def integrated_gradients(self, text: str, label: int, target: Target, steps: int = STEPS) -> Float64:
        """Return Integrated Gradients (Sundararajan et al. 2017, eq. 1) [tokens], from all-zero token sums, by Captum.

        Zero token sums are a text of unknown tokens without any weight: the head gives its bias there. On the way
        the logits of `norm` attention grow with the root of the way, for values and energies shrink alike, so the
        gradient is infinite at the start alone, which Captum's rule (Gauss-Legendre) never asks about: with 50 steps
        the attributions miss less than a hundredth of the change that they have to add up to.
        """
        from captum.attr import IntegratedGradients

        return self._attribute(IntegratedGradients, text, label, target, n_steps=steps)

    def _attribute(self, method: Any, text: str, label: int, target: Target, **settings: Any) -> Float64:
        token_1TGX = self.token_sums(text).requires_grad_()
        attribution_1TGX: Tensor = method(self.scalar(label, target)).attribute(token_1TGX, **settings)
        return attribution_1TGX.detach().sum((0, 2, 3)).numpy().astype(np.float64)


def _open_with_token_sums(classifier: Classifier) -> onnxruntime.InferenceSession:
    """Open the file once more, with the inputs of its scoring head among the outputs."""
    model = onnx.load(str(classifier.path))
    inner = {name for node in model.graph.node for name in node.output}
    if not set(INPUTS) <= inner:
        raise ArtifactError(f"{classifier.path} has no tensor {min(set(INPUTS) - inner)!r}; train it again.")
    model.graph.output.extend(
        helper.make_tensor_value_info(name, kind, None)
        for name, kind in zip(INPUTS, (TensorProto.BOOL, TensorProto.FLOAT), strict=True)
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
