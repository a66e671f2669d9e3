"""Whatever is wrong with an argument, the call says so and leaves no byte behind."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import keepstone
from keepstone import Home, KeepstoneError
from keepstone.log.arguments import limit_of, names_of, record_of
from keepstone.testing import ManualClock

HUGE = "x" * (17 << 20)
NAN, INFINITY = float("nan"), float("inf")
LOOP: dict[str, Any] = {}
LOOP["again"] = LOOP
DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


class Opaque:
    """A value of a kind that no argument takes."""

    def __repr__(self) -> str:
        return "Opaque()"


def given_at_all(value: object) -> bool:
    return value is not None


def is_no_text(value: object) -> bool:
    return not isinstance(value, str)


no_text = st.sampled_from([0, 1.5, True, b"x", ["x"], {"x": 1}, Opaque(), NAN, date(2026, 1, 1)])
no_name = no_text | st.sampled_from(["", "\ud800", "a\udfffb", None])
no_json = st.sampled_from(
    [Opaque(), NAN, INFINITY, "\ud800", b"x", {1: 2}, {"a": {"b": {NAN}}}, {"a": [NAN]}, HUGE, LOOP, DEEP]
)
no_mapping = st.sampled_from([0, True, "x", b"x", ["x"], Opaque(), NAN])
no_payload = no_mapping.filter(is_no_text) | st.sampled_from(["", "\ud800"])
no_names = st.sampled_from([0, True, "x", b"x", {"x": 1}, Opaque(), [1], ["x", None], [b"x"], NAN])
no_time = st.sampled_from([0, 1.5, True, b"x", Opaque(), NAN, date(2026, 1, 1), datetime(2026, 1, 1)])  # noqa: DTZ001
no_time |= st.sampled_from(["", "\0", "\ud800", "now", "2026-01-11T14:31:00", "2026-13-01", HUGE])
no_time |= st.just("0001-01-01T00:00:00+10:00")
no_limit = st.sampled_from([-1, -(2**70), 1.0, "1", True, b"1", Opaque(), NAN, [1]])
no_slug = no_name | st.sampled_from(["\0", "a/b", "../a", ".a", "a.", "a" * 129, "ä", HUGE, "a\n"])
no_session = no_name | st.sampled_from([HUGE, "ä" * 34])
no_path = st.sampled_from(["", "\0", "/etc/passwd", "../x", "a/../../x", "\ud800", HUGE, "a\\b"])
no_path |= st.sampled_from([0, None, b"x", Opaque()])
no_item = no_mapping | no_json.map(lambda bad: {"type": "note", "data": {"a": bad}})
no_item |= no_name.filter(given_at_all).map(lambda bad: {"id": bad})
no_vector = st.sampled_from([[NAN], [INFINITY], [0.0, 0.0], [], "x", b"x", ["a"], [[1.0]], 5, True, Opaque()])
unknown = st.sampled_from(["\0", "none", HUGE, "'; DROP TABLE entry"])

Call = Callable[[Home, Any], object]


def of_agent(method: str, *first: Any, key: str | None = None, **others: Any) -> Call:
    """A call of an agent's method whose bad argument is a keyword, or comes after ``first``."""
    return lambda home, bad: _called(getattr(home.agent("a"), method), first, key, bad, others)


def of_session(method: str, *first: Any, key: str | None = None, **others: Any) -> Call:
    """The same for a session's method."""
    return lambda home, bad: _called(getattr(home.agent("a").session("s"), method), first, key, bad, others)


def _called(
    method: Callable[..., object], first: tuple[Any, ...], key: str | None, bad: Any, others: dict[str, Any]
) -> object:
    return method(*first, bad, **others) if key is None else method(*first, **{key: bad}, **others)


def adding(key: str) -> Call:
    """A call of ``Session.add`` with this keyword."""
    return of_session("add", "note", key=key)


def recalling(key: str) -> Call:
    """A call of ``Agent.recall`` with this keyword."""
    return of_agent("recall", "walnut", key=key)


def updating(key: str) -> Call:
    """A call of ``Session.update`` with this keyword."""
    return of_session("update", "e", key=key)


no_key = st.sampled_from([1, None, b"x", NAN, "\ud800", HUGE])
no_content = no_text | st.just("\ud800")
no_long_text = no_text | st.sampled_from(["\ud800", HUGE])

CALLS: Mapping[str, tuple[Call, st.SearchStrategy[Any]]] = {
    "home.agent": (lambda home, bad: home.agent(bad), no_slug),
    "home.purge_agent": (lambda home, bad: home.purge_agent(bad), no_slug | unknown),
    "agent.session": (of_agent("session"), no_session),
    "agent.get": (of_agent("get"), no_name | unknown),
    "agent.get session": (of_agent("get", "e"), no_session.filter(given_at_all) | unknown),
    "agent.history": (of_agent("history"), no_name | unknown),
    "agent.update": (of_agent("update", pinned=True), no_name | unknown),
    "agent.delete": (of_agent("delete"), no_name | unknown),
    "agent.purge": (of_agent("purge"), no_name | unknown),
    "recall": (of_agent("recall"), no_text),
    "recall limit": (recalling("limit"), no_limit | st.none()),
    "recall sessions": (recalling("sessions"), no_names),
    "recall types": (recalling("types"), no_names),
    "recall tags": (recalling("tags"), no_names),
    "recall where": (recalling("where"), no_mapping | no_key.filter(is_no_text).map(lambda bad: {bad: 1})),
    "recall where value": (
        recalling("where"),
        st.sampled_from([Opaque(), NAN, b"x", LOOP]).map(lambda bad: {"a": bad}),
    ),
    "recall since": (recalling("since"), no_time),
    "recall until": (recalling("until"), no_time),
    "context": (of_agent("context"), no_text),
    "files.read": (lambda home, bad: home.agent("a").files.read(bad), no_path | unknown),
    "files.write": (lambda home, bad: home.agent("a").files.write(bad, "x"), no_path),
    "files.write content": (lambda home, bad: home.agent("a").files.write("x", bad), no_content),
    "files.append": (lambda home, bad: home.agent("a").files.append(bad, "x"), no_path),
    "files.append content": (lambda home, bad: home.agent("a").files.append("x", bad), no_content),
    "files.delete": (lambda home, bad: home.agent("a").files.delete(bad), no_path | unknown),
    "add": (of_session("add"), no_name | st.just(HUGE)),
    "add data": (adding("data"), no_payload),
    "agent.add": (of_agent("add"), no_content | st.just("")),
    "add data value": (adding("data"), no_json.map(lambda bad: {"a": bad})),
    "add data key": (adding("data"), no_key.map(lambda bad: {bad: 1})),
    "add id": (adding("id"), no_name.filter(given_at_all) | st.just(HUGE)),
    "add text": (adding("text"), no_long_text),
    "add ts": (adding("ts"), no_time),
    "add summary": (adding("summary"), no_long_text),
    "add priority": (
        adding("priority"),
        st.sampled_from([NAN, INFINITY, "1", True, 10**400, [1], Opaque()]),
    ),
    "add access": (adding("access"), st.sampled_from([-1, 1.0, "1", True, NAN, Opaque()])),
    "add pinned": (adding("pinned"), st.sampled_from([0, 1, "yes", NAN, [], Opaque()])),
    "add tags": (adding("tags"), no_names | st.sampled_from([["\ud800"], [HUGE]])),
    "add links": (adding("links"), st.sampled_from([{}, "x", 1, [Opaque()], [NAN], (), True])),
    "add expires": (adding("expires"), no_time),
    "add key": (adding("topic"), no_json),
    "add deleted": (adding("deleted"), st.booleans()),
    "add batch": (adding("batch"), st.just([1, 2])),
    "add embedding": (adding("embedding"), no_vector),
    "add_many": (of_session("add_many"), st.sampled_from([0, "x", b"x", {"a": 1}, Opaque(), NAN])),
    "add_many item": (of_session("add_many"), no_item.map(lambda bad: [{"content": "good"}, bad])),
    "put": (of_session("put"), no_item),
    "entries limit": (of_session("entries", key="limit"), no_limit),
    "entries types": (of_session("entries", key="types"), no_names),
    "update": (of_session("update", pinned=True), no_name | unknown),
    "update data": (updating("data"), no_payload | st.none()),
    "update text": (updating("text"), no_long_text | st.none()),
    "update key": (updating("topic"), no_json),
    "update type": (updating("type"), no_name | st.just(HUGE)),
    "delete": (of_session("delete"), no_name | unknown),
    "purge": (of_session("purge"), no_name | unknown),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home in use, whose index has nothing left to take in."""
    with keepstone.open(tmp_path_factory.mktemp("home"), durability="os") as home:
        home.agent("a").session("s").add("note", {"content": "walnut"}, id="e")
        home.agent("a").recall("walnut")
        yield home


def bytes_of(root: Path) -> dict[Path, bytes]:
    """Everything under a home, but for the shared memory that readers of the index use."""
    files = (path for path in root.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {path: path.read_bytes() for path in files}


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_bad_argument_is_refused_and_leaves_no_byte_behind(
    home: Home, name: str, data: st.DataObject
) -> None:
    call, bad_values = CALLS[name]
    bad = data.draw(bad_values)
    before = bytes_of(home.root)
    with pytest.raises((TypeError, ValueError, KeepstoneError)) as caught:
        call(home, bad)
    assert 0 < len(str(caught.value)) < 1000
    assert bytes_of(home.root) == before


@pytest.mark.parametrize("odd", ["\ud800", "\0", "a\0b", '"', "\udcff\ud800"])
@pytest.mark.parametrize("argument", ["sessions", "types", "tags"])
def test_odd_text_in_a_filter_just_matches_nothing(home: Home, argument: str, odd: str) -> None:
    choice: dict[str, Any] = {argument: [odd]}
    assert home.agent("a").recall("walnut", **choice) == []


@pytest.mark.parametrize("odd", ["\ud800", "\0", "a\0b", '"', "ä\ud800"])
def test_odd_text_is_a_harmless_query_and_a_harmless_where(home: Home, odd: str) -> None:
    agent = home.agent("a")
    assert [hit.entry.id for hit in agent.recall(f"{odd} walnut {odd}")] == ["e"]
    assert agent.recall("walnut", where={odd: odd}) == []
    assert agent.session("s").entries(types=[odd]) == agent.session("s").entries(5, types=[odd]) == []


texts = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(
    data=st.dictionaries(texts, json_values, max_size=4),
    text=st.none() | texts,
    tags=st.lists(texts, max_size=3),
)
def test_all_valid_unicode_and_json_comes_back_equal(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any], text: str | None, tags: list[str]
) -> None:
    assume(data or text)
    with keepstone.open(tmp_path_factory.mktemp("home"), durability="os") as home:
        added = home.agent("a").session("s").add("note", data, text=text, tags=tags)
        assert added.data == data
        assert added.tags == tuple(tags)
        assert home.agent("a").session("s").entries() == home.agent("a").session("s").entries(1) == [added]
        assert home.agent("a").get(added.id) == added


def test_the_longest_line_is_taken_and_one_byte_more_is_not(tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home:
        session = home.agent("a").session("s")
        session.add("note", text="x" * ((16 << 20) - (1 << 17)), id="a")
        with pytest.raises(ValueError, match="split it"):
            session.add("note", text="x" * (16 << 20), id="b")
        assert [len(entry.text) for entry in session.entries()] == [(16 << 20) - (1 << 17)]


def test_patches_that_would_make_an_entry_too_long_are_refused(tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home:
        session = home.agent("a").session("s")
        session.add("note", text="x" * (10 << 20), id="a")
        with pytest.raises(ValueError, match="split it"):
            session.update("a", summary="y" * (10 << 20))
        session.put_many([{"id": "b", "summary": "y" * (10 << 20)}])
        with pytest.raises(ValueError, match="split it"):
            session.put({"id": "b", "content": "x" * (10 << 20)})
        session.purge("b")
        session.compact()
        assert [len(entry.text) for entry in session.entries()] == [10 << 20]


@pytest.mark.parametrize("clock", [lambda: None, lambda: datetime(2026, 1, 1)])  # noqa: DTZ001
def test_a_clock_that_gives_no_instant_stops_the_write(tmp_path: Path, clock: Callable[[], Any]) -> None:
    with keepstone.open(tmp_path, clock=clock) as home, pytest.raises((TypeError, ValueError), match="clock"):
        home.agent("a").session("s").add("note", text="walnut")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "choice",
    [{"layout": "none"}, {"layout": ["default"]}, {"durability": "none"}, {"durability": None}, {"clock": 5}],
    ids=str,
)
def test_open_refuses_choices_that_it_does_not_have(tmp_path: Path, choice: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        keepstone.open(tmp_path, **choice)


@pytest.mark.parametrize("target", [5, b"x", ["x"], Opaque()])
def test_open_refuses_a_target_of_a_wrong_type(target: Any) -> None:
    with pytest.raises(TypeError, match=r"target|path"):
        keepstone.open(target)


def test_a_record_gets_what_its_item_does_not_say() -> None:
    record = record_of({"content": "Hi", "summary": None, "ts": None}, ManualClock())
    assert record.pop("id")
    assert record == {"ts": "2026-01-11T14:31:00.000000Z", "type": "event", "content": "Hi"}


def test_limits_beyond_any_session_are_like_the_highest() -> None:
    assert limit_of(10**30) == limit_of(2**53)
    assert limit_of(None) is None


def test_names_may_come_from_any_iterable() -> None:
    assert names_of((name for name in "ab"), "types") == ("a", "b")
    assert names_of(None, "types") is None
