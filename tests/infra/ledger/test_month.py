"""The month's budget: what leases cost and reserve, and the lease that no longer fits."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.errors import BudgetError
from infra.leases.used import kept_costs
from infra.ledger.ledger import Intent, Ledger
from infra.ledger.month import month_spending
from infra.ledger.volumes import VolumeBook
from tests.emulators.virtual_clock import VirtualClock

START = datetime(2026, 11, 20, 2, tzinfo=UTC)


@pytest.fixture
def clock(tmp_path: Path) -> VirtualClock:
    return VirtualClock(tmp_path / "clock", START.timestamp())


@pytest.fixture
def ledger(tmp_path: Path, clock: VirtualClock) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite", clock)


def intent(clock: VirtualClock, month_usd_max: float | None = 10.0, usd_per_hour: float = 3.0) -> Intent:
    """A machine for two hours."""
    lasts = timedelta(hours=2)
    return Intent(
        night="n",
        cloud="digitalocean",
        usd_per_hour=usd_per_hour,
        expires_at=clock.now() + lasts,
        lasts_s=lasts.total_seconds(),
        month_usd_max=month_usd_max,
    )


def rent(ledger: Ledger, clock: VirtualClock, lease_id: str) -> None:
    ledger.intend(lease_id, intent(clock))
    ledger.hold(lease_id, f"machine-{lease_id}")


def test_an_open_lease_reserves_its_whole_time_so_that_two_cannot_exceed_the_month_together(
    ledger: Ledger, clock: VirtualClock
) -> None:
    rent(ledger, clock, "a")

    with pytest.raises(BudgetError, match=r"0\.00 USD are spent in 2026-11 and up to 6\.00 USD are reserved .* 6\.00"):
        ledger.intend("b", intent(clock))

    assert [lease.lease_id for lease in ledger.leases()] == ["a"]
    assert ledger.attempts("b") == []


def test_what_a_released_lease_did_not_use_is_free_again(ledger: Ledger, clock: VirtualClock) -> None:
    rent(ledger, clock, "a")
    clock.sleep(3600)
    ledger.mark_released("a")

    rent(ledger, clock, "b")

    spending = month_spending(ledger.leases(), clock.now(), 10.0)
    assert spending.spent_usd == pytest.approx(3.0)
    assert spending.reserved_usd == pytest.approx(6.0)


def test_a_new_month_begins_with_nothing_spent(ledger: Ledger, clock: VirtualClock) -> None:
    rent(ledger, clock, "a")
    clock.sleep(2 * 3600)
    ledger.mark_released("a")
    with pytest.raises(BudgetError):
        ledger.intend("b", intent(clock))

    clock.sleep(11 * 24 * 3600)
    rent(ledger, clock, "b")

    assert month_spending(ledger.leases(), clock.now(), 10.0).spent_usd == 0.0


def test_a_further_attempt_of_a_lease_counts_once_with_what_the_earlier_one_cost(
    ledger: Ledger, clock: VirtualClock
) -> None:
    rent(ledger, clock, "a")
    clock.sleep(3600)
    ledger.end_attempt("a", "stuck", "it never became active")

    with pytest.raises(BudgetError, match=r"this lease may cost 9\.00 USD"):
        ledger.intend("a", replace(intent(clock, month_usd_max=8.0), attempt=2))
    ledger.intend("a", replace(intent(clock, month_usd_max=9.0), attempt=2))


def test_a_lease_that_waited_for_capacity_reserves_the_time_from_its_last_request_on(
    ledger: Ledger, clock: VirtualClock
) -> None:
    ledger.intend("a", intent(clock))
    ledger.end_attempt("a", "no-capacity", "sold out")
    clock.sleep(10 * 3600)
    ledger.intend("a", replace(intent(clock), attempt=2))

    spending = month_spending(ledger.leases(), clock.now(), 10.0)

    assert spending.reserved_usd == pytest.approx(6.0)


def test_a_lease_that_waited_for_capacity_into_the_next_month_counts_there(ledger: Ledger, clock: VirtualClock) -> None:
    ledger.intend("a", intent(clock))
    ledger.end_attempt("a", "no-capacity", "sold out")
    clock.sleep(11 * 24 * 3600)
    ledger.intend("a", replace(intent(clock), attempt=2))

    with pytest.raises(BudgetError, match=r"up to 6\.00 USD are reserved"):
        ledger.intend("b", intent(clock))


def test_a_machine_without_a_price_and_a_month_without_a_limit_are_never_refused(
    ledger: Ledger, clock: VirtualClock
) -> None:
    rent(ledger, clock, "a")

    ledger.intend("b", intent(clock, usd_per_hour=0.0))
    ledger.intend("c", intent(clock, month_usd_max=None))


def test_a_volume_counts_to_the_end_of_the_month_and_one_that_is_gone_until_then(
    ledger: Ledger, clock: VirtualClock
) -> None:
    volumes = VolumeBook(ledger.path, clock)
    for name in ("kept", "deleted", "never made"):
        volumes.intend("digitalocean", name, 672)  # GiB, which is 0.10 USD an hour
    volumes.mark_made("digitalocean", "kept", "v1")
    volumes.mark_made("digitalocean", "deleted", "v2")
    clock.sleep(10 * 3600)
    volumes.mark_gone("digitalocean", "deleted")

    kept = kept_costs(volumes, {}, None, clock.now())

    assert kept.usd == pytest.approx(
        0.10 * (10 * 24 + 22) + 0.10 * 10
    )  # from 2 o'clock on the 20th of a month of 30 days
    assert kept_costs(volumes, {}, None, clock.now() + timedelta(days=20)).usd == pytest.approx(0.10 * 31 * 24)
    with pytest.raises(
        BudgetError, match=r"0\.00 USD are spent in 2026-11 \(what is kept: volumes 27\.20 USD to its end\), and"
    ):
        ledger.intend("a", replace(intent(clock, month_usd_max=30.0), kept=kept))
    ledger.intend("a", replace(intent(clock, month_usd_max=34.0), kept=kept))
