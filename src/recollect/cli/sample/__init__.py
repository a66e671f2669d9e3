"""The sample of ``recollect demo``: three months of a small team and its assistant, made up for this purpose.

A ferry line replaces its booking system. Each ``.ndjson`` file here is one
session in the format of the log, and ``runbook.md`` is a file of the agent's.
"""

from __future__ import annotations

import json
from importlib.resources import files

from recollect.model import Record

SESSIONS = ("kickoff", "car-deck", "search", "boarding-pass", "payments", "release")
"""The sessions in the order in which they took place."""
FILE = "runbook.md"
"""The file that the agent keeps."""


def turns(session: str) -> list[Record]:
    """Return what was said and noted in a session, as items for ``Session.add_many``."""
    text = (files(__name__) / f"{session}.ndjson").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def file_text() -> str:
    """Return what the agent wrote into its file."""
    return (files(__name__) / FILE).read_text(encoding="utf-8")
