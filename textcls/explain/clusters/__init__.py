"""Clusters for inspection: which texts a model groups together, by which words, and how they lie to each other.

`survey` goes over the texts of a file, and finds sizes, words and examples: what `textcls clusters` shows; `plane` lays
texts out in two dimensions; `agreement` compares clusters with labels that the model has never seen.
"""

from textcls.explain.clusters.agreement import Agreement
from textcls.explain.clusters.survey import Cluster, ClusterSurvey, survey_clusters

__all__ = ["Agreement", "Cluster", "ClusterSurvey", "survey_clusters"]
