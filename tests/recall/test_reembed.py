"""Making the vectors of a home that are missing, or all of them again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.recall.concepts import Concepts

import keepstone
from keepstone import Home


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A home of 200 entries in two agents, with vectors."""
    with keepstone.open(tmp_path, embedder=Concepts(), durability="os") as home:
        for agent in ("a", "b"):
            home.agent(agent).session("s").add_many(
                {"type": "event", "content": f"brother {n}"} for n in range(100)
            )
        home.embed()
    return tmp_path


def pending(home: Home) -> list[int]:
    return [home.agent(agent).recall("nothing", limit=1).pending for agent in ("a", "b")]


def test_missing_vectors_are_made_and_the_progress_is_reported(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with keepstone.open(tmp_path, embedder=Concepts(), durability="os") as home:
        home.agent("a").session("s").add_many(
            {"type": "event", "content": f"brother {n}"} for n in range(150)
        )
        assert home.embed(lambda done, total: told.append((done, total))) == 150
        assert (home.embed(), told) == (0, [(64, 150), (128, 150), (150, 150)])


def test_without_an_embedder_missing_vectors_cannot_be_made(tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home, pytest.raises(keepstone.EmbedderUnavailableError):
        home.embed()


def test_another_embedder_becomes_the_homes_when_all_vectors_are_made(root: Path) -> None:
    other = Concepts("others")
    with keepstone.open(root) as home:
        assert home.reembed(other) == 200
    with pytest.raises(keepstone.SpaceMismatchError):
        keepstone.open(root, embedder=Concepts())
    with keepstone.open(root, embedder=Concepts("others")) as home:
        hits = home.agent("b").recall("my sibling", limit=50)
        assert (hits.embedder, hits.pending, len(hits)) == ("others", 0, 50)


class Stop(Exception):  # noqa: N818  What a progress callback of ours raises.
    pass


def test_an_agent_in_use_has_the_new_space_at_once(root: Path) -> None:
    with keepstone.open(root) as home:
        vectors = home.agent("a").vectors()
        before = vectors.space()
        home.reembed(Concepts("others"))
        after = vectors.space()
    assert [space and space.id for space in (before, after)] == [Concepts().id, "others"]


def test_a_change_of_embedder_that_is_stopped_changes_nothing_and_is_taken_up(root: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done > total // 2:
            raise Stop

    other = Concepts("others")
    with keepstone.open(root, embedder=Concepts()) as home:
        with pytest.raises(Stop):
            home.reembed(other, stop)
        hits = home.agent("a").recall("my sibling")
        assert (hits.embedder, hits.pending) == ("concepts", 0)
        assert 0 < home.reembed(other) < 200
    assert len(other.asked) == 200


def test_the_vectors_of_the_embedder_before_are_thrown_away(root: Path) -> None:
    with keepstone.open(root) as home:
        home.reembed(Concepts("others"))
        home.reembed(Concepts("thirds"))
        assert home.reembed(Concepts("others")) == 200


def test_an_unknown_embedder_to_change_to_is_refused(root: Path) -> None:
    with keepstone.open(root) as home:
        with pytest.raises(ValueError, match="unknown embedder"):
            home.reembed("nothing")
        with pytest.raises(keepstone.EmbedderUnavailableError):
            home.reembed("none")


def test_an_index_that_was_deleted_gets_its_vectors_again(root: Path) -> None:
    import shutil

    shutil.rmtree(root / ".index")
    with keepstone.open(root, embedder=Concepts()) as home:
        assert home.embed() == 200
        assert pending(home) == [0, 0]
