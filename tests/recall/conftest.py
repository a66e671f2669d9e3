"""What tests of recall share."""

import pytest


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a recall wait until vectors are made, however busy the machine is."""
    monkeypatch.setattr("keepstone.recall.vectors.SECONDS", 30)
    monkeypatch.setattr("keepstone.recall.filling._MOMENT", 30)
