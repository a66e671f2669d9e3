"""What models are given, and raise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from keepstone import KeepstoneError
from keepstone.chat import ModelError
from keepstone.chat.messages import Prompt


@given(st.text(), st.text(), st.text())
def test_prompts_of_one_stable_part_begin_alike(stable: str, one: str, other: str) -> None:
    texts = [Prompt(stable, varying).text for varying in (one, other)]
    assert [text[: len(stable)] for text in texts] == [stable, stable]
    assert [text[len(stable) :] for text in texts] == [one, other]


def test_a_failing_model_is_caught_with_all_errors_of_ours() -> None:
    assert issubclass(ModelError, KeepstoneError)
    assert issubclass(ModelError, RuntimeError)
