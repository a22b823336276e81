"""A trained classifier of any kind as a PyTorch module."""

import copy

from textcls_torch.models.classifier import ViewClassifier
from textcls_training.models.ensemble import Classifier
from textcls_training.models.linear_classifier import LinearClassifier


def module_of(classifier: Classifier) -> ViewClassifier:
    """Return a copy of a trained classifier as a module.

    Raises:
        TypeError: it is neither linear nor a module.
    """
    if isinstance(classifier, LinearClassifier):
        return ViewClassifier.of(classifier)
    if isinstance(classifier, ViewClassifier):
        return copy.deepcopy(classifier)
    raise TypeError(f"{type(classifier).__name__} is not a classifier that PyTorch knows")
