"""An older ledger is upgraded as a whole or not at all, whenever its upgrade is killed."""

import hashlib
import os
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from bench.errors import LedgerError
from infra.clock import SystemClock
from infra.ledger.database import transaction
from infra.ledger.ledger import Intent, Ledger
from infra.ledger.schema import SCHEMA, VERSION, bring_up_to_date
from tests.forked import ended, forked
from tests.infra.ledger.upgrades import (
    make_older,
    upgrade_killed_before_instruction,
    upgrade_killed_before_statement,
)
from tests.pairs import IS_SOAK

Upgrade = Callable[[Path, int], None]
# The tables of this version. If this fails, raise VERSION, test the upgrade from the version before, then correct it.
TABLES = (3, "79108a40")


@pytest.fixture
def older(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A ledger of the first version, or of the one that a test names, with an open lease and one that is over."""
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    for lease_id in ("open", "over"):
        ledger.intend(lease_id, Intent("2026-03-01", "digitalocean", 2.0, SystemClock().now() + timedelta(hours=1)))
        ledger.hold(lease_id, f"machine of {lease_id}")
    ledger.mark_released("over")
    make_older(path, getattr(request, "param", 0))
    return path


def leases(path: Path) -> list[tuple[str, str | None, str]]:
    return sorted((lease.lease_id, lease.machine_id, lease.state) for lease in Ledger(path).leases())


LEASES = [("open", "machine of open", "held"), ("over", "machine of over", "released")]


def test_the_tables_have_the_version_that_they_were_given() -> None:
    assert (VERSION, hashlib.sha256(SCHEMA.encode()).hexdigest()[:8]) == TABLES


@pytest.mark.parametrize("older", range(VERSION), indirect=True)
def test_an_older_ledger_keeps_every_lease(older: Path) -> None:
    before = older.read_bytes()

    assert leases(older) == LEASES
    upgraded = older.read_bytes()
    assert upgraded != before
    assert leases(older) == LEASES
    assert older.read_bytes() == upgraded


# A statement's instructions are far more than its statements: one in forty in `make test`, every one in `make soak`.
@pytest.mark.parametrize(
    ("upgrade", "every"),
    [(upgrade_killed_before_statement, 1), (upgrade_killed_before_instruction, 1 if IS_SOAK else 40)],
    ids=["statement", "instruction"],
)
def test_an_upgrade_that_is_killed_at_any_moment_forgets_no_lease(older: Path, upgrade: Upgrade, every: int) -> None:
    whole = older.read_bytes()
    moment = 0
    while ended(forked(upgrade, older, moment)) != 0:
        assert leases(older) == LEASES, f"killed before {moment}"
        older.write_bytes(whole)
        moment += every

    assert leases(older) == LEASES
    assert moment >= 10  # moments at which it was killed


@pytest.mark.parametrize("killed_after", range(1, 5))
def test_a_ledger_that_an_earlier_version_left_half_upgraded_gets_its_leases_back(
    older: Path, killed_after: int
) -> None:
    names = ", ".join(_columns(older))
    steps = [
        "ALTER TABLE leases RENAME TO older",
        SCHEMA.partition(";")[0],
        f"INSERT INTO leases ({names}) SELECT {names} FROM older",
        "UPDATE leases SET state = 'releasing' WHERE lease_id = 'open'",  # what a night did since then counts
    ]
    connection = sqlite3.connect(older, isolation_level=None)
    for step in steps[:killed_after]:
        connection.execute(step)
    connection.close()

    state = "releasing" if killed_after == len(steps) else "held"
    assert leases(older) == [("open", "machine of open", state), LEASES[1]]


def _columns(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    names = [row[1] for row in connection.execute("PRAGMA table_info(leases)")]
    connection.close()
    return names


def test_a_ledger_may_be_opened_while_another_process_upgrades_it(older: Path) -> None:
    begun, begin = os.pipe()

    def upgrade() -> None:
        with transaction(older, "a test") as connection:
            connection.set_trace_callback(lambda statement: statement.startswith("ALTER") and os.write(begin, b"!"))
            bring_up_to_date(connection)

    child = forked(upgrade)
    os.read(begun, 1)

    assert leases(older) == LEASES
    assert ended(child) == 0


def test_the_ledger_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger(path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.execute("ALTER TABLE leases ADD COLUMN colour TEXT")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(LedgerError, match=f"version {VERSION + 1} .* reads version {VERSION}"):
        Ledger(path)

    assert path.read_bytes() == before
