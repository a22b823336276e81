"""Which label's name is nearest to a text.

Shapes: R texts, C labels, E width of a vector.
"""

import numpy as np

from textcls_training.data.arrays import Float32, Int64


def similarities(text_RE: Float32, name_CE: Float32) -> Float32:
    """Return the cosine of each text with each name [R, C], both minus the mean of the texts.

    What all texts share would otherwise favour the names close to it, whatever the text.

    Args:
        text_RE: vectors of the texts, each of length 1, or zero.
        name_CE: vectors of the names, likewise. A text of zeros is similar to none.
    """
    mean_E = text_RE.mean(0)
    centred_RE = np.where(text_RE.any(1, keepdims=True), text_RE - mean_E, np.float32(0))
    cosine_RC: Float32 = _unit(centred_RE) @ _unit(name_CE - mean_E).T
    return cosine_RC


def surest(cosine_RC: Float32, share: float) -> Int64:
    """Return the numbers of the texts that are surest of the nearest name, in order: a `share` per label.

    A text is surer the farther its second nearest name is behind the first. Each label that is the nearest for any text
    keeps at least one.
    """
    first_R = cosine_RC.argmax(1)
    top_R2 = np.partition(cosine_RC, -2, axis=1)[:, -2:]
    lead_R = top_R2[:, 1] - top_R2[:, 0]
    kept = []
    for label in np.unique(first_R):
        of_label = np.flatnonzero(first_R == label)
        order = np.argsort(-lead_R[of_label], kind="stable")
        kept.append(of_label[order[: max(1, round(share * len(of_label)))]])
    return np.sort(np.concatenate(kept)).astype(np.int64)


def _unit(x_NE: Float32) -> Float32:
    found: Float32 = x_NE / np.maximum(np.linalg.norm(x_NE, axis=1, keepdims=True), np.float32(1e-12))
    return found
