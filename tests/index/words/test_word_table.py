"""Words are found in every language, and only in texts that still have them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepstone
from keepstone import Agent
from keepstone.index import index
from keepstone.index.database import Database
from keepstone.index.words import word_table


@pytest.fixture(params=["by the table", "by postings"])
def agent(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """An agent whose words are ranked as those of a small index, or of a large one."""
    if request.param == "by postings":
        monkeypatch.setattr(index, "LARGE", 0)
    with keepstone.open(tmp_path, durability="os") as home:
        yield home.agent("a")


def found(agent: Agent, query: str) -> set[str]:
    """The ids of entries that hold words of the query themselves."""
    return {hit.entry.id for hit in agent.recall(query, limit=99) if "words" in hit.why.ranks}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们决定使用东京的服务器", "服务器"),
        ("我们决定使用东京的服务器", "东京"),
        ("我们决定使用东京的服务器", "器"),
        ("我们决定使用东京的服务器", "我"),
        ("東京都に住んでいます", "東京都"),
        ("東京都に住んでいます", "住"),
        ("データベースはPostgreSQLです", "データベース"),
        ("データベースはPostgreSQLです", "postgresql"),
        ("서울에서 회의를 했다", "회의"),
        ("서울에서 회의를 했다", "울"),
        ("𠮷野家で食べた", "𠮷野家"),
        ("ﬁle names in Größe", "größe"),
        ("Café crème", "cafe"),
        ("Cafe\u0301 cre\u0300me", "café"),
        ("Ελληνικά και Русский", "русский"),
        ("the deployments were failing", "deployment fails"),
        ("version 3.11 of snake_case_name", "snake"),
        ("mail joe@example.org", "joe@example.org"),
    ],
)
def test_a_word_of_any_language_is_found(agent: Agent, text: str, query: str) -> None:
    agent.session("s").add_many(
        [
            {"type": "event", "id": "other", "content": "無関係な文 nothing"},
            {"type": "event", "id": "it", "content": text},
        ]
    )
    assert found(agent, query) == {"it"}


def test_characters_in_another_order_are_not_the_same_word(agent: Agent) -> None:
    agent.session("s").add("note", {"content": "東京"}, id="it")
    assert found(agent, "京東") == set()


QUERY_PIECES = st.sampled_from(
    ['"', " OR ", " NEAR(", " NOT ", "*", ":", "^", "(", ")", "-", "+", "{", "}", "'", "\0", "\ud800"]
)


@given(
    st.lists(
        QUERY_PIECES | st.text(max_size=8) | st.sampled_from(["walnut", "words", "near", "東"]), max_size=8
    )
)
def test_no_query_is_a_syntax_error(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    with keepstone.open(tmp_path_factory.getbasetemp() / "queried", durability="os") as home:
        home.agent("a").session("s").add("note", {"content": "walnut"}, id="it")
        assert "it" in found(home.agent("a"), "".join(["walnut ", *pieces]))
        home.agent("a").recall("".join(pieces))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_an_entry_is_found_by_its_own_text_and_only_itself(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    with keepstone.open(tmp_path_factory.mktemp("home"), durability="os") as home:
        agent = home.agent("a")
        said = f"walnut {text} walnut"  # No question: one that was asked before does not count as found.
        agent.session("s").add("note", {"content": said}, id="it")
        assert "it" in found(agent, said)
        agent.purge("it")
        agent.session("s").add("note", {"content": "pecan"}, id="other")
        assert found(agent, said) <= {"other"}


@pytest.mark.parametrize("flushed", [True, False])
@pytest.mark.parametrize("act", ["delete", "purge", "replace", "clear and add"])
def test_words_that_went_are_not_found_and_all_others_are(agent: Agent, act: str, flushed: bool) -> None:  # noqa: FBT001
    session = agent.session("s")
    session.add_many(
        [{"type": "event", "id": str(n), "content": f"walnut{n} shared{n // 3}"} for n in range(9)]
    )
    if flushed:
        agent.recall("walnut1")
    if act == "clear and add":
        session.clear()
        session.add_many(
            [{"type": "event", "id": str(n), "content": f"walnut{n}"} for n in range(9) if n != 4]
        )
    elif act == "replace":
        session.update("4", data={"content": "pecan"})
    else:
        getattr(session, act)("4")
    assert found(agent, "walnut4") == set()
    assert [found(agent, f"walnut{n}") for n in range(9) if n != 4] == [{str(n)} for n in range(9) if n != 4]
    assert found(agent, "pecan") == ({"4"} if act == "replace" else set())


def test_a_neighbour_no_longer_lends_words_that_it_lost(agent: Agent) -> None:
    session = agent.session("s")
    session.add_many(
        [
            {"type": "event", "id": name, "content": text}
            for name, text in zip("abc", ["one", "walnut", "two"], strict=True)
        ]
    )
    assert {hit.entry.id for hit in agent.recall("walnut")} == {"a", "b", "c"}
    session.update("b", data={"content": "pecan"})
    assert agent.recall("walnut") == []


def test_neighbours_come_from_the_same_session_only(agent: Agent) -> None:
    for n in range(3):
        agent.session("s1").add("note", {"content": f"walnut {n}"}, id=f"w{n}")
        agent.session("s2").add("note", {"content": f"other {n}"}, id=f"o{n}")
    assert {hit.entry.session for hit in agent.recall("walnut")} == {"s1"}


def test_words_of_half_the_entries_are_left_out_only_while_they_are_that_common(agent: Agent) -> None:
    items = (
        {"type": "note", "id": f"n{n}", "content": f"walnut {'oak' if n == 7 else n}"} for n in range(1200)
    )
    agent.session("s").add_many(items)
    assert found(agent, "walnut oak") == {"n7"}

    agent.session("s").clear()
    agent.session("s").add("note", {"content": "walnut"}, id="left")
    assert found(agent, "walnut oak") == {"left"}
    assert found(agent, "walnut") == {"left"}


def test_dropping_many_rows_costs_few_changes_of_the_table(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, durability="os", embedder="none") as home:
        texts = [" ".join(f"word{n * place % 997}" for place in range(1, 21)) for n in range(1000)]
        home.agent("a").session("s").add_many({"type": "note", "text": text} for text in texts)
        home.sync()
    database = Database(next(tmp_path.glob(".index/a/*/index.db")))
    before = database.connection.total_changes()
    with database.writing():
        word_table.drop(database, list(range(1, 501)))
    while not word_table.merge(database):
        pass
    assert database.connection.total_changes() - before < 3 * 500
