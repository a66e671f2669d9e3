"""Names of the copies that sync services make of a file that changed on two devices."""

import pytest

from keepstone.log.conflict_copies import original_of


@pytest.mark.parametrize(
    "copy",
    [
        "main (Ada's conflicted copy 2026-01-11)",
        "main (conflicted copy 2026-01-11 143100)",
        "main (Conflicting copy of laptop)",
        "main (CONFLICTED COPY)",
        "main.sync-conflict-20260111-143100-ABCDEFG",
        "main.sync-conflict-20260111-143100",
    ],
)
def test_a_copy_is_traced_to_its_original(copy: str) -> None:
    assert original_of(copy) == "main"


@pytest.mark.parametrize(
    "name",
    [
        "main",
        "main (2)",
        "main (a conflict of interests)",
        "main.sync-conflict-2026-01-11",
        "about a conflicted copy",
        "main (conflicted copy) later",
        " (conflicted copy)",
    ],
)
def test_any_other_name_is_no_copy(name: str) -> None:
    assert original_of(name) is None


def test_a_copy_of_a_copy_is_traced_one_step() -> None:
    once = "main (conflicted copy 1)"
    assert original_of(f"{once}.sync-conflict-20260111-143100") == once


@pytest.mark.parametrize("name", ["a (b)", "a.b", "café", ".x", "(", "a.sync-conflict-1"])
def test_any_name_is_found_again_from_its_copy(name: str) -> None:
    assert original_of(f"{name} (conflicted copy)") == name
