import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.log import mentioned_ids
from keepstone.log.line import parse
from keepstone.log.mentioned_ids import may_mention


def mentions_any(path: Path, raw: bytes, *ids: str) -> bool:
    path.write_bytes(raw)
    fd = os.open(path, os.O_RDONLY)
    try:
        return may_mention(fd, 0, len(raw), ids)
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":"a","deleted":true}',
        b'{"text":"x","id" : "a"}',
        b'{"id":"\\u0061","text":"x"}',
        b'{"\\u0069d":"a"}',
        b'{"id":"b","id":"a"}',
        b'{"text":"two \\"quotes\\"","id":"a"}',
    ],
)
@pytest.mark.parametrize("others", [(), tuple(f"n{n}" for n in range(20))], ids=["one id", "many ids"])
def test_line_of_an_id_is_noticed(tmp_path: Path, line: bytes, others: tuple[str, ...]) -> None:
    raw = b'{"id":"b","text":"x"}\n{"id":"damaged\n' + line + b"\n"
    assert mentions_any(tmp_path / "log", raw, "a", *others)


@pytest.mark.parametrize("block", [1, 7, 64])
def test_line_of_an_id_is_noticed_wherever_a_block_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(mentioned_ids, "_BLOCK", block)
    raw = b'{"id":"b","text":"two\\nlines"}\n' * 9 + b'{"id":"walnut","text":"x"}\n' + b'{"id":"c"}\n' * 9
    assert mentions_any(tmp_path / "log", raw, "walnut")
    assert not mentions_any(tmp_path / "log", raw, "walnu")


def test_a_line_too_long_to_be_read_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    os.truncate(path, 1 << 40)
    with path.open("rb") as file:
        assert may_mention(file.fileno(), 0, 1 << 40, ["walnut"])


def test_lines_of_other_ids_mention_none(tmp_path: Path) -> None:
    raw = b'{"id":"b","text":"a text\\n"}\n{"id":"damaged\n{"id":"aa","text":"x"}\n'
    assert not mentions_any(tmp_path / "log", raw, "a", "text of")


@given(st.lists(st.dictionaries(st.sampled_from(["id", "text"]), st.text()) | st.text(), max_size=4))
def test_no_id_of_any_line_is_missed(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, str] | str]
) -> None:
    lines = [json.dumps(one) if isinstance(one, dict) else one for one in records]
    raw = "\n".join(lines).encode("utf-8", "surrogatepass")
    ids = [found["id"] for line in raw.split(b"\n") if (found := parse(line)) and found.get("id")]
    for entry_id in ids:
        assert mentions_any(tmp_path_factory.getbasetemp() / "mentions", raw, entry_id)
