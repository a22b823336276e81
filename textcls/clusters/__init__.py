"""Clusters to look at: which texts a model puts together, by which words, and how they lie to each other.

    survey.py      over the texts of a file: sizes, words, examples; what `textcls clusters` shows
    plane.py       texts as points in two dimensions
    agreement.py   clusters beside labels that the model has never seen
"""

from textcls.clusters.agreement import Agreement
from textcls.clusters.survey import Cluster, ClusterSurvey, survey_clusters

__all__ = ["Agreement", "Cluster", "ClusterSurvey", "survey_clusters"]
