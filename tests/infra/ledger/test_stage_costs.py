import sqlite3
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.errors import LedgerError
from infra.ledger.ledger import Intent, Ledger
from infra.ledger.stage_costs import StageBook

START = datetime(2026, 11, 21, 1, 0, tzinfo=UTC)


class Hands:
    """A clock that is set by the test."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def ledger(tmp_path: Path, clock: Hands) -> Ledger:
    book = Ledger(tmp_path / "ledger.sqlite", clock)
    book.intend("l-1", Intent("night", "local", 6.0, START + timedelta(hours=2)))
    book.hold("l-1", "m-1")
    return book


def test_a_lease_has_the_cost_of_each_stage(tmp_path: Path, ledger: Ledger, clock: Hands) -> None:
    stages = StageBook(tmp_path / "ledger.sqlite", clock)
    clock.sleep(600)
    with stages.stage("l-1", "model"):
        clock.sleep(1200)
    with stages.stage("l-1", "measure", "abc/0"):
        clock.sleep(1500)
    clock.sleep(300)
    ledger.mark_released("l-1")

    found = stages.costs(ledger.lease("l-1"))

    assert [(cost.stage, cost.run, round(cost.usd or 0, 6)) for cost in found] == [
        ("boot", None, 1.0),
        ("model", None, 2.0),
        ("measure", "abc/0", 2.5),
        ("release", None, 0.5),
    ]
    assert sum(cost.usd or 0 for cost in found) == pytest.approx(ledger.lease("l-1").usd(clock.now()))


def test_a_stage_that_fails_has_an_end(tmp_path: Path, ledger: Ledger, clock: Hands) -> None:
    stages = StageBook(tmp_path / "ledger.sqlite", clock)
    with suppress(ZeroDivisionError), stages.stage("l-1", "model"):
        clock.sleep(60)
        raise ZeroDivisionError

    (span,) = stages.spans(ledger.lease("l-1").lease_id)

    assert span.ended_at == START + timedelta(seconds=60)


def test_a_lease_without_a_machine_has_no_stages(tmp_path: Path, clock: Hands) -> None:
    book = Ledger(tmp_path / "ledger.sqlite", clock)
    book.intend("l-2", Intent("night", "local", 6.0, START))

    assert StageBook(tmp_path / "ledger.sqlite", clock).costs(book.lease("l-2")) == ()


def test_without_a_ledger_no_stage_starts(tmp_path: Path, ledger: Ledger) -> None:
    del ledger
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"no ledger at all" * 100)

    begun = []
    with pytest.raises(LedgerError, match="no stage is started"), StageBook(path).stage("l-1", "model"):
        begun.append(1)

    assert begun == []


def test_a_stage_end_that_cannot_be_written_is_ignored(tmp_path: Path, ledger: Ledger) -> None:
    path = tmp_path / "ledger.sqlite"
    stages = StageBook(path)

    with stages.stage("l-1", "measure"), sqlite3.connect(path) as other:
        other.execute("DROP TABLE stages")
        other.execute("CREATE VIEW stages AS SELECT 1 AS number, 2 AS ended_at")

    assert ledger.lease("l-1").machine_id == "m-1"
