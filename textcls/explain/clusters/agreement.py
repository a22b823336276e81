"""Measure how far clusters agree with labels that the model does not know.

scikit-learn and SciPy come with the extra `textcls[train]`; they are imported on use.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls._util import optional_dependencies

Int64 = NDArray[np.int64]

WHAT: Final = "Comparing clusters with labels"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far clusters agree with labels; each measure is 1 if they are identical except for their names.

    Attributes:
        rows: rows with a label.
        labels: number of distinct labels.
        accuracy: share of the rows whose cluster is matched with their label; each cluster is matched with at most one
            label, so that this share is highest (Kuhn 1955).
        nmi: normalised mutual information, 2 I / (H + H).
        ari: adjusted Rand index (Hubert and Arabie 1985), 0 for chance.
        matched: the label that each cluster is matched with, by name.
    """

    rows: int
    labels: int
    accuracy: float
    nmi: float
    ari: float
    matched: dict[str, str]


def agreement(clusters: Sequence[str], labels: Sequence[str]) -> Agreement:
    """Compare the cluster of each row with its label.

    Args:
        clusters: one per row, at least one row.
        labels: one per row.

    Raises:
        MissingExtraError: scikit-learn or SciPy is not installed.
    """
    with optional_dependencies.needed_by(WHAT):
        from scipy.optimize import linear_sum_assignment
        from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
    cluster_names, cluster = np.unique(np.array(clusters, object), return_inverse=True)
    label_names, label = np.unique(np.array(labels, object), return_inverse=True)
    count = _counts(cluster, label, len(cluster_names), len(label_names))
    best = linear_sum_assignment(-count)
    return Agreement(
        rows=len(labels),
        labels=len(label_names),
        accuracy=float(count[best].sum() / len(labels)),
        nmi=float(normalized_mutual_info_score(label, cluster)),
        ari=float(adjusted_rand_score(label, cluster)),
        matched={str(cluster_names[i]): str(label_names[j]) for i, j in zip(*best, strict=True) if count[i, j]},
    )


def _counts(cluster: Int64, label: Int64, clusters: int, labels: int) -> Int64:
    """Return how many rows each pair of cluster and label has."""
    found = np.bincount(cluster * labels + label, minlength=clusters * labels)
    return np.asarray(found.reshape(clusters, labels), np.int64)


def require() -> None:
    """Make sure that clusters can be compared with labels.

    Raises:
        MissingExtraError: scikit-learn or SciPy is not installed.
    """
    with optional_dependencies.needed_by(WHAT):
        optional_dependencies.look_for("scipy", "sklearn")
