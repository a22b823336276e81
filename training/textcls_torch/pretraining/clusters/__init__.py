"""Clusters of texts by mutual information."""
