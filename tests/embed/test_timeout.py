"""Embedders of the user are asked for a limited time."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from tests.memories import Letters

from keepstone.embed.embedder import Patient
from keepstone.errors import EmbedderUnavailableError


class Hanging(Letters):
    """One that hangs until it is released."""

    def __init__(self) -> None:
        super().__init__(2)
        self.released = threading.Event()

    def embed_documents(self, texts: list[str]) -> Any:
        self.released.wait(30)
        return super().embed_documents(texts)


def test_an_answer_in_time_is_passed_on() -> None:
    patient = Patient(Letters(2))
    assert (patient.id, patient.dim) == ("letters", 2)
    assert np.asarray(patient.embed_documents(["a", "b"])).shape == (2, 2)
    assert np.asarray(patient.embed_query("a")).tolist() == [1.0, 0.0]


def test_one_that_hangs_is_given_up_and_not_asked_again_before_it_answers() -> None:
    hanging = Hanging()
    patient = Patient(hanging, 0.01)
    with pytest.raises(EmbedderUnavailableError, match="timed out after"):
        patient.embed_documents(["a"])
    with pytest.raises(EmbedderUnavailableError, match="still hangs"):
        patient.embed_query("a")
    hanging.released.set()
    patient._given_up[0].thread.join(30)  # noqa: SLF001  What else would tell that it has answered?
    assert np.asarray(patient.embed_query("a")).shape == (2,)


@pytest.mark.parametrize("error", [OSError("x"), KeyboardInterrupt()])
def test_an_exception_reaches_the_caller(error: BaseException) -> None:
    class Raising(Letters):
        def embed_query(self, _: str) -> Any:
            raise error

    with pytest.raises(type(error)):
        Patient(Raising()).embed_query("a")
