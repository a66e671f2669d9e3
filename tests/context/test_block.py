"""A context, and why it is empty."""

from __future__ import annotations

from keepstone.context.block import Context, LeftOut, Part


def context(*left: LeftOut, text: str = "") -> Context:
    return Context(text, 0, (), left_out=left)


def test_a_context_with_a_text_needs_no_reason() -> None:
    assert context(LeftOut("notes", "a.md", "too long"), text="x").reason is None


def test_an_empty_context_of_an_empty_memory_says_so() -> None:
    assert context().reason == "nothing that is valid now is remembered"


def test_an_empty_context_counts_what_was_left_out_by_reason() -> None:
    found = context(
        LeftOut("notes", "a.md", "no room", 1_500),
        LeftOut("recalled", "main/1", "not relevant"),
        LeftOut("notes", "b.md", "no room"),
    )
    assert found.reason == "left out: 1,501 (no room); 1 (not relevant)"


def test_a_notebook_shows_the_parts_with_their_text_escaped() -> None:
    shown = Context("<b>", 1_234, (Part("notes", "<b>", tokens=7),))._repr_html_()
    assert "context of 1,234 tokens" in shown
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_a_notebook_says_why_a_context_is_empty() -> None:
    assert "empty: nothing that is valid now is remembered" in context()._repr_html_()
