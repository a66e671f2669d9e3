"""Conformance suite for stores, and a clock for tests.

Every ``Store`` follows one contract (``keepstone.store.protocol``), and these checks test it. Keepstone's own
stores pass them. To run them on your own store:

Examples:
    >>> import pytest
    >>> @pytest.mark.parametrize("check", keepstone.testing.CHECKS)
    ... def test_my_store_keeps_the_contract(check, tmp_path):
    ...     check(lambda: closing(MyStore(tmp_path)))

Recall queries a ``Reader``, which ``Store.reader(agent, as_of=None)`` returns as a context manager. A reader
pins one state of an agent's index, now or at a past time. Its keys are integers chosen by the store. A key is
valid in every reader of the agent until the store assigns keys again, as a rebuild may do. From then on a
reader raises ``keepstone.store.reader.ExpiredError`` for the key, and ``keepstone.store.reader.with_reader``
repeats the query. A store that never reuses row numbers can use them as keys.

A check takes a factory. Each call of the factory returns a context manager that opens an empty store. The
store only needs to support the agent ``default``, except in ``CHECKS_OF_TWO_AGENTS``. A check that fails
raises ``AssertionError``.
"""

from __future__ import annotations

from keepstone.testing.clock import START, ManualClock
from keepstone.testing.finding import (
    check_ask,
    check_counts_and_links,
    check_history,
    check_keys,
    check_matching_and_pinned,
    check_neighbours,
    check_neighbours_of_deleted,
    check_pinned_and_standing,
    check_search,
    check_search_follows_changes,
    check_search_in_scope,
    check_search_in_the_past,
    check_time_travel_and_archive,
)
from keepstone.testing.granting import check_grants
from keepstone.testing.lifecycle import (
    check_changes,
    check_copy_and_fork,
    check_lines,
    check_rename,
    check_rename_over_ended_lives,
    check_restore,
    check_titles,
)
from keepstone.testing.maintenance import check_backup, check_rebuild_and_doctor
from keepstone.testing.making import Check, Factory
from keepstone.testing.purge import (
    check_clear_and_remove,
    check_isolation,
    check_purge,
    check_purge_of_an_agent,
    check_selected_entries_still_match,
    check_servers,
    check_suggestions,
)
from keepstone.testing.selecting import check_delete_many, check_select, check_select_pages
from keepstone.testing.vectors import (
    check_cosine_quartiles,
    check_drop_and_counts,
    check_made_vectors,
    check_similar,
    check_spaces,
    check_upkeep,
    check_vectors_follow_changes,
)
from keepstone.testing.writing import (
    check_append_and_entries,
    check_append_is_all_or_nothing,
    check_append_of_a_known_id,
    check_delete,
    check_files,
    check_missing_things,
    check_modify,
    check_names,
    check_order_and_limits,
    check_pages,
    check_put_makes_or_replaces,
    check_puts_and_patches,
    check_revise,
    check_sessions,
    check_threads,
)

__all__ = [
    "CHECKS",
    "CHECKS_OF_TWO_AGENTS",
    "START",
    "Check",
    "Factory",
    "ManualClock",
    "check_append_and_entries",
    "check_append_is_all_or_nothing",
    "check_append_of_a_known_id",
    "check_ask",
    "check_backup",
    "check_changes",
    "check_clear_and_remove",
    "check_copy_and_fork",
    "check_counts_and_links",
    "check_delete",
    "check_delete_many",
    "check_drop_and_counts",
    "check_files",
    "check_grants",
    "check_history",
    "check_isolation",
    "check_keys",
    "check_lines",
    "check_made_vectors",
    "check_matching_and_pinned",
    "check_missing_things",
    "check_modify",
    "check_names",
    "check_neighbours",
    "check_neighbours_of_deleted",
    "check_order_and_limits",
    "check_pages",
    "check_pinned_and_standing",
    "check_purge",
    "check_purge_of_an_agent",
    "check_put_makes_or_replaces",
    "check_puts_and_patches",
    "check_rebuild_and_doctor",
    "check_rename",
    "check_rename_over_ended_lives",
    "check_restore",
    "check_revise",
    "check_search",
    "check_search_follows_changes",
    "check_search_in_scope",
    "check_search_in_the_past",
    "check_select",
    "check_select_pages",
    "check_selected_entries_still_match",
    "check_servers",
    "check_sessions",
    "check_similar",
    "check_spaces",
    "check_store",
    "check_suggestions",
    "check_threads",
    "check_time_travel_and_archive",
    "check_titles",
    "check_upkeep",
    "check_vectors_follow_changes",
]

CHECKS: tuple[Check, ...] = (
    check_append_and_entries,
    check_append_is_all_or_nothing,
    check_append_of_a_known_id,
    check_puts_and_patches,
    check_put_makes_or_replaces,
    check_modify,
    check_revise,
    check_delete,
    check_order_and_limits,
    check_pages,
    check_missing_things,
    check_sessions,
    check_files,
    check_threads,
    check_search,
    check_search_in_scope,
    check_search_follows_changes,
    check_neighbours,
    check_neighbours_of_deleted,
    check_counts_and_links,
    check_pinned_and_standing,
    check_history,
    check_time_travel_and_archive,
    check_rebuild_and_doctor,
    check_purge,
    check_selected_entries_still_match,
    check_clear_and_remove,
    check_similar,
    check_cosine_quartiles,
    check_vectors_follow_changes,
    check_made_vectors,
    check_upkeep,
    check_drop_and_counts,
    check_names,
    check_search_in_the_past,
    check_matching_and_pinned,
    check_keys,
    check_ask,
    check_spaces,
    check_backup,
    check_restore,
    check_titles,
    check_rename,
    check_rename_over_ended_lives,
    check_copy_and_fork,
    check_lines,
    check_changes,
    check_select,
    check_select_pages,
    check_delete_many,
    check_servers,
)
"""The checks that every store must pass, also one that supports only the agent ``default``."""

CHECKS_OF_TWO_AGENTS: tuple[Check, ...] = (
    check_isolation,
    check_purge_of_an_agent,
    check_suggestions,
    check_grants,
)
"""The checks that need a second agent."""


def check_store(factory: Factory, *, several_agents: bool = True) -> None:
    """Run every check; without ``several_agents``, only the checks that need one agent."""
    for check in CHECKS + (CHECKS_OF_TWO_AGENTS if several_agents else ()):
        check(factory)
