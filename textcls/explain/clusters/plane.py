"""Texts as points of a plane, near each other if a model answers them alike.

Placed by t-SNE (van der Maaten and Hinton 2008) of scikit-learn, which comes with the extra `textcls[train]` and is
imported on use. Large distances, and the size of a cloud, mean little.
"""

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from textcls._util import optional_dependencies

Float32 = NDArray[np.float32]
Method = Literal["tsne", "none"]

WHAT: Final = "The map of texts"
# The number of texts that each text should stay near, if there are three times as many.
NEIGHBOURS: Final = 30
# More steps change little.
STEPS: Final = 500
# With fewer texts there is nothing to see.
LEAST_POINTS: Final = 10


def require(method: Method) -> None:
    """Make sure that a map can be drawn.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    if method == "tsne":
        with optional_dependencies.needed_by(WHAT):
            optional_dependencies.look_for("sklearn", "threadpoolctl")


def plane(logits_NC: Float32, method: Method) -> Float32 | None:
    """Return a place in the plane for each text [N, 2], both coordinates from 0 to 1; None for too few texts.

    Args:
        logits_NC: the logits of each text, for each of the model's labels.
        method: how the places are found; `none` for no map.
    """
    if method == "none" or len(logits_NC) < LEAST_POINTS:
        return None
    place_N2 = _fitted(_profiles(logits_NC)).astype(np.float64)
    low_2, high_2 = place_N2.min(0), place_N2.max(0)
    return np.asarray((place_N2 - low_2) / np.maximum(high_2 - low_2, 1e-9), np.float32)


def _profiles(logits_NC: Float32) -> Float32:
    """Return the profiles to compare: the direction of each text's logits, whose length reflects that of the text."""
    centred_NC = logits_NC - logits_NC.mean(1, keepdims=True)
    length_N1 = np.linalg.norm(centred_NC, axis=1, keepdims=True)
    return np.asarray(centred_NC / np.maximum(length_N1, 1e-9), np.float32)


def _fitted(profile_NC: Float32) -> Float32:
    neighbours = min(NEIGHBOURS, (len(profile_NC) - 1) // 3)
    with optional_dependencies.needed_by(WHAT):
        from sklearn.manifold import TSNE
        from threadpoolctl import threadpool_limits
    tsne = TSNE(perplexity=max(2, neighbours), max_iter=STEPS, init="pca", random_state=0)
    # Threads with so little work mostly wait for each other; and a single one gives the same map everywhere.
    with threadpool_limits(1):
        return np.asarray(tsne.fit_transform(profile_NC))
