"""Write the home of format 1 beside this file: ``python tests/store/formats/make.py``.

Never run it again for a format that was released: what old versions wrote is what the test reads.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import keepstone

HERE = Path(__file__).parent
LAYOUTS = ("default", "bmad", "cache")


def ticking() -> Iterator[datetime]:
    moment = datetime(2026, 1, 11, 14, 31, tzinfo=UTC)
    while True:
        yield moment
        moment += timedelta(minutes=1)


def make(layout: str, root: Path) -> None:
    ticks = ticking()
    with keepstone.open(root, layout=layout, embedder="none", clock=lambda: next(ticks)) as home:
        agent = home.agent("default")
        session = agent.session("café/main")
        session.add("message", {"role": "user", "content": "Which sign-in?"}, id="m1")
        session.add_many(
            [
                {"id": "flat", "type": "event", "role": "assistant", "content": "Let me look"},
                {
                    "id": "d1",
                    "type": "decision",
                    "data": {"decision": "Use OAuth"},
                    "tags": ["auth"],
                    "pinned": True,
                },
            ]
        )
        session.add("note", text="With a vector", id="v1", embedding=[3, 4], summary="vector")
        session.update("d1", data={"decision": "Use passkeys"}, priority=0.9)
        session.add("note", text="Deleted", id="gone")
        session.delete("gone")
        session.compact()
        session.add("fact", text="The lease ends in 2027", id="f1")
        agent.supersede("f1", {"id": "f2", "text": "The lease ends in 2029"})
        session.count({"m1": 2})
        agent.session("dropped").add("note", text="x")
        agent.session("dropped").drop()
        agent.files.write("plans/today.md", "Write tests\n")
        agent.session("torn").add("note", text="whole", id="w")
    with next(root.rglob("torn.*json*")).open("ab") as file:
        file.write(b'{"id":"t1","ts":"2026-01-12T00:00:00Z","type":"note","text":"torn","batch":[1,2]}\n')
        file.write(b'not json\n{"unfin')


def state(layout: str, root: Path) -> object:
    """Return what the home says, as JSON."""
    with keepstone.open(root, layout=layout, embedder="none") as home:
        agent = home.agent("default")
        return {
            "entries": {
                info.id: [
                    entry.as_dict() for entry in agent.session(info.id).entries(include_superseded=True)
                ]
                for info in agent.sessions()
            },
            "history": [[one.text, one.deleted] for name in ("d1", "gone") for one in agent.history(name)],
            "as_of": [
                record["id"] for record in agent.session("café/main").records(as_of="2026-01-11T14:36:30Z")
            ],
            "dropped": agent.dropped_sessions(),
            "files": {path: agent.files.read(path) for path in agent.files.list()},
        }


if __name__ == "__main__":
    for name in LAYOUTS:
        place = HERE / "1" / name
        shutil.rmtree(place, ignore_errors=True)
        make(name, place)
        shutil.rmtree(place / ".index")
        for lock in [*place.rglob("*.lock"), *place.rglob(".keepstone.lock")]:
            lock.unlink(missing_ok=True)
        copy = HERE / "copy"
        shutil.copytree(place, copy)
        said = json.dumps(state(name, copy), indent=1, sort_keys=True, ensure_ascii=False)
        (HERE / "1" / f"{name}.json").write_text(said + "\n", "utf-8")
        shutil.rmtree(copy)
