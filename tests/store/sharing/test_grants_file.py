"""The file of an agent's grants, in a folder."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from keepstone.filesystem.layout import LAYOUTS
from keepstone.store.sharing.grants import DamagedGrantsError, Grant
from keepstone.store.sharing.grants_file import GrantsFile, findings, forget_grants_to
from keepstone.testing.clock import START

LAYOUT = LAYOUTS["default"]
TO_CODER = Grant("coder", "read", ts=START)
TO_OTHER = Grant("other", "write", types=("note",), ts=START)
LATER = Grant("coder", "write", ts=START + timedelta(days=1))


@pytest.fixture
def file(tmp_path: Path) -> GrantsFile:
    return GrantsFile(tmp_path, LAYOUT, "team", durable=False)


def fill(file: GrantsFile, *grants: Grant) -> None:
    for grant in grants:
        file.add(grant, drop_later=False)


def test_a_missing_file_grants_nothing_and_is_not_made(file: GrantsFile) -> None:
    assert (file.read(), file.is_there(), file.path.parent.exists()) == ([], False, False)


def test_grants_come_back_in_the_order_of_writing(file: GrantsFile) -> None:
    fill(file, LATER, TO_CODER, TO_OTHER)
    assert (file.read(), file.is_there()) == ([LATER, TO_CODER, TO_OTHER], True)


def test_a_revocation_drops_later_grants_to_the_same_agent(file: GrantsFile) -> None:
    fill(file, LATER, TO_OTHER)
    file.add(TO_CODER, drop_later=True)
    assert file.read() == [TO_OTHER, TO_CODER]


def test_a_change_that_raises_leaves_the_file(file: GrantsFile) -> None:
    fill(file, TO_CODER)
    with pytest.raises(ZeroDivisionError):
        file.revise(lambda _: b"%d" % (1 // 0))
    assert file.read() == [TO_CODER]


def test_a_change_that_changes_nothing_writes_nothing(file: GrantsFile) -> None:
    fill(file, TO_CODER)
    before = file.path.stat()
    file.revise(lambda text: text)
    assert file.path.stat().st_ino == before.st_ino


def test_only_grants_to_the_forgotten_agent_go(file: GrantsFile) -> None:
    fill(file, TO_CODER, TO_OTHER, LATER)
    file.forget("coder")
    assert file.read() == [TO_OTHER]


def test_forgetting_leaves_damage_where_it_is(file: GrantsFile) -> None:
    fill(file, TO_CODER)
    with file.path.open("ab") as raw:
        raw.write(b"no grant\n")
    file.forget("coder")
    assert file.path.read_bytes() == b"no grant\n"
    with pytest.raises(DamagedGrantsError, match="line 1 is not a grant"):
        file.read()


def test_forgetting_makes_no_file(file: GrantsFile) -> None:
    file.forget("coder")
    assert not file.path.parent.exists()


def test_a_folder_in_its_place_grants_nothing(file: GrantsFile) -> None:
    file.path.mkdir(parents=True)
    with pytest.raises(DamagedGrantsError):
        file.read()
    assert not file.is_there()


def test_a_hard_link_grants_nothing(file: GrantsFile, tmp_path: Path) -> None:
    fill(file, TO_CODER)
    (tmp_path / "other").hardlink_to(file.path)
    with pytest.raises(DamagedGrantsError, match="is a hard link; put a copy in its place"):
        file.read()


# All agents of a home


def test_an_agent_that_goes_loses_what_all_others_granted(tmp_path: Path) -> None:
    files = [GrantsFile(tmp_path, LAYOUT, agent, durable=False) for agent in ("team", "second")]
    for file in files:
        LAYOUT.sessions_folder(tmp_path, file.path.parent.parent.name).mkdir(parents=True)
        fill(file, TO_CODER, TO_OTHER)
    forget_grants_to(tmp_path, LAYOUT, "coder")
    assert [file.read() for file in files] == [[TO_OTHER]] * 2


def test_the_doctor_names_a_damaged_file_with_its_agent(file: GrantsFile, tmp_path: Path) -> None:
    LAYOUT.sessions_folder(tmp_path, "team").mkdir(parents=True)
    fill(file, TO_CODER)
    assert list(findings(tmp_path, LAYOUT)) == []
    file.path.write_bytes(b"no grant\n")
    (finding,) = findings(tmp_path, LAYOUT)
    assert (finding.level, finding.agent) == ("error", "team")
    assert finding.message.startswith("damaged, so it grants nothing: line 1 is not a grant")


def test_a_layout_of_one_agent_has_no_grants(tmp_path: Path) -> None:
    layout = next(layout for layout in LAYOUTS.values() if not layout.has_agents)
    forget_grants_to(tmp_path, layout, "coder")
    assert list(findings(tmp_path, layout)) == []
    with pytest.raises(ValueError, match="agent"):
        GrantsFile(tmp_path, layout, "default")
