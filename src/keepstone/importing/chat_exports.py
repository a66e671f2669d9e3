"""The data exports of ChatGPT and Claude: a zip archive, its folder, or its ``conversations.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Any

from keepstone.errors import SourceError
from keepstone.importing.item import Item, Items, Options, Unread, message, named, time_of
from keepstone.importing.json_text import elements
from keepstone.importing.origin import Origin
from keepstone.model import Record

# An export may have several numbered files, such as conversations-1.json. The repetition is possessive, so
# that other names are rejected in linear time.
_CONVERSATIONS = re.compile(r"^(?:.*/)?conversations[-_0-9]*+\.json$")

_LOOKED_AT = 100
"""Maximum number of conversations checked to find the first object."""
_NOT_AN_OBJECT = "it is not an object"
_UNKNOWN_FORM = (AttributeError, LookupError, TypeError, ValueError)
"""Errors raised on reading a message in which a key is missing or its value has another type."""


def is_chatgpt(origin: Origin) -> bool:
    """Return whether the first conversation is a tree, as ChatGPT exports it."""
    return "mapping" in _first(origin)


def is_claude(origin: Origin) -> bool:
    """Return whether the first conversation has messages as Claude exports them."""
    return "chat_messages" in _first(origin)


def _files(origin: Origin) -> list[str]:
    names = origin.names(".json")
    # A single file may have been renamed after the download.
    if not (origin.is_folder or origin.is_zip):
        return names
    return [name for name in names if _CONVERSATIONS.fullmatch(name)]


def _first(origin: Origin) -> Record:
    for name in _files(origin):
        # ``auto`` calls this for every file; databases and archives must not be read as JSON.
        if not name.lower().endswith(".json"):
            continue
        try:
            with origin.open(name) as file:
                found = (
                    element
                    for element in islice(elements(file, name), _LOOKED_AT)
                    if isinstance(element, dict)
                )
                return next(found, {})
        except SourceError:
            continue
    return {}


def _conversations(origin: Origin) -> Iterator[tuple[str, Record | None]]:
    """Yield the place and the content of each conversation; the content is None if it is not an object."""
    names = _files(origin)
    if not names:
        raise SourceError(f"{origin.path} has no conversations.json")
    for name in names:
        with origin.open(name) as file:
            for number, conversation in enumerate(elements(file, name), 1):
                found = conversation if isinstance(conversation, dict) else None
                yield f"{name}: conversation {number}", found


def read_chatgpt(origin: Origin, options: Options) -> Items:
    """Yield the messages of each conversation: its current branch, or all branches with links to parents."""
    for place, conversation in _conversations(origin):
        if conversation is None:
            yield Unread(place, _NOT_AN_OBJECT)
            continue
        session = named(conversation.get("conversation_id")) or named(conversation.get("id"))
        tree = conversation.get("mapping")
        if session is None or not isinstance(tree, dict):
            yield Unread(place, "it has no id, or no mapping of messages")
            continue
        current = _branch(tree, conversation.get("current_node"))
        names = _all_branches(tree) if options.branches or not current else current
        title = named(conversation.get("title"))
        for name in names:
            node = tree[name]
            try:
                line = _chatgpt_line(node.get("message"))
            except _UNKNOWN_FORM as error:
                yield Unread(f"{place}, message {name}", f"it is not of the known form: {error}")
                continue
            if line is None:
                continue
            line = {"id": name, **line}
            if title:
                line, title = line | {"aliases": [title]}, None
            if options.branches and (parent := _spoken_parent(tree, name)):
                # A single branch needs no links: the order of its messages has the same information.
                line["links"] = [{"to": parent, "rel": "reply_to"}]
            yield Item(session, line, f"{place}, message {name}")


def _branch(tree: dict[str, Any], leaf: Any) -> list[str]:
    """Return the names of the nodes from the root to a leaf."""
    found: dict[str, None] = {}
    # In a damaged tree a node may be its own ancestor, so each node is visited only once.
    while isinstance(leaf, str) and leaf in tree and leaf not in found and isinstance(tree[leaf], dict):
        found[leaf] = None
        leaf = tree[leaf].get("parent")
    return list(reversed(found))


def _all_branches(tree: dict[str, Any]) -> list[str]:
    """Return the names of all nodes, each after its parent."""
    nodes = {name: node for name, node in tree.items() if isinstance(node, dict)}
    roots = [name for name, node in nodes.items() if named(node.get("parent")) not in nodes]
    found: dict[str, None] = {}
    for start in chain(roots, nodes):  # Nodes that a cycle cuts off from every root come last.
        pending = [start]
        while pending:
            name = pending.pop()
            if name in nodes and name not in found:
                found[name] = None
                children = nodes[name].get("children")
                pending += reversed(
                    [child for child in children if isinstance(child, str)]
                    if isinstance(children, list)
                    else []
                )
    return list(found)


def _spoken_parent(tree: dict[str, Any], name: str) -> str | None:
    for parent in reversed(_branch(tree, name)[:-1]):
        with suppress(*_UNKNOWN_FORM):  # A malformed parent is reported as unread and has no entry.
            if _chatgpt_line(tree[parent].get("message")) is not None:
                return parent
    return None


def _chatgpt_line(said: Any) -> Record | None:
    """Return a message of the tree; None if it is hidden or empty."""
    if said is None:
        return None
    author, content = said["author"], said["content"]
    metadata = said.get("metadata") or {}
    # Hidden messages are, for example, the custom instructions at the start of each conversation.
    if metadata.get("is_visually_hidden_from_conversation"):
        return None
    text = _chatgpt_text(content)
    if not text.strip():
        return None
    role = author.get("role")
    return {"ts": time_of(said.get("create_time"))} | message(role, text, name=named(author.get("name")))


def _chatgpt_text(content: Record) -> str:
    parts = content.get("parts")
    if isinstance(parts, list):
        return "\n".join(part if isinstance(part, str) else _part_text(part) for part in parts)
    # Code and quotations have ``text``, output of a browser has ``result``, and a summary of reasoning has
    # ``content``.
    for key in ("text", "result", "content"):
        if isinstance(content.get(key), str):
            return str(content[key])
    thoughts = content.get("thoughts")
    if isinstance(thoughts, list):
        return "\n".join(str(thought.get("content") or thought.get("summary") or "") for thought in thoughts)
    return ""


def _part_text(part: Any) -> str:
    """Return a text for a part that is not a string: its transcription or its asset's name."""
    if not isinstance(part, dict):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"])
    pointer = part.get("asset_pointer")
    return f"[{part.get('content_type', 'file')}: {pointer}]" if isinstance(pointer, str) else ""


def read_claude(origin: Origin, options: Options) -> Items:
    """Yield the messages of each conversation."""
    for place, conversation in _conversations(origin):
        if conversation is None:
            yield Unread(place, _NOT_AN_OBJECT)
            continue
        session, said = named(conversation.get("uuid")), conversation.get("chat_messages")
        if session is None or not isinstance(said, list):
            yield Unread(place, "it has no uuid, or no chat_messages")
            continue
        title = named(conversation.get("name"))
        current = None if options.branches else _claude_branch(said, conversation)
        for number, entry in enumerate(said, 1):
            where = f"{place}, message {number}"
            if not isinstance(entry, dict) or named(entry.get("uuid")) is None:
                yield Unread(where, "it is not an object with a uuid")
                continue
            if current is not None and entry["uuid"] not in current:
                continue
            content = _claude_content(entry)
            if not content:
                continue  # A stopped answer leaves an empty message.
            line = {"id": entry["uuid"], "ts": time_of(entry.get("created_at"))}
            line |= message(entry.get("sender"), content)
            if title:
                line, title = line | {"aliases": [title]}, None
            yield Item(session, line, where)


def _claude_branch(said: list[Any], conversation: Record) -> set[str] | None:
    """Return the messages of the current branch; None if the export has no branches."""
    parents = {
        entry["uuid"]: entry.get("parent_message_uuid")
        for entry in said
        if isinstance(entry, dict) and isinstance(entry.get("uuid"), str)
    }
    # Older exports have only one branch, and neither leaf nor parents.
    leaf = conversation.get("current_leaf_message_uuid")
    if not isinstance(leaf, str) or leaf not in parents:
        return None
    found: set[str] = set()
    while isinstance(leaf, str) and leaf in parents and leaf not in found:
        found.add(leaf)
        leaf = parents[leaf]
    return found


def _objects(value: Any) -> list[Record]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _claude_content(said: Record) -> str | list[Any]:
    """Return a message's text, or its blocks if it has more than text."""
    # Older exports have only ``text``, newer ones have blocks as well.
    blocks = _objects(said.get("content"))
    texts = [block for block in blocks if block.get("type") == "text"]
    documents = [
        {
            "type": "document",
            "title": str(attachment.get("file_name") or "attachment"),
            "source": {"type": "text", "media_type": "text/plain", "data": attachment["extracted_content"]},
        }
        for attachment in _objects(said.get("attachments"))
        if isinstance(attachment.get("extracted_content"), str) and attachment["extracted_content"]
    ]
    joined = "\n".join(str(block.get("text") or "") for block in texts)
    text = joined if joined.strip() else said.get("text")
    text = text if isinstance(text, str) else ""
    if len(texts) == len(blocks) and not documents:
        return text
    kept = blocks or ([{"type": "text", "text": text}] if text else [])
    return [*kept, *documents]
