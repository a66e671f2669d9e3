"""Rate limit of failed authentications per client address."""

from keepstone.server.rate_limit import MOST, WINDOW, Failures


def test_an_address_waits_from_its_last_allowed_failure_on() -> None:
    now = 0.0
    failures = Failures(lambda: now)
    for _ in range(MOST):
        assert failures.wait("a") == 0.0
        failures.record("a")
    assert failures.wait("a") == WINDOW
    assert failures.wait("b") == 0.0


def test_failures_are_forgotten_after_a_while() -> None:
    now = 0.0
    failures = Failures(lambda: now)
    for _ in range(MOST):
        failures.record("a")
    now = WINDOW
    assert failures.wait("a") == 0.0


def test_addresses_are_not_remembered_without_end() -> None:
    failures = Failures(lambda: 0.0)
    for number in range(10_100):
        failures.record(str(number))
    assert len(failures._times) == 10_000  # noqa: SLF001  Memory is what is bounded.
