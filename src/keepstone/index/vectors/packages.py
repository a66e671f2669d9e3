"""The packages of the extra ``vectors``, which make vector search faster than with NumPy alone."""

from __future__ import annotations

from importlib.util import find_spec

NUMKONG = "numkong"
"""Computes dot products of int8 rows with the processor's instructions for them."""
USEARCH = "usearch"
"""Builds and reads HNSW graphs."""


def is_installed(package: str) -> bool:
    """Return whether a package is installed, without importing it."""
    return find_spec(package) is not None


def missing() -> list[str]:
    """Return the packages that are not installed."""
    return [package for package in (NUMKONG, USEARCH) if not is_installed(package)]
