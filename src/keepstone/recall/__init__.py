"""Recall: the query, the candidate lists, their fusion, and why each hit was found."""

from keepstone.recall.pipeline import recall
from keepstone.recall.question import Question

__all__ = ["Question", "recall"]
