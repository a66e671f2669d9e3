"""JSON lines and CSV, with and without a mapping."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.importing.sources import jsonl

from keepstone.agent import Agent
from keepstone.importing import SourceError, import_memory

MAPPING = {"text": "body", "ts": "date", "role": "author", "id": "uuid"}


def test_columns_of_a_table_are_mapped(agent: Agent, tmp_path: Path) -> None:
    table = tmp_path / "chat.csv"
    table.write_text(
        'uuid,date,author,body,mood\nx1,2026-01-11 14:31:00,user,"Hello,\nthere",good\nx2,,assistant,Hi,\n',
        "utf-8",
    )
    result = import_memory(agent, "csv", table, mapping=MAPPING)
    assert (result.imported, result.failed) == (2, [])
    first, second = agent.session("chat").entries()
    assert (first.id, first.ts.isoformat()) == ("x1", "2026-01-11T14:31:00+00:00")
    assert first.data == {"role": "user", "content": "Hello,\nthere", "mood": "good"}
    assert (second.text, second.ts) == ("assistant: Hi", first.ts)


def test_keys_of_json_lines_are_mapped(agent: Agent, tmp_path: Path) -> None:
    source = jsonl(
        tmp_path / "x.jsonl", [{"uuid": 7, "date": 1768141860, "author": "ada", "body": "Hi", "n": [1]}]
    )
    import_memory(agent, "jsonl", source, mapping=MAPPING)
    entry = agent.get("7")
    assert (entry.data, entry.ts.isoformat()) == (
        {"role": "ada", "content": "Hi", "n": [1]},
        "2026-01-11T14:31:00+00:00",
    )


def test_json_lines_without_a_mapping_are_log_lines(agent: Agent, tmp_path: Path) -> None:
    line = {"id": "d", "ts": "2026-01-11T14:31:00Z", "type": "decision", "data": {"by": "Ada"}, "tags": ["x"]}
    import_memory(agent, "jsonl", jsonl(tmp_path / "x.jsonl", [line, {"role": "user", "content": "Hi"}]))
    entry = agent.get("d")
    assert (entry.type, entry.data, entry.tags) == ("decision", {"by": "Ada"}, ("x",))
    assert agent.session("x").messages() == [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_tables_delimiter_is_recognised(agent: Agent, tmp_path: Path, delimiter: str) -> None:
    rows = [["id", "ts", "text"], ["a", "2026-01-11T14:31:00Z", "Use pnpm"]]
    table = tmp_path / "x.csv"
    table.write_text("\n".join(delimiter.join(row) for row in rows), "utf-8-sig")
    assert import_memory(agent, "auto", table).imported == 1
    assert agent.get("a").text == "Use pnpm"


def test_a_row_that_does_not_fit_is_listed(agent: Agent, tmp_path: Path) -> None:
    table = tmp_path / "x.csv"
    table.write_text("id,text\na,fine\nb,too,many\nc,fine\n", "utf-8")
    result = import_memory(agent, "csv", table)
    assert (result.imported, [one.place for one in result.failed]) == (2, ["x.csv:3"])


@pytest.mark.parametrize(
    ("content", "mapping", "reason"),
    [
        (b"id,text\na,b\n", {"text": "body"}, "no column 'body'"),
        (b"id,text\na,\xff\n", {}, "not UTF-8"),
        (b"\n\n", {}, "no heading"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(
    agent: Agent, tmp_path: Path, content: bytes, mapping: dict[str, str], reason: str
) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(SourceError, match=reason):
        import_memory(agent, "csv", tmp_path / "x.csv", mapping=mapping)
    assert agent.sessions() == []


def test_an_unknown_field_of_a_mapping_is_refused(agent: Agent, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown field 'txt'"):
        import_memory(agent, "jsonl", jsonl(tmp_path / "x.jsonl", [{}]), mapping={"txt": "body"})
