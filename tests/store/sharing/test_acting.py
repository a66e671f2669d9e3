"""For which other agent the store is called in a context."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from keepstone.store.sharing.acting import ACTING, Acting, acting
from keepstone.testing.clock import START


def test_an_agent_acts_for_itself_outside_of_any_grant() -> None:
    assert ACTING.get() is None


@pytest.mark.parametrize("is_writing", [False, True])
def test_inside_the_store_knows_who_acts_since_when(is_writing: bool) -> None:  # noqa: FBT001
    with acting("coder", START, is_writing=is_writing):
        assert ACTING.get() == Acting("coder", is_writing, START)
    assert ACTING.get() is None


def test_an_inner_grant_ends_at_the_outer_one() -> None:
    with acting("coder", START, is_writing=False):
        with acting("other", START, is_writing=True):
            pass
        assert ACTING.get() == Acting("coder", is_writing=False, moment=START)


def test_an_error_ends_it_as_well() -> None:
    with pytest.raises(ZeroDivisionError), acting("coder", START, is_writing=False):
        raise ZeroDivisionError
    assert ACTING.get() is None


def test_another_thread_acts_for_itself() -> None:
    with acting("coder", START, is_writing=True), ThreadPoolExecutor(1) as threads:
        assert threads.submit(ACTING.get).result() is None
