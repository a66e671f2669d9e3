"""Recall: the query, the candidate lists, their fusion, and why each hit was found."""

from keepstone.recall.pipeline import Question, recall

__all__ = ["Question", "recall"]
