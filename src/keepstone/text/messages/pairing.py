"""Tool calls and their results brought together: providers refuse one without the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from keepstone.text.messages.parts import Part
from keepstone.text.messages.turns import Turn


def paired(turns: Sequence[Turn], *, merge: bool) -> list[Turn]:
    """Return the turns with the results of tools right after the turns that call them.

    Results without their call and calls without their result are left out, and with a call the reasoning
    that led to it. Turns that need no change are the same objects as before.

    Args:
        turns: In their order.
        merge: Merge consecutive turns of the assistant into one, calls last, if one of them would come
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
            # It is from several messages, so none can go back as it was given.
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
    """Return consecutive turns without calls that have no result."""
    kept: list[Turn] = []
    is_next_gone = False
    for turn in reversed(run):  # From the end, as reasoning goes with the calls that follow it.
        left = _only(turn, {part for part in turn.parts if part.kind != "call" or part in results})
        is_bare = all(part.kind == "reasoning" for part in left.parts)
        is_next_gone = is_bare and (left is not turn or is_next_gone)
        if not is_next_gone:
            kept.append(left)
    return kept[::-1]


def _only(turn: Turn, parts: set[Part]) -> Turn:
    """Return a turn with these of its parts, itself if it has no others."""
    left = tuple(part for part in turn.parts if part in parts)
    return turn if len(left) == len(turn.parts) else replace(turn, parts=left)
