"""A server that keeps to no interface costs the runs on it, and neither the night nor the wait of who stops it."""

import signal
import threading
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from uuid import uuid4

import pytest

from bench.record import RunRecord
from bench.server_facts import ServerFacts
from flows.nightly import benchmark_machine
from infra.engines import server_facts
from infra.engines.server import RunningServer
from infra.ledger.ledger import Ledger
from infra.loadgen.suite_file import make_night
from infra.storage import store
from tests.emulators.strange_server import strange_server
from tests.flows.conftest import NightFixture
from tests.flows.test_endpoint import write_suite

STOP_PATIENCE_S = 120.0  # a night ends within seconds; the rest is for a busy computer


@pytest.mark.usefixtures("calibrated", "nights_without_prefect")
def test_an_exception_that_nothing_expects_costs_its_run_and_the_night_goes_on(
    house: NightFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Iterator[bool] = chain([True], repeat(False))
    real = server_facts.look

    def look(running: RunningServer) -> ServerFacts:
        if next(looks):
            raise KeyError("data")
        return real(running)

    monkeypatch.setattr("infra.measurement.run.server_facts.look", look)
    night = make_night(house.suite, "local", poc=False)
    store.write_json(store.night_file(house.data, night.night), night)

    benchmark_machine(night, uuid4())

    records = [RunRecord.model_validate_json(path.read_bytes()) for path in records_of(house, night.night)]
    ended = [
        (record.outcome, record.reason and record.reason[:28]) for record in sorted(records, key=lambda r: r.order)
    ]
    assert ended == [("failed", "unexpected KeyError: 'data';"), ("measured", None)]
    assert [lease.state for lease in Ledger(house.data / "ledger.sqlite").leases()] == ["released"]


def records_of(house: NightFixture, night: str) -> list[Path]:
    return list((house.data / "runs" / night).glob("*/*/record.json"))


def test_a_night_before_a_dripping_server_ends_when_it_is_told_to(served: NightFixture) -> None:
    is_reached = threading.Event()

    def drip(_request: bytes) -> Iterator[bytes]:
        is_reached.set()
        return chain([b"HTTP/1.1 200 OK\r\n"], repeat(b"x"))

    with strange_server(drip, 0.2) as url:
        night = served.start("run", str(write_suite(served)), "--target", url)
        assert is_reached.wait(STOP_PATIENCE_S)

        night.send_signal(signal.SIGTERM)

        out, err = night.communicate(timeout=STOP_PATIENCE_S)
    assert night.returncode == 143, out + err
    assert served.leftovers() == []
