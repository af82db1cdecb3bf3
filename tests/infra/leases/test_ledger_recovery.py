"""A corrupt ledger is replaced once, however many processes find it at the same time."""

import fcntl
import os
from datetime import timedelta
from pathlib import Path

import pytest

from infra.clock import SystemClock
from infra.leases.ledger_recovery import open_ledger
from infra.ledger.ledger import Intent, Ledger
from infra.reporting import silent
from tests.forked import ended, forked

PROCESSES = 6


@pytest.fixture
def corrupt(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"no database" * 1000)
    return path


def _intend(ledger: Ledger, lease_id: str) -> None:
    ledger.intend(lease_id, Intent("2026-03-01", "digitalocean", 2.0, SystemClock().now() + timedelta(hours=1)))


def test_who_finds_a_corrupt_ledger_keeps_the_one_that_another_process_put_in_its_place(corrupt: Path) -> None:
    said: list[str] = []
    with (corrupt.parent / "ledger.sqlite.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def say(line: str) -> None:  # called while it waits for the lock
            said.append(line)
            corrupt.rename(corrupt.with_name("aside"))
            _intend(Ledger(corrupt), "theirs")
            fcntl.flock(lock, fcntl.LOCK_UN)

        found = open_ledger(corrupt, SystemClock(), say)

    assert [lease.lease_id for lease in found.leases()] == ["theirs"]
    assert len(said) == 1
    assert "waiting for it" in said[0]
    assert list(corrupt.parent.glob("*.broken-*")) == []


def test_a_flipped_bit_in_a_text_loses_no_lease(tmp_path: Path) -> None:
    path, said = tmp_path / "ledger.sqlite", list[str]()
    for lease_id in ("damaged", "whole"):
        _intend(Ledger(path), lease_id)
    raw = bytearray(path.read_bytes())
    raw[raw.find(b"damaged2026-03-01") + len("damaged")] ^= 0x80
    path.write_bytes(raw)

    found = open_ledger(path, SystemClock(), said.append)

    assert {lease.lease_id: lease.night for lease in found.leases()} == {
        "damaged": "\ufffd026-03-01",
        "whole": "2026-03-01",
    }
    assert said == []


def test_of_many_who_find_a_corrupt_ledger_at_once_none_loses_a_lease(corrupt: Path) -> None:
    waiting, start = os.pipe()

    def rent(number: int) -> None:
        os.close(start)
        os.read(waiting, 1)  # until the test closes its end
        _intend(open_ledger(corrupt, SystemClock(), silent), f"lease {number}")

    children = [forked(rent, number) for number in range(PROCESSES)]
    os.close(start)

    assert [ended(child) for child in children] == [0] * PROCESSES
    assert len(Ledger(corrupt).leases()) == PROCESSES
    assert len(list(corrupt.parent.glob("*.broken-*"))) == 1
