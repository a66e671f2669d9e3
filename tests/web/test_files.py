from playwright.sync_api import Dialog, expect
from tests.web.conftest import Browse, Site

from keepstone import Agent


def test_files_are_listed_and_one_is_read(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("plans/today.md", "# Today\n\nCall Ana <b>now</b>\n")
    page = browse(site.url(agent.slug, "files"))
    page.get_by_role("link", name="plans/today.md").click()
    expect(page.get_by_label("Content of plans/today.md")).to_have_value("# Today\n\nCall Ana <b>now</b>\n")


def test_an_edited_file_is_saved(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "old")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_label("Content of a.md").fill("new")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".q-notification")).to_contain_text("Saved a.md")
    assert agent.files.read("a.md") == "new"


def test_a_saved_file_keeps_its_kind_of_line_ends(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("dos.txt", "one\r\ntwo\r\n")
    page = browse(site.url(agent.slug, "files", path="dos.txt"))
    page.get_by_label("Content of dos.txt").fill("one\nthree\n")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".q-notification")).to_contain_text("Saved dos.txt")
    assert agent.files.read("dos.txt") == "one\r\nthree\r\n"


def test_a_change_elsewhere_is_never_overwritten_unasked(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "old")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_label("Content of a.md").fill("mine")
    agent.files.write("a.md", "theirs")
    expect(page.locator(".told")).to_contain_text("has changed")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".compare pre")).to_have_text(["mine", "theirs"])
    page.get_by_role("button", name="Go on editing").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert agent.files.read("a.md") == "theirs"
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Keep mine").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".q-notification")).to_contain_text("Saved")
    assert agent.files.read("a.md") == "mine"


def test_their_text_can_be_taken_in_place_of_mine(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "old")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_label("Content of a.md").fill("mine")
    agent.files.write("a.md", "theirs")
    expect(page.locator(".told")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Take theirs").click()
    expect(page.get_by_label("Content of a.md")).to_have_value("theirs")


def test_an_unedited_file_follows_what_others_write(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "one")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    agent.files.write("a.md", "two")
    agent.files.write("b.md", "new")
    expect(page.get_by_label("Content of a.md")).to_have_value("two")
    expect(page.locator(".links .name")).to_have_text(["a.md", "b.md"])


def test_a_file_that_changed_while_asked_is_not_deleted_unasked(
    site: Site, agent: Agent, browse: Browse
) -> None:
    agent.files.write("a.md", "old")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("is removed from the agent's folder")
    agent.files.write("a.md", "theirs")
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog).to_contain_text("has changed")
    assert agent.files.read("a.md") == "theirs"
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator(".box h2")).to_have_text("No files yet")
    assert agent.files.list() == []


def test_a_new_file_is_made_and_another_deleted(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "files"))
    page.get_by_role("button", name="New file").click()
    page.get_by_label("Its path").fill("notes/new.md")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("h2", has_text="notes/new.md")).to_be_visible()
    assert agent.files.list() == ["notes/new.md"]
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".box h2")).to_have_text("No files yet")


def test_a_path_that_leaves_the_folder_is_refused(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "files", path="../../secret"))
    expect(page.get_by_role("alert")).to_contain_text("secret")


def test_ctrl_s_saves_the_open_file(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "old")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_label("Content of a.md").fill("new")
    page.keyboard.press("Control+s")
    expect(page.locator(".q-notification")).to_contain_text("Saved a.md")
    assert agent.files.read("a.md") == "new"


def test_leaving_unsaved_changes_asks_first(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "old")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.get_by_label("Content of a.md").fill("new")
    expect(page.locator("[data-unsaved]")).to_have_count(1)
    page.locator("nav").get_by_role("link", name="Recall").click(no_wait_after=True)
    expect(page.get_by_label("Content of a.md")).to_have_value("new")
    assert asked == ["beforeunload"]
    page.keyboard.press("Control+s")
    expect(page.locator("[data-unsaved]")).to_have_count(0)
    page.locator("nav").get_by_role("link", name="Recall").click()
    expect(page.locator("h1")).to_have_text("Recall")
