"""Data exports of ChatGPT and Claude: conversations, their branches, and what of a message is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.importing.sources import auto, chatgpt, claude, entries, items, read, reasons, zipped

from keepstone.agent import Agent
from keepstone.importing import SourceError, import_memory
from keepstone.importing.chat_exports import is_chatgpt, is_claude, read_chatgpt, read_claude
from keepstone.importing.item import Item
from keepstone.importing.origin import Origin


@pytest.mark.parametrize("form", ["zip", "folder", "file"])
def test_the_current_branch_of_a_chatgpt_export(agent: Agent, tmp_path: Path, form: str) -> None:
    (tmp_path / "x").mkdir()
    source = {
        "zip": tmp_path / "x.zip",
        "folder": tmp_path / "x",
        "file": tmp_path / "x" / "conversations.json",
    }[form]
    (tmp_path / "x" / "conversations.json").write_text(json.dumps(chatgpt()), "utf-8")
    zipped(tmp_path / "x.zip", {"conversations.json": json.dumps(chatgpt()), "user.json": "{}"})
    assert auto(agent, source, "chatgpt").imported == 2
    found = agent.session("c1").entries()
    assert [(entry.id, entry.data["role"]) for entry in found] == [("m1", "user"), ("m2", "assistant")]
    assert found[0].data == {"role": "user", "content": "Which sign-in?"}
    assert found[0].ts.isoformat() == "2026-01-11T14:31:00.500000+00:00"


def test_all_branches_of_a_chatgpt_export_are_linked(agent: Agent, tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"conversations.json": json.dumps(chatgpt())})
    assert auto(agent, source, "chatgpt", branches=True).imported == 3
    assert [entry.id for entry in agent.related("m1", "reply_to")] == ["old", "m2"]


@pytest.mark.parametrize(("source", "made"), [("chatgpt", chatgpt), ("claude", claude)])
def test_what_is_no_conversation_is_one_failure(
    agent: Agent, tmp_path: Path, source: str, made: Callable[[], list[Any]]
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([None, *made(), 7, "x"]))
    result = auto(agent, path, source)
    assert result.imported >= 2
    assert [one.place.rpartition(" ")[2] for one in result.failed] == ["1", "3", "4"]


def test_a_chatgpt_tree_with_a_circle_ends(agent: Agent, tmp_path: Path) -> None:
    made = chatgpt()
    made[0]["mapping"]["m1"]["parent"] = "m2"
    source = zipped(tmp_path / "x.zip", {"conversations.json": json.dumps(made)})
    assert import_memory(agent, "chatgpt", source).imported == 2
    import_memory(agent, "chatgpt", source, branches=True)
    assert agent.count() == 3


def test_messages_of_a_claude_export(agent: Agent, tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"conversations.json": json.dumps(claude()), "users.json": "[]"})
    assert auto(agent, source, "claude").imported == 3
    found = entries(agent, "conversation-1")
    assert found["u1"].data == {"role": "user", "content": "Which sign-in?"}
    assert found["u2"].data["content"][1]["name"] == "search"
    assert "Use passkeys" in json.dumps(found["u3"].data)
    assert found["u3"].ts.isoformat() == "2026-01-11T14:33:00+00:00"


def conversations(path: Path, made: list[Any]) -> Path:
    (path / "conversations.json").write_text(json.dumps(made), "utf-8")
    return path / "conversations.json"


def shown(tmp_path: Path, content: dict[str, Any], **more: Any) -> list[str]:
    """Return the texts of a ChatGPT conversation with one message of this content."""
    said = {"author": {"role": "user"}, "content": content, **more}
    made = [{"id": "c", "mapping": {"m": {"message": said}}, "current_node": "m"}]
    return [item.line["data"]["content"] for item in items(read_chatgpt, conversations(tmp_path, made))]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"parts": ["one", "two"]}, "one\ntwo"),
        ({"parts": [{"text": "said aloud"}]}, "said aloud"),
        (
            {"parts": [{"asset_pointer": "file://x", "content_type": "image_asset_pointer"}, "See"]},
            "[image_asset_pointer: file://x]\nSee",
        ),
        ({"text": "code"}, "code"),
        ({"result": "found"}, "found"),
        ({"thoughts": [{"content": "first"}, {"summary": "then"}]}, "first\nthen"),
    ],
)
def test_each_kind_of_content_of_chatgpt_has_a_text(tmp_path: Path, content: Any, text: str) -> None:
    assert shown(tmp_path, content) == [text]


@pytest.mark.parametrize("content", [{"parts": [""]}, {"parts": [7]}, {"parts": []}, {"content_type": "x"}])
def test_a_message_without_a_text_is_left_out(tmp_path: Path, content: Any) -> None:
    assert shown(tmp_path, content) == []


def test_a_message_that_chatgpt_never_showed_is_left_out(tmp_path: Path) -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    assert shown(tmp_path, {"parts": ["You are ChatGPT"]}, metadata=hidden) == []


def test_a_message_of_an_unknown_form_leaves_the_others(tmp_path: Path) -> None:
    made = chatgpt()
    made[0]["mapping"]["m1"]["message"] = {"author": None}
    found = read(read_chatgpt, conversations(tmp_path, made))
    ((place, reason),) = reasons(found)
    assert place == "conversations.json: conversation 1, message m1"
    assert reason.startswith("it is not of the known form")
    assert len(found) == 2


def test_an_answer_to_an_unreadable_message_has_no_link(tmp_path: Path) -> None:
    made = chatgpt()
    made[0]["mapping"]["m1"]["message"] = {"author": {}, "content": None}
    found = read(read_chatgpt, conversations(tmp_path, made), branches=True)
    assert len(reasons(found)) == 1
    assert [item.line.get("links") for item in found if isinstance(item, Item)] == [None, None]


def test_the_title_is_an_alias_of_the_first_message(tmp_path: Path) -> None:
    for reader, made in ((read_chatgpt, chatgpt()), (read_claude, claude())):
        found = items(reader, conversations(tmp_path, made))
        assert [item.line.get("aliases") for item in found] == [["Sign-in"], *[None] * (len(found) - 1)]


def test_without_a_current_message_all_branches_are_read(tmp_path: Path) -> None:
    made = [chatgpt()[0] | {"current_node": None}]
    found = items(read_chatgpt, conversations(tmp_path, made))
    assert [item.line["id"] for item in found] == ["m1", "old", "m2"]


def test_a_conversation_without_an_id_is_named(tmp_path: Path) -> None:
    chats = read(read_chatgpt, conversations(tmp_path, [{"mapping": {}}]))
    assert reasons(chats) == [
        ("conversations.json: conversation 1", "it has no id, or no mapping of messages")
    ]
    chats = read(read_claude, conversations(tmp_path, [{"uuid": "c"}]))
    assert reasons(chats) == [("conversations.json: conversation 1", "it has no uuid, or no chat_messages")]


def branched() -> list[dict[str, Any]]:
    said = [
        {"uuid": "u1", "sender": "human", "text": "Hi", "parent_message_uuid": "root"},
        {"uuid": "old", "sender": "assistant", "text": "Old", "parent_message_uuid": "u1"},
        {"uuid": "new", "sender": "assistant", "text": "New", "parent_message_uuid": "u1"},
    ]
    return [{"uuid": "c", "chat_messages": said, "current_leaf_message_uuid": "new"}]


@pytest.mark.parametrize(("branches", "ids"), [(False, ["u1", "new"]), (True, ["u1", "old", "new"])])
def test_an_answer_of_claude_that_was_made_again_is_in_a_branch(
    tmp_path: Path, ids: list[str], *, branches: bool
) -> None:
    found = items(read_claude, conversations(tmp_path, branched()), branches=branches)
    assert [item.line["id"] for item in found] == ids


def test_a_message_of_claude_without_its_id_is_named(tmp_path: Path) -> None:
    made = branched()
    made[0]["chat_messages"].insert(0, {"text": "lost"})
    found = read(read_claude, conversations(tmp_path, made))
    assert reasons(found) == [
        ("conversations.json: conversation 1, message 1", "it is not an object with a uuid")
    ]


def test_a_stopped_answer_of_claude_is_left_out(tmp_path: Path) -> None:
    made = branched()
    made[0]["chat_messages"][2]["text"] = ""
    assert [item.line["id"] for item in items(read_claude, conversations(tmp_path, made))] == ["u1"]


def test_the_form_of_the_first_conversation_tells_the_service(tmp_path: Path) -> None:
    for made, expected in (
        (chatgpt(), (True, False)),
        ([None, *claude()], (False, True)),
        ([], (False, False)),
    ):
        origin = Origin(conversations(tmp_path, made))
        assert (is_chatgpt(origin), is_claude(origin)) == expected


def test_files_of_an_archive_that_are_not_conversations_are_not_read(tmp_path: Path) -> None:
    members = {f"export/{name}": json.dumps(chatgpt()) for name in ("conversations-1.json", "user.json")}
    assert len(items(read_chatgpt, zipped(tmp_path / "x.zip", members))) == 2


def test_an_archive_without_conversations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"x\.zip has no conversations\.json"):
        read(read_chatgpt, zipped(tmp_path / "x.zip", {"user.json": "{}"}))
