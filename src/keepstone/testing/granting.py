"""Store check: grants are kept in order, and removed with either agent."""

from __future__ import annotations

from datetime import timedelta

from keepstone.store.sharing.grants import Grant
from keepstone.testing.clock import START
from keepstone.testing.making import AGENT, OTHER, Factory, record, same


def check_grants(factory: Factory) -> None:
    """Grants are returned in the order of writing, and removed with the agent that gave or received them."""
    with factory() as store:
        same([store.has_agents], [True], "there may be several agents")
        same(store.grants("none"), [], "an unknown agent grants nothing")
        later = Grant(OTHER, "read", until=START + timedelta(days=9), ts=START + timedelta(days=1))
        first = Grant("third", "write", ("note",), ("a\0b", "é"), None, "Ada", ts=START)
        store.append(OTHER, "s1", [record("a", "walnut")])
        store.add_grant(AGENT, later)
        store.add_grant(AGENT, first)
        same(store.grants(AGENT), [later, first], "in the order of writing")
        revoked = Grant(OTHER, "nothing", ts=START)
        store.add_grant(AGENT, revoked, drop_later=False)
        same(store.grants(AGENT), [later, first, revoked], "later ones stay if they are to")
        store.add_grant(AGENT, revoked)
        same(store.grants(AGENT), [first, revoked, revoked], "later ones to the same agent go")
        store.add_grant(OTHER, first)
        store.purge_agent(OTHER)
        same(store.grants(AGENT), [first], "what was granted to a purged agent is gone")
        same(store.grants(OTHER), [], "what a purged agent granted is gone")
