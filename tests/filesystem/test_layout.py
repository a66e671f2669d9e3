import os
import re
import string
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.folding import fold_case

from keepstone.errors import AccessDeniedError, InvalidAgentIdError, InvalidSessionIdError
from keepstone.filesystem.layout import LAYOUTS, Layout, layout_of, lock_file, refuse_case_twin

DEFAULT, BMAD, CACHE = (LAYOUTS[name] for name in ("default", "bmad", "cache"))
ROOT = Path("root")


def percent_encoded(text: str) -> str:
    """The rule, said once more and slowly, the way any language can say it."""
    kept = string.ascii_letters + string.digits + "-_.~"
    coded = "".join(chr(byte) if chr(byte) in kept else f"%{byte:02X}" for byte in text.encode())
    return re.sub(r"^\.", "%2E", coded)


def refuse_access(*_: object) -> None:
    raise PermissionError


@pytest.mark.parametrize(
    ("name", "sessions", "files"),
    [
        ("default", "agents/a/memory/sessions", "agents/a/files"),
        ("cache", "agent_sessions/a", "agent_memory/a"),
    ],
)
def test_an_agent_has_the_folders_of_its_layout(name: str, sessions: str, files: str) -> None:
    assert LAYOUTS[name].sessions_folder(ROOT, "a") == ROOT / sessions
    assert LAYOUTS[name].files_folder(ROOT, "a") == ROOT / files


def test_the_bmad_layout_has_one_agent_and_jsonl_logs() -> None:
    assert BMAD.sessions_folder(ROOT, "default") == ROOT / "sessions"
    assert BMAD.files_folder(ROOT, "default") == ROOT / "files"
    assert BMAD.session_file("s1") == "s1.jsonl"


def test_an_index_lies_below_the_root_by_agent_and_schema() -> None:
    assert CACHE.index_folder(ROOT, "a", 3) == ROOT / ".index" / "a" / "v3"


@pytest.mark.parametrize("slug", ["a", "7", "coder-1.x_Y", "a..b", "a" * 128, "a-", "a_"])
def test_a_valid_slug_comes_back_unchanged(slug: str) -> None:
    assert DEFAULT.check_agent(slug) == slug


@pytest.mark.parametrize(
    "slug",
    [
        "",
        ".",
        "..",
        ".a",
        "-a",
        "_a",
        "a.",
        "a/b",
        "a\\b",
        "a b",
        "a\n",
        "a\0",
        "é",
        "a\u200d",
        "\ud800",
        "a" * 129,
    ],
)
def test_any_other_slug_is_an_invalid_agent_id(slug: str) -> None:
    with pytest.raises(InvalidAgentIdError, match="letter or digit first"):
        DEFAULT.check_agent(slug)


@pytest.mark.parametrize("slug", [None, 7, b"a", ["a"]])
def test_a_slug_that_is_not_a_string_is_a_type_error(slug: object) -> None:
    with pytest.raises(TypeError, match="is a string"):
        DEFAULT.check_agent(slug)


def test_a_layout_for_one_agent_refuses_every_other_slug() -> None:
    assert BMAD.check_agent("default") == "default"
    with pytest.raises(InvalidAgentIdError, match="one agent"):
        BMAD.check_agent("coder")


@pytest.mark.parametrize("method", ["sessions_folder", "files_folder", "agent_folders"])
def test_no_folder_is_named_after_an_invalid_slug(method: str) -> None:
    with pytest.raises(InvalidAgentIdError):
        getattr(DEFAULT, method)(ROOT, "../other")


def test_no_index_is_named_after_an_invalid_slug() -> None:
    with pytest.raises(InvalidAgentIdError):
        DEFAULT.index_folder(ROOT, "..", 1)


def test_the_outermost_folders_hold_all_that_an_agent_has() -> None:
    assert DEFAULT.agent_folders(ROOT, "a") == [ROOT / "agents" / "a"]
    assert CACHE.agent_folders(ROOT, "a") == [ROOT / "agent_sessions" / "a", ROOT / "agent_memory" / "a"]
    assert BMAD.agent_folders(ROOT, "default") == [ROOT / "sessions", ROOT / "files"]


def test_agents_are_the_slugs_that_have_a_folder(tmp_path: Path) -> None:
    for folder in ("agent_sessions/b", "agent_memory/a", "agent_memory/b", "agent_memory/.hidden", "other/c"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "agent_memory" / "file").touch()
    assert CACHE.agents(tmp_path) == ["a", "b"]


def test_a_link_to_an_agents_folder_is_not_an_agent(tmp_path: Path) -> None:
    (tmp_path / "agents" / "a").mkdir(parents=True)
    (tmp_path / "agents" / "b").symlink_to(tmp_path / "agents" / "a")
    assert DEFAULT.agents(tmp_path) == ["a"]


def test_a_link_in_the_place_of_all_agents_holds_none(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "a").mkdir(parents=True)
    (tmp_path / "agents").symlink_to(tmp_path / "elsewhere")
    assert DEFAULT.agents(tmp_path) == []


@pytest.mark.parametrize("folder", ["sessions", "files"])
def test_the_one_agent_is_there_with_either_folder(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    assert BMAD.agents(tmp_path) == ["default"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_root_that_does_not_exist_has_no_agents(tmp_path: Path, name: str) -> None:
    assert LAYOUTS[name].agents(tmp_path / "none") == []


def test_a_root_that_may_not_be_read_denies_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agents").mkdir()
    monkeypatch.setattr(os, "scandir", refuse_access)
    with pytest.raises(AccessDeniedError, match="check its owner"):
        DEFAULT.agents(tmp_path)


@pytest.mark.parametrize(
    ("session", "name"),
    [
        ("s1", "s1.ndjson"),
        ("A-z_0.9~", "A-z_0.9~.ndjson"),
        ("..", "%2E..ndjson"),
        (".hidden", "%2Ehidden.ndjson"),
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd.ndjson"),
        ("a b!'()*%", "a%20b%21%27%28%29%2A%25.ndjson"),
        ("café", "caf%C3%A9.ndjson"),
        ("C:\\x\0", "C%3A%5Cx%00.ndjson"),
        ("x.ndjson", "x.ndjson.ndjson"),
    ],
)
def test_a_session_id_has_this_file_name(session: str, name: str) -> None:
    assert DEFAULT.session_file(session) == name


@given(st.text(min_size=1, max_size=250))
def test_every_session_id_that_fits_comes_back_from_its_file_name(session: str) -> None:
    assume(len(percent_encoded(session)) <= 200)
    name = DEFAULT.session_file(session)
    assert name == percent_encoded(session) + ".ndjson"
    assert DEFAULT.session_of(name) == session


@given(st.text(alphabet="./\\%2fFeE~ \0a", min_size=1, max_size=60))
def test_no_session_id_can_travel_to_another_folder(session: str) -> None:
    name = DEFAULT.session_file(session)
    assert re.fullmatch(r"[A-Za-z0-9_~%-][A-Za-z0-9_.~%-]*\.ndjson", name)


@given(st.lists(st.text(min_size=1, max_size=20), unique=True))
def test_different_session_ids_have_different_file_names(sessions: list[str]) -> None:
    assert len({DEFAULT.session_file(session) for session in sessions}) == len(sessions)


def test_the_longest_session_id_has_200_encoded_bytes() -> None:
    assert DEFAULT.session_file("a" * 200) == "a" * 200 + ".ndjson"
    assert len(DEFAULT.session_file("é" * 33 + "aa")) == 207


@pytest.mark.parametrize("session", ["a" * 201, "é" * 34, "a" * 17_000_000])
def test_a_session_id_that_is_too_long_is_refused(session: str) -> None:
    with pytest.raises(InvalidSessionIdError, match="session_name"):
        DEFAULT.session_file(session)


@pytest.mark.parametrize("session", ["", "\ud800", "a\udfff"])
def test_an_empty_or_invalid_session_id_is_refused(session: str) -> None:
    with pytest.raises(InvalidSessionIdError):
        DEFAULT.session_file(session)


def test_a_session_id_that_is_not_a_string_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="not int"):
        DEFAULT.session_file(7)


@pytest.mark.parametrize(
    ("name", "session"),
    [
        ("my chat.ndjson", "my chat"),
        ("caf%c3%a9.ndjson", "café"),
        ("100%.ndjson", "100%"),
        ("%zz.ndjson", "%zz"),
        ("%FF.ndjson", "%FF"),
        ("%ED%A0%80.ndjson", "%ED%A0%80"),
        ("a%20b%zz.ndjson", "a b%zz"),
    ],
)
def test_a_name_made_by_hand_has_a_session_id(name: str, session: str) -> None:
    assert DEFAULT.session_of(name) == session


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".ndjson",
        ".hidden.ndjson",
        ".purge.ndjson",
        "a.jsonl",
        "a.lock",
        "a.ndjson.tmp",
        "ndjson",
        "a\udcff.ndjson",
    ],
)
def test_other_names_are_not_sessions(name: str) -> None:
    assert DEFAULT.session_of(name) is None


@given(st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=40))
def test_every_file_name_can_be_read(stem: str) -> None:
    session = DEFAULT.session_of(stem + ".ndjson")
    assert (session is None) == (stem.startswith(".") or bool(re.search("[\ud800-\udfff]", stem)))


@given(
    st.lists(st.text(max_size=6), min_size=1, max_size=4),
    st.lists(st.text(max_size=6), min_size=1, max_size=4),
)
def test_different_identities_have_different_session_names(one: list[str], other: list[str]) -> None:
    assert (Layout.session_name(*one) == Layout.session_name(*other)) == (one == other)


def test_a_session_name_keeps_apart_parts_that_join_alike() -> None:
    assert Layout.session_name("a", "bc") != Layout.session_name("ab", "c")
    assert Layout.session_name("ab") != Layout.session_name("ab", "")


@given(st.lists(st.text(max_size=100), min_size=1))
def test_a_session_name_is_a_file_name_as_it_is(parts: list[str]) -> None:
    name = Layout.session_name(*parts)
    assert DEFAULT.session_file(name) == name + ".ndjson"


def test_a_session_name_stays_the_same_for_ever() -> None:
    # printf '3:app6:user 7' | sha256sum
    digest = "6b2f1ee017fc72715b6873e2f76f60d9e0a6054589c96ff12f4b009d8cff9184"
    assert Layout.session_name("app", "user 7") == f"app-user-7-{digest}"


@pytest.mark.parametrize(
    ("parts", "error"), [((), ValueError), ((7,), TypeError), (("a\ud800",), InvalidSessionIdError)]
)
def test_a_session_name_needs_parts_that_are_text(parts: tuple[str, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        Layout.session_name(*parts)


def test_a_log_and_its_lock_share_the_stem() -> None:
    assert lock_file("s1.ndjson", ".ndjson") == "s1.lock"
    assert lock_file("x.ndjson.ndjson", ".ndjson") == "x.ndjson.lock"


def test_a_layout_is_found_by_name_or_is_itself() -> None:
    own = Layout("log/{agent}", "text/{agent}")
    assert layout_of("bmad") is BMAD
    assert layout_of(own) is own


@pytest.mark.parametrize("value", ["", "Default", None, 7, ["default"]])
def test_an_unknown_layout_is_refused_with_the_three_names(value: str) -> None:
    with pytest.raises(ValueError, match="default, bmad, cache"):
        layout_of(value)


@pytest.mark.parametrize(
    "template",
    ["", "/a", "a/", "a//b", ".", "../a", "a/..", "a\\b", "C:/a", "a\0", ".index/a", ".INDEX", "{agent}x"],
)
def test_a_template_that_is_not_a_plain_folder_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="no template"):
        Layout(template, "files")


def test_a_template_that_is_not_a_string_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="is a string"):
        Layout(Path("a"), "b")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sessions", "files"),
    [
        ("a", "a"),
        ("a", "A/b"),
        ("a/{agent}", "a/{agent}/files"),
        ("a/{agent}/s", "a/x/{agent}"),
        ("{agent}", "files/{agent}"),
        ("{agent}/{agent}", "files/{agent}"),
        ("{agent}", "files"),
    ],
)
def test_templates_that_would_mix_memories_are_refused(sessions: str, files: str) -> None:
    with pytest.raises(ValueError, match=r"give both|most once|keep them apart"):
        Layout(sessions, files)


@pytest.mark.parametrize("extension", ["", ".", "log", ".lock", ".tmp", ".a.lock", ".a/b", ".NDJSON"])
def test_an_extension_that_would_clash_is_refused(extension: str) -> None:
    with pytest.raises(ValueError, match="no extension"):
        Layout("a", "b", extension)


@pytest.mark.parametrize("existing", [(), ("other",), ("coder",), ("Coder", "coder")])
def test_a_name_without_a_twin_or_that_exists_is_taken(tmp_path: Path, existing: tuple[str, ...]) -> None:
    for name in existing:
        (tmp_path / name).mkdir(exist_ok=True)
    refuse_case_twin(tmp_path / "coder", InvalidAgentIdError)
    assert {path.name for path in tmp_path.iterdir()} <= set(existing)


@pytest.mark.parametrize("name", ["coder", "CODER", "Coder"])
def test_a_twin_by_case_is_refused_with_the_callers_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "cOder").mkdir()
    fold_case(monkeypatch)
    refuse_case_twin(tmp_path / "cOder", InvalidAgentIdError)
    with pytest.raises(InvalidAgentIdError, match="from the existing 'cOder'"):
        refuse_case_twin(tmp_path / name, InvalidAgentIdError)


def test_two_hard_links_that_differ_by_case_are_two_names(tmp_path: Path) -> None:
    (tmp_path / "name").touch()
    if (tmp_path / "NAME").exists():
        pytest.skip("the file system of this folder folds case")
    os.link(tmp_path / "name", tmp_path / "NAME")
    refuse_case_twin(tmp_path / "NAME", InvalidSessionIdError)
