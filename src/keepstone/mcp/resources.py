"""Sessions, files and notes as MCP resources."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from keepstone.context.fence import fenced
from keepstone.errors import KeepstoneError
from keepstone.mcp.memory_tools import McpTools
from keepstone.operations.agent_tools import AS_DATA

if TYPE_CHECKING:
    from keepstone.agent import Agent
    from keepstone.home import Home
    from keepstone.notes.notes import Notes

_SCHEME = "keepstone://"
_JSON = "application/json"
GRAPH = "memory://knowledge-graph"
"""The resource of the reference memory server."""
_PAGE = 100
_MOST_COMPLETIONS = 100
"""Maximum number of completions that the protocol allows."""
_KINDS = ("sessions", "files", "notes")
_NOTES = ("project", "user")


@dataclass(frozen=True, slots=True)
class View:
    """The resources that one client may see."""

    agent: Agent
    tools: McpTools
    home: Home
    """The home; messages must not contain the path of its folder."""
    notes: Notes | None = None


TEMPLATES = [
    types.ResourceTemplate(
        name="session",
        title="A session of the memory",
        uri_template=f"{_SCHEME}sessions/{{session}}",
        description="The newest entries of a session, oldest first.",
        mime_type="text/plain",
    ),
    types.ResourceTemplate(
        name="file",
        title="A file that the agent keeps",
        uri_template=f"{_SCHEME}files/{{+path}}",
        description="A text file of the agent's own, such as a plan.",
        mime_type="text/plain",
    ),
    types.ResourceTemplate(
        name="notes",
        title="Notes for the agent",
        uri_template=f"{_SCHEME}notes/{{which}}",
        description="The notes of the project or of the user, which people write.",
        mime_type="text/markdown",
    ),
]


def listed(view: View, cursor: str | None) -> types.ListResourcesResult:
    """Return a page of resources in the order of their URIs; the cursor is the URI of the last one."""
    # The cursor is a URI and not a number, so a resource added or removed between two pages does not shift
    # the others.
    found = sorted(_resources(view), key=lambda resource: resource.uri)
    rest = [resource for resource in found if cursor is None or resource.uri > cursor]
    page = rest[:_PAGE]
    return types.ListResourcesResult(
        resources=page, next_cursor=page[-1].uri if len(rest) > len(page) else None
    )


def _resources(view: View) -> Iterable[types.Resource]:
    if view.tools.graph is not None:
        yield types.Resource(
            name="knowledge-graph",
            title="Knowledge Graph",
            uri=GRAPH,
            description="All entities and relations.",
            mime_type=_JSON,
        )
    for info in view.agent.sessions():
        yield _resource("sessions", info.id, f"Session {info.id}", info.size)
    for path in view.agent.files.list():
        yield _resource("files", path, path)
    for which in _NOTES if view.notes is not None else ():
        yield _resource("notes", which, f"Notes of the {which}")


def _resource(kind: str, name: str, title: str, size: int | None = None) -> types.Resource:
    media = "text/markdown" if kind == "notes" else "text/plain"
    return types.Resource(name=name, title=title, uri=uri_of(kind, name), mime_type=media, size=size)


def uri_of(kind: str, name: str) -> str:
    """Return the URI of a resource."""
    return f"{_SCHEME}{kind}/{quote(name, safe='/' if kind == 'files' else '')}"


def read(view: View, uri: str) -> types.ReadResourceResult:
    """Return the text of a resource.

    Raises:
        MCPError: There is no such resource.
    """
    if view.tools.graph is not None and uri == GRAPH:
        graph = json.dumps(view.tools.graph.read(), ensure_ascii=False, indent=2)
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type=_JSON, text=graph)]
        )
    kind, _, name = uri.removeprefix(_SCHEME).partition("/")
    if not uri.startswith(_SCHEME) or kind not in _KINDS or not name:
        raise MCPError(INVALID_PARAMS, f"no resource {uri!r:.200}; list the resources", {"uri": uri})
    found = _text(view, kind, unquote(name))
    if found is None:
        raise MCPError(INVALID_PARAMS, f"no resource {uri!r:.200}; list the resources", {"uri": uri})
    media = "text/markdown" if kind == "notes" else "text/plain"
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type=media, text=found)]
    )


def _text(view: View, kind: str, name: str) -> str | None:
    if kind == "sessions":
        answer = view.tools.call("session_history", {"session": name, "limit": 200})
        return answer.text if answer.data.get("entries") else None
    if kind == "files":
        # A resource that a model reads is fenced as data, like the results of tools.
        try:
            return AS_DATA + fenced([f"{view.agent.files.read(name)}\n"])
        except (KeepstoneError, ValueError):
            return None
    if view.notes is None or name not in _NOTES:
        return None
    # Notes are not fenced, as people wrote them for the agent.
    entries = view.notes.entries(name.capitalize())
    return "".join(f"- {entry.content}\n" for entry in entries)


def completed(view: View, argument: str, typed: str) -> types.CompleteResult:
    """Return the possible values of a template's variable."""
    names: dict[str, Callable[[], Iterable[str]]] = {
        "session": lambda: (info.id for info in view.agent.sessions()),
        "path": view.agent.files.list,
        "which": lambda: _NOTES if view.notes is not None else (),
    }
    fitting = [name for name in names[argument]() if name.startswith(typed)] if argument in names else []
    values = [*islice(fitting, _MOST_COMPLETIONS)]
    return types.CompleteResult(
        completion=types.Completion(values=values, total=len(fitting), has_more=len(fitting) > len(values))
    )


def prompts() -> list[types.Prompt]:
    """Return the prompts that people choose in their client."""
    return [
        types.Prompt(
            name="context",
            title="What is known",
            description="The block of memory that goes before a conversation.",
            arguments=[types.PromptArgument(name="query", description="What the conversation is about.")],
        ),
        types.Prompt(
            name="remember",
            title="What do you remember of …",
            description="Ask what the memory holds about something.",
            arguments=[types.PromptArgument(name="topic", description="What to remember of.", required=True)],
        ),
    ]


def prompt(view: View, name: str, arguments: dict[str, str]) -> types.GetPromptResult:
    """Return a prompt with the memory that belongs to it.

    Raises:
        MCPError: There is no such prompt, or an argument is missing.
    """
    if name == "context":
        given = {"query": arguments["query"]} if arguments.get("query") else {}
        return _prompt("What is known", view.tools.call("memory_context", given).text)
    if name != "remember":
        raise MCPError(INVALID_PARAMS, f"no prompt {name!r:.80}; there are context and remember")
    topic = arguments.get("topic", "").strip()
    if not topic:
        raise MCPError(INVALID_PARAMS, "topic is missing; say what to remember of")
    found = view.tools.call("memory_search", {"query": topic}).text
    return _prompt(
        f"What do you remember of {topic:.80}?", f"What do you remember of {topic}?\n\n{_framed(found)}"
    )


def _framed(found: str) -> str:
    return found if found.startswith(AS_DATA) else f"The memory says: {found}"


def _prompt(description: str, text: str) -> types.GetPromptResult:
    content = types.TextContent(type="text", text=text)
    return types.GetPromptResult(
        description=description, messages=[types.PromptMessage(role="user", content=content)]
    )
