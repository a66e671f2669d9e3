"""The frame of every page: navigation, heading and style."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from nicegui import ui

from keepstone.text.brand import MARK
from keepstone.web.agent_menu import AgentMenu
from keepstone.web.elements import box, button, dialog, link, say
from keepstone.web.finder import open_finder
from keepstone.web.live import Live
from keepstone.web.site import WITH_NOTES, Place
from keepstone.web.toast import toast

ASSETS = "/_keepstone"
PAGES = (
    ("sessions", "Sessions", "s"),
    ("timeline", "Timeline", "t"),
    ("changes", "Changes", "h"),
    ("inbox", "Inbox", "i"),
    ("recall", "Recall", "r"),
    ("context", "Context", "x"),
    ("memory", "Notes", "m"),
    ("files", "Files", "f"),
    ("overview", "Overview", "o"),
    ("in-and-out", "In and out", "b"),
    ("settings", "Settings", ","),
)
"""The pages in the navigation: name in the address, title, and the key to press after ``g``."""
_GROUPS = frozenset({"recall", "memory", "overview"})
"""The pages that begin a new group in the navigation."""
_OTHERS = (("chat", "New chat", "c"), ("agents", "Agents", "a"))
"""The pages that buttons of the frame open; chats are listed among the sessions."""
_PART_OF = {"chat": "sessions"}
"""Pages outside the navigation, each with the navigation's page to which it belongs."""
_KEYS = (
    ("Ctrl+K", "find anything"),
    ("/", "go to the page's search field, else find anything"),
    ("n", "new session, note, file or agent; on other pages a new chat"),
    ("j  k", "next and previous entry or row"),
    ("Enter", "open the row, or the details of an entry"),
    ("e", "edit the entry"),
    ("p", "pin or unpin the entry"),
    ("s", "supersede the entry with a newer fact"),
    ("h", "history of the entry"),
    ("Backspace", "delete the entry"),
    ("Ctrl+S", "save the open file"),
    ("Ctrl+Z", "undo the last change, while it is shown"),
    ("← →", "next choice where one is asked for"),
    ("Esc", "close a dialog, a menu or the details"),
    *((f"g {key}", f"go to {title}") for _, title, key in (*PAGES, *_OTHERS)),
    ("?", "show this list"),
)


@contextmanager
def frame(place: Place, page: str, heading: str, lead: str = "") -> Iterator[ui.element]:
    """Draw the frame of a page; the block draws the page itself. Yields the heading's row."""
    head()
    link("Skip to content", "#main", "skip")
    toast()
    with box(classes="shell"):
        _side(place, page)
        with box(classes="paper", id="main", tabindex="-1"):
            with box(classes="head") as line:
                say("h1", heading)
                box(classes="fill")
            if lead:
                say("p", lead, "lead")
            if not place.exists:
                _say_missing(place)
            with box(classes="page"):
                yield line


def _say_missing(place: Place) -> None:
    """Show that the agent does not exist, until it does. An empty home shows how to begin instead."""
    if place.home_was_empty:
        return
    with box("p", "notice", role="status") as notice:
        say("span", f"There is no agent “{place.agent.slug}” in this home. Its first entry makes it. ")
        link("All agents", place.link("agents"))
    # Check this repeatedly, because an agent is created with its first entry, which another program may
    # write.
    Live(lambda: place.agent.slug in place.agents(), lambda exists: notice.set_visibility(not exists))


def head() -> None:
    """Load the style sheet and the scripts."""
    ui.add_head_html(
        # ``keys.js`` is in the head, without ``defer``, and sets the theme before the body is drawn, so that
        # a dark page does not flash white.
        f'<link rel="stylesheet" href="{ASSETS}/style.css"><script src="{ASSETS}/keys.js"></script>'
        f'<script src="{ASSETS}/menu.js"></script><script src="{ASSETS}/copy.js"></script>'
        f'<script src="{ASSETS}/commands.js"></script>'
    )


def _side(place: Place, current: str) -> None:
    with box(classes="side"):
        with box("a", "brand", href="/", aria_label="keepstone"):
            # The image is inlined as a data URL, which saves a request; its text alternative is the link's
            # label.
            box("img", src=f"data:image/svg+xml,{quote(MARK)}", alt="")
            say("span", "keepstone")
        AgentMenu(place, current).build()
        button("Find", lambda: _find(place), "quiet find", data_find="", title="Ctrl+K")
        say("button", "Menu", "quiet open-menu", type="button", aria_expanded="false", aria_controls="menu")
        box(classes="behind")
        with box(classes="drawer", id="menu"):
            if place.sees_notes:
                link("New chat", place.link("chat"), "plain new-chat", data_go="c")
            with box("nav", aria_label="Pages"):
                for name, title, key in PAGES:
                    if name in WITH_NOTES and not place.sees_notes:
                        continue
                    mark = {"aria_current": "page"} if name == _PART_OF.get(current, current) else {}
                    link(title, place.link(name), "begins" if name in _GROUPS else "", data_go=key, **mark)
            with box(classes="foot"):
                theme = say("button", "Theme", "quiet", type="button", title="Light or dark")
                # The theme is stored only in the browser, so the click does not go to the server.
                theme.on("click", js_handler="() => keepstoneTheme()")
                button("Shortcuts", _keys, "quiet", data_help="")
                if place.site.sign_out is not None:
                    # A form, because only a POST signs out: browsers may prefetch links.
                    with box("form", action=place.site.sign_out, method="post"):
                        say("button", "Sign out", "quiet", type="submit")


def _find(place: Place) -> None:
    every = ((name, title) for name, title, _ in (*PAGES, *_OTHERS))
    pages = [(name, title) for name, title in every if place.sees_notes or name not in WITH_NOTES]
    open_finder(place, pages)


def _keys() -> None:
    with dialog("Shortcuts", "broad form") as shown:
        with box(classes="keys"):
            for key, what in _KEYS:
                with box():
                    for part in key.split():
                        say("kbd", part)
                say("span", what)
        with box(classes="row-end"):
            button("Close", shown.close)
    shown.open()
