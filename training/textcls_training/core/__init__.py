"""The numeric core of a saved model: from what tokens say to probabilities, logits, attention and contributions.

Where a view is `foldable`, its head and its seeds have gone into the tables, and a dozen ONNX nodes are left: `folded`
writes them down beside the PyTorch module that they must agree with. Every other core, `vectors`, is exported by
PyTorch from the very module that was trained, so that no mixer is written twice; that takes seconds. `serving` says
which of the two a trained model has.

Shapes: B texts, T tokens, V views, C labels, S seeds, D width; G and X as in `textcls_training.lexicon`.
"""

from textcls_training.core.answers import INPUTS, OUTPUTS, Answers
from textcls_training.core.folded import FoldedCore
from textcls_training.core.serving import Core, empty_text_logits, serving_core
from textcls_training.core.vectors import VectorCore, folded_copy

__all__ = [
    "INPUTS",
    "OUTPUTS",
    "Answers",
    "Core",
    "FoldedCore",
    "VectorCore",
    "empty_text_logits",
    "folded_copy",
    "serving_core",
]
