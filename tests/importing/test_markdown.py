"""Folders of Markdown: notes with properties, tags and links."""

from __future__ import annotations

from pathlib import Path

from tests.importing.sources import auto, entries

from keepstone.agent import Agent
from keepstone.importing import import_memory


def files(folder: Path, contents: dict[str, str]) -> Path:
    for name, text in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_notes_of_an_obsidian_vault_keep_properties_tags_and_links(agent: Agent, tmp_path: Path) -> None:
    vault = files(
        tmp_path / "vault",
        {
            "Sign-in.md": "---\ntags: [auth, web]\ncreated: 2026-01-11\naliases:\n  - Login\n---\n"
            "Use [[Passkeys|keys]] #now\n",
            "deep/Passkeys.md": "Better than passwords: see [[Login]] and [[Nowhere]].\n",
            ".obsidian/workspace.md": "not a note",
            "empty.md": "",
        },
    )
    result = auto(agent, vault, "obsidian")
    assert (result.imported, [one.place for one in result.failed]) == (2, ["empty.md"])
    found = entries(agent, "vault")
    assert found["Sign-in"].tags == ("auth", "web", "now")
    assert found["Sign-in"].ts.isoformat() == "2026-01-11T00:00:00+00:00"
    assert [link["to"] for link in found["Sign-in"].links] == ["deep/Passkeys"]
    assert [link["to"] for link in found["deep/Passkeys"].links] == ["Sign-in"]


def test_notes_of_basic_memory_keep_permalinks_and_relations(agent: Agent, tmp_path: Path) -> None:
    project = files(
        tmp_path / "main",
        {
            "Coffee.md": "---\ntitle: Coffee\ntype: note\npermalink: main/coffee\n---\n# Coffee\n\n"
            "- [method] Pour over #brewing (best)\n- [ ] buy beans\n\n- requires [[Grinder]]\n",
            "Grinder.md": "---\ntitle: Grinder\ntype: tool\npermalink: main/grinder\n---\nBurr grinder\n",
        },
    )
    assert auto(agent, project, "basic-memory").imported == 2
    coffee = entries(agent, "main")["main/coffee"]
    assert coffee.links == ({"to": "main/grinder", "rel": "requires"},)
    assert set(coffee.tags) == {"brewing", "method"}
    assert entries(agent, "main")["main/grinder"].type == "tool"


def test_concepts_of_an_okf_bundle(agent: Agent, tmp_path: Path) -> None:
    bundle = files(
        tmp_path / "bundle",
        {
            "index.md": '---\nokf_version: "0.2"\n---\n# Tables\n',
            "tables/orders.md": "---\ntype: Table\ntitle: Orders\ntags: [sales]\n"
            "timestamp: 2026-01-11T14:31:00Z\n---\n"
            "Joins [customers](customers.md).\n",
            "tables/customers.md": "---\ntype: Table\ngenerated: {by: x, at: 2026-01-12T00:00:00Z}\n---\n"
            "One row\n",
            "broken.md": "no front matter",
        },
    )
    result = auto(agent, bundle, "okf")
    assert (result.imported, [one.place for one in result.failed]) == (2, ["broken.md"])
    orders = entries(agent, "bundle")["tables/orders"]
    assert (orders.type, orders.tags, orders.data["title"]) == ("Table", ("sales",), "Orders")
    (customers,) = agent.related("tables/orders")
    assert (customers.id, customers.ts.isoformat()) == ("tables/customers", "2026-01-12T00:00:00+00:00")


def test_front_matter_that_is_no_yaml_is_listed_and_kept_as_text(agent: Agent, tmp_path: Path) -> None:
    vault = files(tmp_path / "vault", {"odd.md": "---\na: {{date}}\n---\nBody\n"})
    result = import_memory(agent, "obsidian", vault)
    assert (result.imported, [one.place for one in result.failed]) == (1, ["odd.md"])
    assert "kept as text" in result.failed[0].reason
    assert agent.get("odd").data["frontmatter"] == "a: {{date}}"


def test_a_note_of_basic_memory_without_a_readable_id_is_left_out(agent: Agent, tmp_path: Path) -> None:
    notes = {"a.md": "---\npermalink: a\n---\nA\n", "odd.md": "---\npermalink: main/odd\nx: [\n---\nBody\n"}
    result = import_memory(agent, "basic-memory", files(tmp_path / "main", notes))
    assert (result.imported, [one.place for one in result.failed]) == (1, ["odd.md"])
    assert "of the front matter is not YAML" in result.failed[0].reason


def test_a_title_that_is_wrapped_keeps_permalink_and_tags(agent: Agent, tmp_path: Path) -> None:
    title = "title: A rather long title about the release branch\n  every Friday night\n"
    head = f"{title}permalink: main/a\ntags:\n- b\n"
    import_memory(agent, "auto", files(tmp_path / "main", {"A.md": f"---\n{head}---\nBody\n"}))
    found = agent.get("main/a")
    assert found.data["title"] == "A rather long title about the release branch every Friday night"
    assert found.tags == ("b",)


def test_tags_of_any_script_are_tags(agent: Agent, tmp_path: Path) -> None:
    body = "#über #日本、 #हिन्दी #2026 #a/b-c, #y2026\n`#no` x#no #Größe。\n"
    import_memory(agent, "obsidian", files(tmp_path / "vault", {"a.md": body}))
    assert agent.get("a").tags == ("über", "日本", "हिन्दी", "a/b-c", "y2026", "Größe")


def test_markdown_links_to_notes_become_links(agent: Agent, tmp_path: Path) -> None:
    body = (
        '[a](../Other.md) [b](deep%20one/My%20note.md#top) [c](<Note (1).md>) [d](Note(2).md "t") '
        "[web](https://example.org/Other.md) [gone](Nowhere.md)\n"
    )
    names = ("Other.md", "deep one/My note.md", "Note (1).md", "x/Note(2).md")
    import_memory(
        agent, "obsidian", files(tmp_path / "vault", {"x/a.md": body, **dict.fromkeys(names, "B\n")})
    )
    assert [link["to"] for link in agent.get("x/a").links] == [name.removesuffix(".md") for name in names]
