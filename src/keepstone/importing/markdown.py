"""Folders of Markdown: OKF bundles, basic-memory projects and Obsidian vaults."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from posixpath import basename, dirname, join, normpath
from typing import Any
from urllib.parse import unquote

from keepstone.errors import SourceError
from keepstone.importing.front_matter import parse_yaml, split_front_matter
from keepstone.importing.item import Item, Items, Options, Unread, named, time_of
from keepstone.importing.origin import Origin
from keepstone.model import Record
from keepstone.operations.exporting.parts import join_text

_MARKDOWN = ".md"
_RESERVED = frozenset({"index.md", "log.md"})
_LONGEST = 8 << 20
_MOST_LINKS = 1000
_TIMES = ("timestamp", "created", "created_at", "date", "generated", "updated", "modified")
# All repetitions that could overlap are possessive. Otherwise a note with 60 kB of blanks or brackets takes
# minutes.
_WIKI = re.compile(r"\[\[([^\]\[|#^\n]++)(?:[#^][^\]\[|\n]*+)?(?:\|[^\]\[\n]*+)?\]\]")
_LINK = re.compile(r"\]\(([^()\s#]+\.md)(?:#[^()\s]*)?\)")
_RELATION = re.compile(r"^[ \t]*+[-*] ++([^\[\]\n]*+)\[\[([^\]\n]++)\]\]", re.MULTILINE)
_OBSERVATION = re.compile(r"^[ \t]*+[-*] ++\[([^\]\s][^\]\n]*+)\] ++\S", re.MULTILINE)
_INLINE_TAG = re.compile(
    # A tag may be in any script and ends before punctuation, including Chinese and Japanese punctuation.
    r"(?:^|(?<=\s))#([^\s!-,.:-@\[-^`{-~\u2000-\u206f\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020"
    r"\uff00-\uff0f\uff1a-\uff20\uff5f-\uff65]++)"
)
_FILE_LINK = re.compile(
    r"\]\((?:<([^<>\n]++)>|((?:[^()\s<>]++|\([^()\s<>]*+\))++))[ \t]*+(?:\"[^\"\n]*+\"|'[^'\n]*+')?[ \t]*+\)"
)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*+`", re.DOTALL)
_CHECKBOXES = frozenset(" xX-/>")


def is_okf(origin: Origin) -> bool:
    """Return whether a folder is an OKF bundle, by ``okf_version`` in its index or ``type`` in its files."""
    names = _names(origin)
    if "index.md" in names and "okf_version" in _keys(origin, "index.md"):
        return True
    # Twenty files are enough to recognise a bundle, and a vault may have tens of thousands of notes.
    concepts = [name for name in names if basename(name) not in _RESERVED][:20]
    found = [_keys(origin, name) for name in concepts]
    # Notes of basic-memory have a type, too; their permalink tells them apart from OKF files.
    return bool(found) and all(named(keys.get("type")) and "permalink" not in keys for keys in found)


def is_basic_memory(origin: Origin) -> bool:
    """Return whether one of the first 50 files has a permalink, as notes of basic-memory do."""
    return any("permalink" in _keys(origin, name) for name in _names(origin)[:50])


def is_obsidian(origin: Origin) -> bool:
    """Return whether a folder or archive has Markdown files."""
    return (origin.is_folder or origin.is_zip) and bool(_names(origin))


def _names(origin: Origin) -> list[str]:
    if not (origin.is_folder or origin.is_zip):
        return []
    hidden = (
        name for name in origin.names(_MARKDOWN) if not any(part.startswith(".") for part in name.split("/"))
    )
    return list(hidden)


def _keys(origin: Origin, name: str) -> Mapping[str, Any]:
    try:
        yaml, _ = split_front_matter(origin.read(name, _LONGEST).decode("utf-8", "replace"))
        return {} if yaml is None else parse_yaml(yaml)
    except ValueError:
        return {}


class _Note:
    """One Markdown file."""

    def __init__(self, name: str, text: str, modified: str) -> None:
        self.name = name
        yaml, body = split_front_matter(text.replace("\r\n", "\n"))
        self.body = body.removeprefix("\n")
        self.keys: dict[str, Any] = {}
        self.has_keys = yaml is not None
        self.modified = modified
        self.problem = ""
        if yaml is not None:
            try:
                self.keys = parse_yaml(yaml)
            except ValueError as error:
                self.keys, self.problem = {"frontmatter": yaml}, str(error)

    @property
    def time(self) -> str:
        given = (self.keys.get(key) for key in _TIMES)
        # OKF 0.2 has the time in ``generated.at``.
        found = (time_of(value.get("at") if isinstance(value, dict) else value) for value in given)
        return next((moment for moment in found if moment), self.modified)

    @property
    def tags(self) -> list[str]:
        given = self.keys.get("tags")
        # Obsidian also accepts tags as one string, separated by commas or blanks.
        words = given.replace(",", " ").split() if isinstance(given, str) else given
        return [str(tag).removeprefix("#") for tag in words if tag] if isinstance(words, list) else []


def _notes(origin: Origin) -> Iterator[_Note | Unread]:
    for name in _names(origin):
        try:
            text = origin.read(name, _LONGEST).decode("utf-8-sig")
        except ValueError as error:
            yield Unread(name, f"it is not UTF-8 text of a readable size: {error}")
            continue
        yield _Note(name, text, origin.modified(name))
    yield from origin.refused


def _payload(note: _Note, *used: str) -> Record:
    """Return the front matter's keys that no other field of the entry holds."""
    return {key: value for key, value in note.keys.items() if key not in used and value is not None}


def read_okf(origin: Origin, _: Options) -> Items:
    """Yield the concepts of a bundle; their links to other concepts become links."""
    if not (origin.is_folder or origin.is_zip):
        raise SourceError(f"{origin.path} is a file; an OKF bundle is a folder or a zip archive")
    for note in _notes(origin):
        if isinstance(note, Unread):
            yield note
        elif basename(note.name) not in _RESERVED:
            yield _concept(note, origin.name)


def _concept(note: _Note, session: str) -> Item | Unread:
    kind = named(note.keys.get("type"))
    if note.problem or kind is None:
        return Unread(note.name, note.problem or "its front matter has no type, which OKF requires")
    # A concept from ``keepstone export`` becomes the original entry again, with all of its keys.
    ours = note.keys.get("keepstone")
    if isinstance(ours, dict):
        return exported_item(ours, note.body.removesuffix("\n"), note.name)
    line: Record = {
        "id": note.name.removesuffix(_MARKDOWN),
        "ts": note.time,
        "type": kind,
        "text": note.body.strip() or str(note.keys.get("title") or note.name),
    }
    line |= {"data": data} if (data := _payload(note, "type", "tags", *_TIMES)) else {}
    line |= {"tags": note.tags} if note.tags else {}
    found = (
        normpath(join(dirname(note.name), unquote(path)))
        for path in _LINK.findall(note.body)
        if "://" not in path
    )
    targets = dict.fromkeys(
        # A path out of the bundle does not name a concept.
        path.lstrip("/").removesuffix(_MARKDOWN)
        for path in found
        if not path.startswith("..")
    )
    line |= {"links": [{"to": target, "rel": "links"} for target in targets]} if targets else {}
    return Item(session, line, note.name)


def exported_item(ours: Record, text: str, place: str) -> Item | Unread:
    """Return the entry of an exported section or row, with the text that it has now."""
    rest = dict(ours)
    session = named(rest.pop("session", None))
    try:
        line = join_text(rest, text)
    except ValueError as error:
        return Unread(place, str(error))
    if session is None:
        return Unread(place, "what is kept beside the text names no session")
    # Copy the line through JSON: aliases in YAML make two keys share one list, and YAML keys may be numbers.
    return Item(session, json.loads(json.dumps(line)), place, exported=True)


def read_basic_memory(origin: Origin, _: Options) -> Items:
    """Yield one entry for each note, with its relations as links and its categories as tags.

    A note whose front matter cannot be parsed is left out, as the note's id is in it.
    """
    yield from _linked_notes(origin, "permalink", _relations)


def read_obsidian(origin: Origin, _: Options) -> Items:
    """Yield one entry for each note, with its links to other notes, its properties and tags.

    Front matter that cannot be parsed is reported and kept as text.
    """
    yield from _linked_notes(origin, "", _note_links)


def _linked_notes(origin: Origin, id_key: str, links_of: Any) -> Items:
    if not (origin.is_folder or origin.is_zip):
        raise SourceError(f"{origin.path} is a file; notes are a folder or a zip archive")
    # All notes are read twice, as a link may lead to a later note.
    targets = _targets(origin, id_key)
    for note in _notes(origin):
        if isinstance(note, Unread):
            yield note
            continue
        if not note.body.strip() and not note.keys:
            yield Unread(note.name, "the file is empty")
            continue
        # Imported under its path, the note would get another id once its front matter is repaired, and be
        # stored twice.
        if note.problem and id_key:
            yield Unread(note.name, note.problem)
            continue
        if note.problem:
            yield Unread(note.name, f"{note.problem}; its front matter is kept as text in data.frontmatter")
        title = named(note.keys.get("title")) or basename(note.name).removesuffix(_MARKDOWN)
        kind = named(note.keys.get("type")) or "note"
        line: Record = {
            "id": _id_of(note, id_key),
            "ts": note.time,
            "type": kind,
            "text": note.body.strip() or title,
            "data": {"title": title, "path": note.name} | _payload(note, "title", "type", "tags"),
        }
        tags = [*note.tags, *(_tags_in(note.body))]
        line |= {"tags": list(dict.fromkeys(tags))} if tags else {}
        called = ((rel, _target(targets, names)) for rel, *names in links_of(note))
        # A dict drops duplicates in linear time and keeps the order.
        found = dict.fromkeys((to, rel) for rel, to in called if to not in (None, line["id"]))
        links = [{"to": to, "rel": rel} for to, rel in islice(found, _MOST_LINKS)]
        line |= {"links": links} if links else {}
        if isinstance(note.keys.get("aliases"), list):
            line["aliases"] = [str(alias) for alias in note.keys["aliases"] if alias]
            line["data"].pop("aliases", None)
        yield Item(origin.name, line, note.name)


def _id_of(note: _Note, id_key: str) -> str:
    return named(note.keys.get(id_key)) or note.name.removesuffix(_MARKDOWN)


def _targets(origin: Origin, id_key: str) -> dict[str, str]:
    """Return the id of each note by every name that a link may use, in lower case."""
    found: dict[str, str] = {}
    for note in _notes(origin):
        if isinstance(note, _Note):
            path = note.name.removesuffix(_MARKDOWN)
            aliases = note.keys.get("aliases")
            calls = [path, basename(path), note.keys.get("title"), note.keys.get("permalink")]
            for call in [*calls, *(aliases if isinstance(aliases, list) else [])]:
                if (name := named(call)) is not None:
                    # Obsidian ignores case in names. If two notes have one name, links lead to the first
                    # note.
                    found.setdefault(name.lower(), _id_of(note, id_key))
    return found


def _target(targets: Mapping[str, str], names: list[str]) -> str | None:
    """Return the note's id for the first of the names that is known."""
    return next((targets[key] for name in names if (key := name.strip().lower()) in targets), None)


def _note_links(note: _Note) -> Iterator[tuple[str, ...]]:
    """Yield the links ``[[Other]]`` and ``[x](Other.md)``, with the candidate names of each target."""
    yield from (("links", name) for name in _WIKI.findall(note.body))
    for quoted, plain in _FILE_LINK.findall(note.body):
        path = unquote((quoted or plain).partition("#")[0])
        if path.endswith(_MARKDOWN) and "://" not in path:
            path = path.removesuffix(_MARKDOWN)
            # A setting of Obsidian decides whether paths are relative, absolute or only a name; Obsidian
            # reads all three.
            yield "links", normpath(join(dirname(note.name), path)), path.lstrip("/"), basename(path)


def _relations(note: _Note) -> Iterator[tuple[str, ...]]:
    """Yield the relations of a note: ``- depends on [[Target]]``, and other wiki links."""
    typed = [(rel.strip() or "relates_to", name) for rel, name in _RELATION.findall(note.body)]
    known = {name.strip().lower() for _, name in typed}
    yield from typed
    names = _WIKI.findall(note.body)
    yield from (("links_to", name) for name in names if name.strip().lower() not in known)


def _tags_in(body: str) -> list[str]:
    """Return the tags and the observation categories in a body, outside of code."""
    # A line such as ``#include`` or ``# comment`` in code is not a tag.
    text = _CODE.sub("", body)
    categories = [name for name in _OBSERVATION.findall(text) if name not in _CHECKBOXES]
    # A tag of Obsidian has at least one character that is not a digit, so ``#42`` is not a tag.
    tags = [tag for tag in _INLINE_TAG.findall(text) if not tag.isdigit()]
    return [*tags, *categories]
