"""``export_memory``, and imports of what it wrote."""

from __future__ import annotations

import csv
import json
import stat
import tempfile
from pathlib import Path
from typing import Any

import apsw
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import keepstone
from keepstone.agent import Agent
from keepstone.errors import AgentNotFoundError
from keepstone.home import Home
from keepstone.importing import import_memory
from keepstone.importing.front_matter import split_front_matter
from keepstone.operations.exporting import FORMATS, export_memory, export_session
from keepstone.operations.exporting.parts import join_text, split_text

SUFFIXES = {"ndjson": ".ndjson", "csv": ".csv", "sqlite": ".sqlite", "md": "", "okf": ""}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = keepstone.open(tmp_path / "home", embedder="none")
    session = home.agent("coder").session("main")
    session.add(
        "message", {"role": "user", "content": "Which sign-in?\n\n## Really?"}, id="m", embedding=[3, 4]
    )
    session.add("decision", {"decision": "Use passkeys", "by": "Ada"}, id="d", tags=["auth"], pinned=True)
    home.agent("coder").session("Other/session").add("note", text="Use pnpm", id="n", summary="pnpm")
    home.agent("writer").session("main").add("note", text="Draft")
    return home


def memory(agent: Agent) -> dict[str, list[Any]]:
    return {
        info.id: [entry.as_dict() for entry in agent.session(info.id).entries()] for info in agent.sessions()
    }


def imported(memory: dict[str, list[Any]], source: str) -> dict[str, list[Any]]:
    """Return a memory whose entries say that they were imported, and in nothing else differ."""
    origin = {"by": "import", "via": f"import/{source}"}
    return {name: [line | {"origin": origin} for line in lines] for name, lines in memory.items()}


@pytest.mark.parametrize("name", FORMATS)
def test_an_import_of_an_export_gives_the_same_memory(home: Home, tmp_path: Path, name: str) -> None:
    out = tmp_path / f"out{SUFFIXES[name]}"
    assert export_memory(home, out, agent="coder", format=name) == 3
    result = import_memory(home.agent("copy"), "auto", out)
    assert (result.imported, result.failed) == (3, [])
    assert memory(home.agent("copy")) == imported(memory(home.agent("coder")), result.source)
    assert import_memory(home.agent("coder"), "auto", out).unchanged == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip
NAMES = st.text(min_size=1, max_size=12)
KEYS = st.sampled_from(["role", "content", "text", "line", "at", "session"]) | NAMES
BODIES = st.text(min_size=1, max_size=60) | st.lists(
    st.sampled_from(["", "## x", "<!-- keepstone {", "-->", "---", "a", "\r", '"q",', "=1"]), min_size=1
).map("\n".join)  # fmt: skip
ITEMS = st.fixed_dictionaries(
    {"type": NAMES, "ts": st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")},
    optional={
        "text": BODIES,
        "data": st.dictionaries(KEYS, JSON, max_size=4),
        "tags": st.lists(NAMES, max_size=3),
        "priority": st.floats(0, 1),
        "pinned": st.booleans(),
        "summary": st.text(max_size=20),
        "role": st.sampled_from(["user", "assistant"]),
        "session": JSON,
    },
)  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=10)
@given(st.lists(st.tuples(NAMES, ITEMS), min_size=1, max_size=6))
def test_any_memory_comes_back_from_every_format(name: str, given: list[tuple[str, dict[str, Any]]]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        keepstone.open(Path(folder) / "home", embedder="none", durability="os") as home,
    ):
        for session, item in given:
            if (
                item.get("text")
                or item.get("data")
                or "role" in item
                or ("session" in item and "data" not in item)
            ):
                home.agent("one").session(session).put(item)
        if not home.agents():
            return
        out = Path(folder) / f"out{SUFFIXES[name]}"
        count = export_memory(home, out, agent="one", format=name)
        result = import_memory(home.agent("two"), "auto", out)
        assert (result.imported, result.failed) == (count, [])
        assert [shown(entry) for entry in home.agent("two").iter_entries()] == [
            shown(entry) for entry in home.agent("one").iter_entries()
        ]


def shown(entry: keepstone.Entry) -> tuple[object, ...]:
    head = {
        key: value for key, value in entry.line.items() if key in ("tags", "priority", "pinned", "summary")
    }
    return (entry.session, entry.id, entry.ts, entry.type, entry.text, entry.data, head)


@pytest.mark.parametrize("name", ["md", "okf", "csv"])
def test_a_text_edited_in_an_export_is_imported(home: Home, tmp_path: Path, name: str) -> None:
    out = tmp_path / f"out{SUFFIXES[name]}"
    export_memory(home, out, agent="coder", format=name)
    for file in [out] if out.is_file() else out.rglob("*.md"):
        file.write_text(file.read_text("utf-8").replace("Use pnpm", "Use uv"), "utf-8")
    result = import_memory(home.agent("coder"), "auto", out)
    assert (result.imported, result.unchanged) == (1, 2)
    assert home.agent("coder").get("n").text == "Use uv"


@pytest.mark.parametrize(
    "text", ["=1+1", "+49 30", "-1", "@SUM(1)", "\tx", "'=1", "''-", "'quoted'", "plain"]
)
def test_no_cell_of_a_table_is_a_formula_and_texts_come_back(home: Home, tmp_path: Path, text: str) -> None:
    home.agent("one").session(text).add(text, text=text, id=text)
    out = tmp_path / "out.csv"
    export_memory(home, out, agent="one", format="csv")
    with out.open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []
    import_memory(home.agent("two"), "auto", out)
    assert memory(home.agent("two")) == imported(memory(home.agent("one")), "csv")


def test_all_agents_are_exported_each_into_its_folder(home: Home, tmp_path: Path) -> None:
    assert export_memory(home, tmp_path / "all") == 4
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["coder", "writer"]
    assert import_memory(home.agent("copy"), "auto", tmp_path / "all" / "writer").imported == 1


def test_only_entries_since_a_time_are_exported(home: Home, tmp_path: Path) -> None:
    home.agent("coder").session("main").add("note", text="old", ts="2020-01-01T00:00:00Z")
    assert export_memory(home, tmp_path / "new", agent="coder", since="2021-01-01") == 3


def test_an_okf_bundle_is_as_its_specification_asks(home: Home, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    export_memory(home, bundle, agent="coder", format="okf")
    for file in bundle.rglob("*.md"):
        head, _ = split_front_matter(file.read_text("utf-8"))
        keys: Any = yaml.safe_load(head) if head is not None else None
        if file.name == "index.md":
            assert keys == ({"okf_version": "0.2"} if file.parent == bundle else None)
        else:
            assert isinstance(keys["type"], str)
            assert keys["type"]
            assert keys["description"]
            assert str(keys["generated"]["at"]).endswith("Z")
            assert keys["generated"]["by"]
    listed = (bundle / "main" / "index.md").read_text("utf-8")
    assert all(f"({file.name})" in listed for file in (bundle / "main").glob("0*.md"))


def test_an_okf_bundle_says_who_wrote_each_entry(home: Home, tmp_path: Path) -> None:
    session = home.agent("coder").session("said")
    session.add("message", {"role": "user", "content": "Hi", "speaker": "Ada"}, id="s")
    session.add("message", {"role": "assistant", "content": "Hello"}, id="t")
    session.update("t", text="Hello again")
    export_memory(home, tmp_path / "out", agent="coder", format="okf")
    written = {}
    for file in (tmp_path / "out").rglob("0*.md"):
        keys: Any = yaml.safe_load(split_front_matter(file.read_text("utf-8"))[0] or "")
        written[keys["keepstone"].get("line", keys["keepstone"])["id"]] = keys["generated"]
    us = f"coder/keepstone-{keepstone.__version__}"
    by = {name: generated["by"] for name, generated in written.items()}
    assert by == {"m": "human:user", "s": "human:Ada", "t": us, "d": us, "n": us}
    assert written["t"]["at"] == session.entries()[1].line["modified"]


def test_a_markdown_export_reads_well(home: Home, tmp_path: Path) -> None:
    export_memory(home, tmp_path / "out", agent="coder", format="md")
    text = (tmp_path / "out" / "main.md").read_text("utf-8")
    _, body = split_front_matter(text)
    shown = [line for line in body.split("\n") if line and not line.startswith("<!--")]
    assert shown[0] == "# main"
    assert shown[1].startswith("## user, message, 20")
    assert shown[2] == "Which sign-in?"


def test_an_sqlite_export_can_be_queried(home: Home, tmp_path: Path) -> None:
    export_memory(home, tmp_path / "out.sqlite", agent="coder", format="sqlite")
    connection = apsw.Connection(str(tmp_path / "out.sqlite"))
    found = list(connection.execute("SELECT id, data ->> 'by' FROM entries WHERE type = 'decision'"))
    assert found == [("d", "Ada")]


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_keeps_which_life_of_its_id_an_entry_has(home: Home, tmp_path: Path, name: str) -> None:
    home.agent("coder").delete("n")
    home.agent("coder").restore("n")
    assert home.agent("coder").get("n").line["life"] == 2
    out = tmp_path / f"out{SUFFIXES[name]}"
    export_memory(home, out, agent="coder", format=name)
    texts = [out.read_bytes()] if out.is_file() else [file.read_bytes() for file in out.rglob("*.md")]
    assert b"life" in b"".join(texts)
    import_memory(home.agent("copy"), "auto", out)
    assert home.agent("copy").get("n").text == "Use pnpm"
    assert import_memory(home.agent("coder"), "auto", out).unchanged == 3


def test_an_output_that_exists_is_refused_without_force(home: Home, tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"
    out.write_text("mine", "utf-8")
    with pytest.raises(FileExistsError, match="--force"):
        export_memory(home, out, agent="coder")
    assert out.read_text("utf-8") == "mine"
    assert export_memory(home, out, agent="coder", force=True) == 3
    assert json.loads(out.read_text("utf-8").splitlines()[0])["session"]


@pytest.mark.parametrize("name", ["ndjson", "md"])
def test_an_output_that_cannot_be_replaced_is_kept(
    home: Home, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError(28, "No space left on device")

    out = tmp_path / "out"
    export_memory(home, out, agent="coder", format=name)
    before = sorted(file.read_bytes() for file in [out, *out.rglob("*")] if file.is_file())
    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(keepstone.StoreError):
        export_memory(home, out, agent="coder", format=name, force=True)
    [kept] = [path for path in tmp_path.iterdir() if path.name.endswith("out") or path.suffix == ".old"]
    assert sorted(file.read_bytes() for file in [kept, *kept.rglob("*")] if file.is_file()) == before


@pytest.mark.parametrize("name", ["ndjson", "md"])
def test_a_broken_link_is_replaced_by_the_output(home: Home, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    out.symlink_to(tmp_path / "gone")
    assert export_memory(home, out, agent="coder", format=name, force=True) == 3
    assert (out.is_symlink(), out.exists(), (tmp_path / "gone").exists()) == (False, True, False)


@pytest.mark.parametrize("name", FORMATS)
def test_a_failed_export_leaves_nothing(
    home: Home, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> Any:
        yield next(iter(home.agent("writer").entries()))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Agent, "iter_entries", failing)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(keepstone.StoreError):
        export_memory(home, tmp_path / "out", agent="coder", format=name)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("place", ["home/inside", "."])
def test_an_export_into_or_over_the_home_is_refused(home: Home, tmp_path: Path, place: str) -> None:
    with pytest.raises(ValueError, match="contain each other"):
        export_memory(home, tmp_path / place, agent="coder", force=True)
    assert home.agent("coder").count() == 3


def test_what_cannot_be_exported_is_named(home: Home, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown format 'json'"):
        export_memory(home, tmp_path / "x", format="json")
    with pytest.raises(AgentNotFoundError, match="nobody"):
        export_memory(home, tmp_path / "x", agent="nobody")
    with pytest.raises(ValueError, match="standard output"):
        export_memory(home, "-", agent="coder", format="okf")


def test_exported_files_can_only_be_read_by_their_owner(home: Home, tmp_path: Path) -> None:
    for name in FORMATS:
        export_memory(home, tmp_path / name, agent="coder", format=name)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) & 0o077 == 0


@given(st.dictionaries(st.sampled_from(["id", "text", "data", "content", "at", "line"]), JSON))
def test_a_line_is_what_its_parts_are_joined_to(line: dict[str, Any]) -> None:
    rest, text = split_text(line)
    assert join_text(rest, text or "") == line


def test_one_session_is_exported_alone(home: Home, tmp_path: Path) -> None:
    session = home.agent("coder").session("main")
    assert export_session(session, home.root, tmp_path / "out") == 2
    assert [json.loads(line)["id"] for line in (tmp_path / "out").read_text().splitlines()] == ["m", "d"]


def test_a_missing_session_is_not_exported(home: Home, tmp_path: Path) -> None:
    with pytest.raises(keepstone.SessionNotFoundError):
        export_session(home.agent("coder").session("gone"), home.root, tmp_path / "out")
    assert not (tmp_path / "out").exists()
