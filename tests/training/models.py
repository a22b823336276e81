"""A trained model without training, for tests of what becomes of one."""

from collections.abc import Sequence

import torch

from textcls.features import FeatureConfig
from textcls_training.encoding import Corpus, FeatureSpace
from textcls_training.model import ModelConfig, TextClassifier
from textcls_training.views import Fitted, View

LABELS = 3
SHARES = ((1.0,), (0.3, 0.7))


def random_model(config: ModelConfig, features: Sequence[FeatureConfig], corpus: Corpus) -> Fitted:
    """A model with random weights, none at a start where it does nothing: a view for each of `features`."""
    torch.manual_seed(0)
    views = []
    for of_view in features:
        space = FeatureSpace.fit(corpus, of_view)
        table_VD = torch.randn(len(space.weight), config.dim)
        table_VD[0] = 0
        classifier = TextClassifier(config, LABELS).eval()
        with torch.no_grad():
            for parameter in classifier.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        views.append(View(space, table_VD, classifier))
    return Fitted(corpus.types, views, SHARES[len(views) - 1])
