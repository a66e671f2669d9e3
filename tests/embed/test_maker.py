"""Vectors of many texts from embedders that refuse some, fail or answer late."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from tests.memories import Letters

from keepstone.embed import embedder as module
from keepstone.embed.embedder import Patient
from keepstone.embed.maker import Maker
from keepstone.errors import EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError
from keepstone.text.embedded import LONGEST

GOOD = [f"a good {number}" for number in range(15)]


class Clock:
    """Seconds that only the test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Refusing(Letters):
    """One that fails each batch with a text of ``refused``, and every batch while ``down``."""

    def __init__(self) -> None:
        super().__init__(2)
        self.refused = {"bad"}
        self.down = False
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> Any:
        self.calls.append(texts)
        if self.down or self.refused & {*texts}:
            raise OSError("400: maximum context length")
        return super().embed_documents(texts)


class NotFinite(Refusing):
    """One that gives NaN for a bad text and numbers for all others."""

    def embed_documents(self, texts: list[str]) -> Any:
        self.calls.append(texts)
        return [[float("nan") if "bad" in text else 1.0, 1.0] for text in texts]


class Slow(Letters):
    """One that answers once it is released."""

    def __init__(self) -> None:
        super().__init__(2)
        self.released = threading.Event()

    def embed_documents(self, texts: list[str]) -> Any:
        assert self.released.wait(30)
        return super().embed_documents(texts)


def hurried(embedder: Letters) -> Patient:
    """Give up at once when an embedder is asked about one text."""
    patient = Patient(embedder)
    assert patient.dim == 2
    patient._seconds = -module.SECONDS_A_TEXT  # noqa: SLF001
    return patient


def come_back(patient: Patient) -> None:
    """Wait until the call that was given up has come back."""
    patient._given_up[0].thread.join(30)  # noqa: SLF001  Nothing else tells.


@pytest.mark.parametrize("embedder", [Refusing(), NotFinite()])
@pytest.mark.parametrize("place", [0, 7, 15])
def test_one_refused_text_leaves_the_rest_of_its_batch(embedder: Refusing, place: int) -> None:
    maker = Maker(embedder)
    made = maker.make([*GOOD[:place], "bad", *GOOD[place:]])
    assert set(made) == set(GOOD)
    assert maker.refuses("bad")
    assert "bad" not in maker.why_refused("bad")


def test_roles_and_what_follows_the_beginning_are_never_sent_to_the_embedder() -> None:
    embedder = Refusing()
    maker = Maker(embedder)
    texts = ["user: good", "assistant: good", "Ann: good", "user: " + "good " * 1000]
    made = maker.make(texts)
    assert list(made) == texts
    assert embedder.calls == [["good", "Ann: good", ("good " * 1000)[:LONGEST]]]
    maker.make_one("tool: better")
    assert embedder.calls[-1] == ["better"]


def test_a_refused_text_is_asked_about_again_at_growing_intervals() -> None:
    embedder, clock = Refusing(), Clock()
    maker = Maker(embedder, clock)
    asked = []
    for _ in range(400):
        embedder.calls.clear()
        maker.make(["bad", "a"])
        asked += [clock.now] if ["bad"] in embedder.calls else []
        clock.now += 10
    gaps = np.diff(asked).tolist()
    assert gaps == [60, 120, 240, 480, 960, 1920]


def test_a_text_accepted_later_is_no_longer_refused() -> None:
    embedder, clock = Refusing(), Clock()
    maker = Maker(embedder, clock)
    assert maker.make(["bad"]) == {}
    embedder.refused = set()
    clock.now += 61
    assert list(maker.make(["bad"])) == ["bad"]
    assert (maker.refuses("bad"), maker.why_refused("bad")) == (False, "")


def test_a_failing_embedder_refuses_no_text_and_is_left_alone() -> None:
    embedder, clock = Refusing(), Clock()
    maker, embedder.down = Maker(embedder, clock), True
    asked = []
    for _ in range(70):
        embedder.calls.clear()
        with pytest.raises(EmbedderUnavailableError, match="maximum context length"):
            maker.make(GOOD)
        asked += [clock.now] if embedder.calls else []
        assert len(embedder.calls) in (0, 2)  # The batch, and a probe.
        clock.now += 1
    assert np.diff(asked).tolist() == [1, 2, 4, 8, 16, 32]
    assert not any(maker.refuses(text) for text in GOOD)


def test_who_must_have_vectors_asks_a_failed_embedder_again() -> None:
    embedder, clock = Refusing(), Clock()
    maker, embedder.down = Maker(embedder, clock), True
    with pytest.raises(EmbedderUnavailableError):
        maker.make(GOOD)
    embedder.down = False
    assert len(maker.make(GOOD, must=True)) == len(GOOD)


def test_vectors_that_were_not_stored_are_not_paid_for_twice() -> None:
    embedder = Letters()
    maker = Maker(embedder)
    first = maker.make(["a", "b", "a"])
    again = maker.make(["b", "a", "c"])
    assert embedder.asked == ["a", "b", "c"]
    assert again["a"] is first["a"]
    maker.stored(["a"])
    maker.make(["a"])
    assert embedder.asked == ["a", "b", "c", "a"]


def test_what_was_made_before_a_failure_is_given_without_asking() -> None:
    embedder = Refusing()
    maker = Maker(embedder)
    maker.make(["a"])
    embedder.down = True
    with pytest.raises(EmbedderUnavailableError):
        maker.make(["a", "b"])
    embedder.calls.clear()
    assert list(maker.make(["a", "b"])) == ["a"]
    assert embedder.calls == []


def test_an_answer_after_the_timeout_is_used_and_not_asked_again() -> None:
    embedder, clock = Slow(), Clock()
    patient = hurried(embedder)
    maker = Maker(patient, clock)
    with pytest.raises(EmbedderUnavailableError, match="timed out"):
        maker.make(["a"])
    embedder.released.set()
    come_back(patient)
    clock.now += 1
    assert maker.make(["a"])["a"].tolist() == [1, 0]
    assert embedder.asked == ["a"]


def test_a_late_answer_of_the_wrong_shape_is_not_used() -> None:
    class Wrong(Slow):
        def embed_documents(self, texts: list[str]) -> Any:
            return super().embed_documents([*texts, "one too many"])

    embedder = Wrong()
    patient = hurried(embedder)
    maker = Maker(patient)
    with pytest.raises(EmbedderUnavailableError):
        maker.make(["a"])
    embedder.released.set()
    come_back(patient)
    patient._seconds = 30  # noqa: SLF001
    with pytest.raises(EmbeddingDimMismatchError):
        maker.make(["a"], must=True)


def test_a_model_may_load_longer_than_an_answer_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = Slow()
    waits = Patient.finish_loading

    def loaded(patient: Patient) -> bool:
        embedder.released.set()
        return waits(patient)

    monkeypatch.setattr(Patient, "finish_loading", loaded)
    assert Maker(hurried(embedder)).make_one("a").tolist() == [1, 0]
    assert embedder.asked == ["a"]


def test_only_the_first_answer_may_take_that_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOADING_SECONDS", 0)
    embedder = Slow()
    with pytest.raises(EmbedderUnavailableError, match="timed out"):
        Maker(hurried(embedder)).make_one("a")
    embedder.released.set()


def test_one_text_that_is_refused_raises_for_who_must_have_it() -> None:
    with pytest.raises(EmbedderUnavailableError, match="maximum context length"):
        Maker(Refusing()).make_one("bad")
    with pytest.raises(InvalidEmbeddingError):
        Maker(NotFinite()).make_one("bad")


def test_as_many_texts_fit_into_some_seconds_as_the_pace_allows() -> None:
    clock, embedder = Clock(), Refusing()
    maker = Maker(embedder, clock)
    assert maker.fitting(1, unknown=8) == 8

    def slow(texts: list[str]) -> Any:
        clock.now += 0.25 * len(texts)
        return Letters.embed_documents(embedder, texts)

    embedder.embed_documents = slow  # type: ignore[method-assign]
    maker.make(GOOD[:2])
    assert [maker.fitting(seconds, unknown=8) for seconds in (1.1, 0.2, 0, -1)] == [4, 0, 0, 0]
