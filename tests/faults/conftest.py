"""How often the tests of faults try their luck, and homes for them to break."""

import os

import pytest

ROUNDS = int(os.environ.get("KEEPSTONE_FAULT_ROUNDS", "12"))
"""12 for a look in passing; ``make faults`` takes 200."""

THOROUGH = 100
"""Rounds from which on everything else is tried at length, too."""


@pytest.fixture
def rounds() -> int:
    """How many rounds a test of chance has."""
    return ROUNDS


@pytest.fixture
def thorough() -> bool:
    """Whether a test may take its time."""
    return ROUNDS >= THOROUGH
