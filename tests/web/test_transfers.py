"""Files that a browser sends in pieces, and its downloads: exports, backups and images."""

import io
import json
import zipfile
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.web.conftest import Browse, Site, serve

from keepstone import Agent
from keepstone.web.transfers import Receiver


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from serve(tmp_path_factory.mktemp("limited"), ONLY="default")


def test_a_file_is_received_only_from_the_page_of_its_reader(
    site: Site, agent: Agent, browse: Browse
) -> None:
    page = browse(site.url(agent.slug, "in-and-out"))
    where = site.url(agent.slug, "upload", at="0", name="a.jsonl")
    for headers in ({}, {"x-keepstone-receiver": "another"}):
        assert page.request.put(where, data="x", headers=headers).status == 403
    assert page.request.put(f"{where}&stranger=yes", data="x").status == 401


def test_pieces_make_a_file_up_to_a_size_and_it_goes_with_its_folder() -> None:
    receiver = Receiver(largest=6)
    receiver.take("../../a b.json", 0, b"one")
    receiver.take("../../a b.json", 3, b"two")
    path = receiver.path
    assert path is not None
    assert (path.name, path.read_bytes()) == ("_.._a_b.json", b"onetwo")
    with pytest.raises(ValueError, match="larger than 6 B"):
        receiver.take("a", 6, b"x")
    assert receiver.path is None
    assert not path.parent.exists()


def test_a_piece_that_does_not_follow_is_refused() -> None:
    receiver = Receiver()
    with pytest.raises(ValueError, match="do not follow one another"):
        receiver.take("a", 3, b"x")
    receiver.take("a", 0, b"x")
    with pytest.raises(ValueError, match="do not follow one another"):
        receiver.take("a", 3, b"x")
    receiver.close()


def test_an_agent_is_exported_and_a_session_alone(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("one").add("fact", "first")
    agent.session("two").add("fact", "second")
    page = browse(site.url(agent.slug, "sessions"))
    whole = page.request.get(site.url(agent.slug, "export"))
    assert sorted(json.loads(line)["text"] for line in whole.text().splitlines()) == ["first", "second"]
    assert whole.headers["content-disposition"] == f'attachment; filename="{agent.slug}.ndjson"'
    with zipfile.ZipFile(
        io.BytesIO(page.request.get(site.url(agent.slug, "export", format="md")).body())
    ) as md:
        assert any(name.endswith(".md") for name in md.namelist())
    page.locator("summary[aria-label^='Actions for session two']").click()
    with page.expect_download() as sent:
        page.get_by_role("link", name="Export session two").click()
    assert json.loads(sent.value.path().read_text())["text"] == "second"


def test_an_export_of_an_unknown_format_or_session_is_refused(
    site: Site, agent: Agent, browse: Browse
) -> None:
    agent.add("first")
    page = browse(site.url(agent.slug, "sessions"))
    assert page.request.get(site.url(agent.slug, "export", format="exe")).status == 400
    assert page.request.get(site.url(agent.slug, "export", session="gone")).status == 400


def test_a_backup_is_a_home_in_a_zip_file(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("s").add("fact", "first")
    page = browse(site.url(agent.slug, "in-and-out"))
    # The home is shared with all tests of pages.
    found = page.request.get(site.url(agent.slug, "backup"), timeout=60_000)
    with zipfile.ZipFile(io.BytesIO(found.body())) as packed:
        assert any(name.endswith(f"{agent.slug}/memory/sessions/s.ndjson") for name in packed.namelist())


def test_a_reader_of_one_agent_exports_it_and_nothing_else(limited: Site, browse: Browse) -> None:
    limited.home.agent("default").add("mine")
    limited.home.agent("other").add("not mine")
    page = browse(limited.url("default", "in-and-out"))
    expect(page.get_by_role("heading", name="Export")).to_be_visible()
    for title in ("Import", "Backup", "Purge this text everywhere"):
        expect(page.get_by_role("heading", name=title)).to_have_count(0)
    assert "mine" in page.request.get(limited.url("default", "export")).text()
    assert page.request.get(limited.url("other", "export")).status == 404
    assert page.request.get(limited.url("default", "backup")).status == 403
