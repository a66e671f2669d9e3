"""Pairing of tool calls with their results: providers reject one without the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from keepstone.text.messages.parts import Part
from keepstone.text.messages.turns import Turn


def paired(turns: Sequence[Turn], *, merge: bool) -> list[Turn]:
    """Return turns with the results of tools right after the turns that call the tools.

    Results without a call and calls without a result are left out, and with such a call the reasoning
    that led to it. Turns that need no change are returned as the same objects.

    Args:
        turns: The turns, in order.
        merge: Merge consecutive turns of the assistant into one, calls last, if a turn would come
            between a call and its result.
    """
    results = _results_of_calls(turns)
    # Parts compare by identity, so equal texts of two turns stay two parts.
    place_of = {part: place for place, turn in enumerate(turns) for part in turn.parts}
    kept: list[Turn] = []
    for is_assistant, group in groupby(turns, lambda turn: turn.role == "assistant"):
        if not is_assistant:
            # The turns of tools come after the turns that call them, see below.
            kept += _complete([turn for turn in group if turn.role != "tool"], {})
            continue
        said = _complete(list(group), results)
        if merge and any(calls_of(turn) for turn in said[:-1]):
            parts = (part for turn in said for part in turn.parts)
            # The merged turn is from several messages, so it has no single source.
            said = [Turn("assistant", tuple(sorted(parts, key=lambda part: part.kind == "call")), None)]
        found = {results[part] for turn in said for part in calls_of(turn)}
        kept += said
        kept += (_only(turns[place], found) for place in sorted({place_of[part] for part in found}))
    return kept


def calls_of(turn: Turn) -> list[Part]:
    """Return the tool calls in a turn."""
    return [part for part in turn.parts if part.kind == "call"]


def _results_of_calls(turns: Sequence[Turn]) -> dict[Part, Part]:
    waiting: dict[str, Part] = {}
    found: dict[Part, Part] = {}
    for turn in turns:
        for part in turn.parts:
            if part.kind == "call" and turn.role == "assistant":
                waiting[part.call] = part
            elif part.kind == "result" and part.call in waiting:
                found[waiting.pop(part.call)] = part
    return found


def _complete(run: Sequence[Turn], results: Mapping[Part, Part]) -> list[Turn]:
    """Return consecutive turns after removing calls without a result, and the reasoning that led to them."""
    kept: list[Turn] = []
    is_next_gone = False
    for turn in reversed(run):  # Go backwards, as reasoning is removed with the calls after it.
        left = _only(turn, {part for part in turn.parts if part.kind != "call" or part in results})
        is_bare = all(part.kind == "reasoning" for part in left.parts)
        is_next_gone = is_bare and (left is not turn or is_next_gone)
        if not is_next_gone:
            kept.append(left)
    return kept[::-1]


def _only(turn: Turn, parts: set[Part]) -> Turn:
    """Return a turn with only these parts; the same object if it has no other parts."""
    left = tuple(part for part in turn.parts if part in parts)
    return turn if len(left) == len(turn.parts) else replace(turn, parts=left)
