import pytest
from playwright.sync_api import Dialog, Page, expect
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
    expect(page.locator(".toast")).to_contain_text("Saved a.md")
    assert agent.files.read("a.md") == "new"


def test_a_saved_file_keeps_its_kind_of_line_ends(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("dos.txt", "one\r\ntwo\r\n")
    page = browse(site.url(agent.slug, "files", path="dos.txt"))
    page.get_by_label("Content of dos.txt").fill("one\nthree\n")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_contain_text("Saved dos.txt")
    assert agent.files.read("dos.txt") == "one\r\nthree\r\n"


def test_a_change_elsewhere_is_never_overwritten_unasked(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "old")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_label("Content of a.md").fill("mine")
    agent.files.write("a.md", "theirs")
    expect(page.locator(".told")).to_contain_text("has changed")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".compare ins")).to_have_text(["+ mine", "+ theirs"])
    page.get_by_role("button", name="Go on editing").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert agent.files.read("a.md") == "theirs"
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Keep mine").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".toast")).to_contain_text("Saved")
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
    expect(page.locator(".box h2")).to_have_text("There is no such file")
    assert agent.files.list() == []
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_contain_text("Undone")
    expect(page.get_by_label("Content of a.md")).to_have_value("theirs")
    assert agent.files.read("a.md") == "theirs"


def test_a_deleted_file_that_is_there_again_is_not_written_over(
    site: Site, agent: Agent, browse: Browse
) -> None:
    agent.files.write("a.md", "old")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".toast")).to_contain_text("Deleted a.md")
    agent.files.write("a.md", "theirs")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_contain_text("Not undone")
    assert agent.files.read("a.md") == "theirs"


def test_a_new_file_is_made_and_another_deleted(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "files"))
    page.get_by_role("button", name="New file").click()
    page.get_by_label("Its path").fill("notes/new.md")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("h2", has_text="notes/new.md")).to_be_visible()
    assert agent.files.list() == ["notes/new.md"]
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".box h2")).to_have_text("There is no such file")
    assert agent.files.list() == []


def test_a_path_that_leaves_the_folder_is_refused(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "files", path="../../secret"))
    expect(page.get_by_role("alert")).to_contain_text("secret")


def test_ctrl_s_saves_the_open_file(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "old")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_label("Content of a.md").fill("new")
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("Saved a.md")
    assert agent.files.read("a.md") == "new"


def test_leaving_unsaved_changes_asks_first(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "old")
    page = browse(site.url(agent.slug, "files", path="a.md"), kept=False)
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


def test_reloading_with_unsaved_changes_asks_first(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "old")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_label("Content of a.md").fill("new")
    expect(page.locator("[data-unsaved]")).to_have_count(1)
    with page.expect_event("dialog") as asked:
        page.evaluate("void setTimeout(() => location.reload())")
    assert asked.value.type == "beforeunload"
    asked.value.dismiss()
    expect(page.get_by_label("Content of a.md")).to_have_value("new")


BASE = "".join(f"line {number}\n" for number in range(40))


def conflicting(site: Site, agent: Agent, browse: Browse, mine: str, theirs: str) -> Page:
    """Return a page on which saving ``mine`` met ``theirs``."""
    agent.files.write("a.md", BASE)
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_label("Content of a.md").fill(mine)
    expect(page.locator("[data-unsaved]")).to_have_count(1)
    agent.files.write("a.md", theirs)
    expect(page.locator(".told")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    return page


def test_changes_of_both_sides_that_do_not_touch_are_merged(site: Site, agent: Agent, browse: Browse) -> None:
    mine, theirs = BASE.replace("line 3\n", "my line\n"), BASE.replace("line 30\n", "their line\n")
    page = conflicting(site, agent, browse, mine, theirs)
    dialog = page.get_by_role("dialog", name="Two versions of this file")
    expect(dialog).to_contain_text("You made 1 change; 1 change came from elsewhere. They do not touch")
    expect(dialog.locator("del")).to_have_text(["\u2212 line 3", "\u2212 line 30"])
    expect(dialog.locator("ins")).to_have_text(["+ my line", "+ their line"])
    dialog.get_by_role("button", name="Merge").click()
    expect(page.locator(".toast")).to_contain_text("Saved a.md")
    merged = mine.replace("line 30\n", "their line\n")
    assert agent.files.read("a.md") == merged
    expect(page.get_by_label("Content of a.md")).to_have_value(merged)
    expect(page.locator("[data-unsaved]")).to_have_count(0)


@pytest.mark.parametrize(
    ("choice", "kept"), [("Yours", "mine\n"), ("Theirs", "theirs\n"), ("Both", "mine\ntheirs\n")]
)
def test_a_conflict_is_merged_once_it_is_chosen_what_to_keep(
    site: Site, agent: Agent, browse: Browse, choice: str, kept: str
) -> None:
    page = conflicting(
        site, agent, browse, BASE.replace("line 3\n", "mine\n"), BASE.replace("line 3\n", "theirs\n")
    )
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 conflict: choose what to keep")
    merge = dialog.get_by_role("button", name="Merge")
    expect(merge).to_be_disabled()
    dialog.get_by_role("group", name="Conflict 1").get_by_role("button", name=choice).click()
    merge.click()
    expect(page.locator(".toast")).to_contain_text("Saved a.md")
    assert agent.files.read("a.md") == BASE.replace("line 3\n", kept)


def test_the_notice_of_a_change_counts_its_lines(site: Site, agent: Agent, browse: Browse) -> None:
    page = conflicting(site, agent, browse, f"{BASE}mine\n", BASE.replace("line 3\n", "one\ntwo\n"))
    expect(page.locator(".told")).to_contain_text("2 lines added, 1 removed")


def test_a_file_deleted_elsewhere_is_written_again_only_when_asked(
    site: Site, agent: Agent, browse: Browse
) -> None:
    agent.files.write("a.md", "old")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_label("Content of a.md").fill("mine")
    expect(page.locator("[data-unsaved]")).to_have_count(1)
    agent.files.delete("a.md")
    expect(page.locator(".told")).to_contain_text("was deleted")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog", name="This file was deleted")).to_be_visible()
    assert agent.files.list() == []
    page.get_by_role("button", name="Keep mine").click()
    expect(page.locator(".toast")).to_contain_text("Saved")
    assert agent.files.read("a.md") == "mine"


def test_save_stays_in_sight_while_a_long_file_is_edited(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", BASE * 10)
    page = browse(site.url(agent.slug, "files", path="a.md"))
    expect(page.get_by_label("Content of a.md")).to_have_value(BASE * 10)
    page.mouse.wheel(0, 5000)
    page.wait_for_function("scrollY > 3000")
    expect(page.get_by_role("button", name="Save")).to_be_in_viewport()


def test_markdown_is_previewed_as_it_is_in_the_field(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "# Old")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_label("Content of a.md").fill("# Plan\n\n- call **Ana**\n")
    page.get_by_role("button", name="Preview").click()
    preview = page.locator(".preview")
    expect(preview.get_by_role("heading", name="Plan")).to_be_visible()
    expect(preview.locator("li strong")).to_have_text("Ana")
    expect(page.get_by_label("Content of a.md")).to_be_hidden()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_label("Content of a.md")).to_have_value("# Plan\n\n- call **Ana**\n")


def test_a_preview_runs_and_loads_nothing(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write(
        "a.md",
        "<img src=x onerror=alert(1)> ![i](http://example.invalid/i.png) [x](javascript:alert(1)) "
        "[y](https://example.com)",
    )
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_role("button", name="Preview").click()
    links = page.locator(".preview a")
    expect(links).to_have_count(2)
    expect(links.first).to_have_attribute("href", "http://example.invalid/i.png")
    expect(links.last).to_have_attribute("href", "https://example.com")
    expect(page.locator(".preview img")).to_have_count(0)
    expect(page.locator(".preview")).to_contain_text("onerror=alert(1)")


def test_what_is_no_markdown_has_no_preview(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.txt", "text")
    page = browse(site.url(agent.slug, "files", path="a.txt"))
    expect(page.get_by_label("Content of a.txt")).to_be_visible()
    expect(page.get_by_role("button", name="Preview")).to_have_count(0)


def test_a_preview_ends_after_100000_characters_and_says_so(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "word " * 20_000 + "last")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("The preview ends after 100,000 characters.")).to_be_visible()
    expect(page.locator(".preview")).not_to_contain_text("last")


def test_an_open_preview_follows_the_file(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("a.md", "# One")
    page = browse(site.url(agent.slug, "files", path="a.md"))
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".preview h1")).to_have_text("One")
    agent.files.write("a.md", "# Two")
    expect(page.locator(".preview h1")).to_have_text("Two")
