"""Machines beside the view of pieces, where a text has one label: gradient steps and a machine a label read the same
features, and held-out rows fit how much each counts.

A low rank that learns what to attend to, and the largest margin of all distinct tokens alike, go wrong on different
texts (training/README.md). Machines are trained to their end before the first epoch. In a saved model they are a second
seed of the view: C more columns of a token's vector, which that seed alone reads, one for each label.

Shapes: F features of the view, N training texts, R texts of a prediction, C labels, D width of the view, W = D + C,
S = 2 seeds.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from textcls_training.config.resolve import MACHINE_PASSES, ResolvedConfig
from textcls_training.data.arrays import Float32
from textcls_training.data.dataset import Dataset
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.fit.compiled.arrays import Texts
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.label_weights import class_weights
from textcls_training.fit.one_vs_rest.trainer import View, some_texts
from textcls_training.models.ensemble import HashedView
from textcls_training.models.linear_classifier import LinearClassifier

# The cost of a mistake, with rows of length 1. Measured: training/README.md.
COST: Final = 0.3


def trained_beside(
    space: FeatureSpace, texts: Texts, dataset: Dataset, classes: int, config: ResolvedConfig, stop: Stop
) -> View:
    """Return trained support vector machines that read the features of a view.

    Args:
        space: the features.
        texts: the training texts, as the view reads them.
        dataset: the training rows.
        classes: number of labels.
        config: contains the seed, and the weights of the labels.
        stop: a request to end the training.
    """
    view, cost_NC = View(space, texts, classes), costs_beside(dataset, classes, config)
    for number in range(1, MACHINE_PASSES + 1):
        for text_B in some_texts(number, len(cost_NC), config.seed):
            if stop.requested:
                break
            view.train(text_B, cost_NC)
    view.forget_rows()
    return view


def joined(view: HashedView, machines: View, own_weight: float, weight: float) -> HashedView:
    """Return a view with support vector machines as its second seed, each of the two with its ensemble weight."""
    classifier = view.classifier
    assert isinstance(classifier, LinearClassifier)
    own, share = own_weight / (own_weight + weight), weight / (own_weight + weight)
    labels, width = classifier.labels, classifier.config.dim
    query_SW = np.zeros((2, width + labels), np.float32)
    query_SW[0, :width] = classifier.query_SD[0]
    head_CSW = np.zeros((labels, 2, width + labels), np.float32)
    head_CSW[:, 0, :width] = np.float32(own) * classifier.head_CX
    head_CSW[:, 1, width:] = np.float32(share) * np.eye(labels, dtype=np.float32)
    bias_C = np.float32(own) * classifier.bias_C + np.float32(share) * machines.bias_C
    config = replace(classifier.config, dim=width + labels, seeds=2)
    both = LinearClassifier(config, query_SW, head_CSW.reshape(labels, -1), bias_C, classifier.numbers + labels)
    table_FW = np.concatenate([view.table_VD, machines.weight_FC], 1)
    return HashedView(view.space, table_FW, both, distinct=(False, True))


def costs_beside(dataset: Dataset, classes: int, config: ResolvedConfig) -> Float32:
    """Return the cost of a mistake for each row and label [N, C], below 0 if the row has another label.

    A row that was answered by a teacher counts for its likeliest label, weighted by its probability.
    """
    sign_NC = 2 * np.eye(classes, dtype=np.float32)[dataset.labels] - 1
    weight_N = class_weights(dataset.label_mass(classes), config.class_weight)[dataset.labels]
    if dataset.probability_RC is not None:
        weight_N = weight_N * dataset.probability_RC[np.arange(len(weight_N)), dataset.labels]
    if dataset.weight_R is not None:
        weight_N = weight_N * dataset.weight_R
    cost_NC: Float32 = np.float32(COST) * weight_N[:, None] * sign_NC
    return cost_NC
