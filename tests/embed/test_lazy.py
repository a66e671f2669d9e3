"""What is made when it is first needed."""

from __future__ import annotations

from itertools import count

import pytest

from keepstone.embed.lazy import Lazy


def test_a_lazy_value_is_made_once_and_late() -> None:
    numbers = count()
    value = Lazy(lambda: next(numbers))
    assert next(numbers) == 0
    assert (value(), value()) == (1, 1)


def test_a_value_that_could_not_be_made_is_tried_again() -> None:
    outcomes = [1, 0]
    value = Lazy(lambda: 1 // (1 - outcomes.pop(0)))
    with pytest.raises(ZeroDivisionError):
        value()
    assert value() == 1
