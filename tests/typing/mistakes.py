"""Mistakes that type checkers find: each line with a comment must be an error of mypy and of pyright."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import keepstone


def misspelled_keys(agent: keepstone.Agent) -> None:
    session = agent.session("main")
    session.add("note", "tea", pinnd=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    session.update("a", txt="tea")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    agent.add("tea", tgas=["x"])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    agent.update("a", txt="tea")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    agent.entries(valid_only=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def wrong_values(agent: keepstone.Agent) -> None:
    agent.recall("tea", vector="x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    agent.add("tea", pinned="yes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    agent.add("tea", embedding="x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    agent.session("main").add_many(["tea"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def misspelled_names() -> None:
    _opne: object = keepstone.opne  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    _agnet: object = keepstone.Agnet  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
