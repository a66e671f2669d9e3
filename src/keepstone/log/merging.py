"""Updates as later lines of an entry: a put or a patch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keepstone.log.line import ENVELOPE, RESERVED, body_of, payload_of
from keepstone.log.where import same
from keepstone.model import Record

_NEVER_FLAT = {*ENVELOPE, *RESERVED, "data"}


def merged(line: Record, change: Mapping[str, Any]) -> Record:
    """Return the keys of the later line that applies a checked change to an entry; none if nothing changes.

    ``change`` may have ``type``, ``text``, ``data`` or ``data_merge``, and reserved keys, which None removes.

    Examples:
        >>> merged({"id": "a", "type": "note", "text": "Hi", "data": {"n": 1}}, {"text": "Ho"})
        {'text': 'Ho', 'data': {'n': 1}}

    Raises:
        ValueError: Neither text nor payload would be left.
    """
    old, kind = body_of(line), change.get("type", line["type"])
    body = _body(line, old, change)
    reserved = {key: value for key, value in change.items() if key in RESERVED}
    if same(body, old) and kind == line["type"]:
        return {key: value for key, value in reserved.items() if not same(line.get(key), value)}
    check_content(body)
    # A put without a type keeps the entry's type, so an unchanged type is left out.
    return ({} if kind == line["type"] else {"type": kind}) | body | reserved


def _body(line: Record, old: Record, change: Mapping[str, Any]) -> Record:
    is_flat = not isinstance(old.get("data"), dict)
    beside = {key: old[key] for key in ("text",) if key in old} if is_flat else old
    body = old
    if "data" in change:
        body = beside | {"data": change["data"]}
    elif "data_merge" in change:
        payload = payload_of(line)
        removed = {key for key, value in change["data_merge"].items() if value is None}
        new = {key: value for key, value in (payload | change["data_merge"]).items() if key not in removed}
        if not is_flat or not payload:
            body = beside | {"data": new}
        else:  # A flat payload has its text among its keys, and must not have keys of the envelope.
            body = new if new.keys().isdisjoint(_NEVER_FLAT) else {"data": new}
    if "text" in change:
        # In a line with a flat payload, the text would become one of the payload's keys.
        body = body if not body or "text" in body or "data" in body else {"data": body}
        body = body | {"text": change["text"]}
    return body


def check_content(record: Record) -> None:
    """Raise ValueError unless a record has a text or a payload that is not empty."""
    if not (record.get("text") or payload_of(record)):
        raise ValueError("an entry needs a text or a payload that is not empty: give text='…' or data={…}")
