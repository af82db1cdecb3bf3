"""A server that keeps to no interface costs the runs on it, and neither the night nor the wait of who stops it."""

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from urllib.parse import urlsplit
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
from infra.storage.store import PARTIAL
from tests.emulators.strange_server import forwarded, strange_server
from tests.flows.conftest import NightFixture
from tests.flows.test_endpoint import write_suite
from tests.meter.conftest import StartTruth, start_truth

__all__ = ["start_truth"]  # a fixture
DROP_S = 0.05
STOPPED_WITHIN_S = 10.0  # a read's own deadline is as long: one that waits for it has all those drops
STOP_PATIENCE_S = 120.0  # for a busy computer, on which the server drips no faster than the night ends
HEALTHY_REQUESTS = 20  # what a night asks before its load, and a few requests of the load


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


@pytest.mark.parametrize("where", ["before the load", "in the load"])
def test_a_night_reads_no_further_of_a_dripping_server_once_it_is_terminated(
    served: NightFixture, start_truth: StartTruth, where: str
) -> None:
    healthy = 0 if where == "before the load" else HEALTHY_REQUESTS
    is_reached, is_over, requests, drops = threading.Event(), threading.Event(), Counter[bool](), Counter[bool]()
    truth = urlsplit(start_truth().url)

    def answer(request: bytes) -> Iterator[bytes]:
        requests[is_over.is_set()] += 1
        if requests.total() <= healthy:
            yield from forwarded(request, (truth.hostname or "", truth.port or 0))
            return
        is_reached.set()
        yield b"HTTP/1.1 200 OK\r\n"
        while True:
            drops[is_over.is_set()] += 1
            yield b"x"

    with strange_server(answer, DROP_S) as url:
        night = served.start("run", str(write_suite(served)), "--target", url)
        assert is_reached.wait(STOP_PATIENCE_S)
        is_over.set()
        night.send_signal(signal.SIGTERM)
        out, err = night.communicate(timeout=STOP_PATIENCE_S)

    assert night.returncode == 143, out + err
    assert requests[True] == 0
    assert drops[True] * DROP_S < STOPPED_WITHIN_S
    assert [left for left in served.leftovers() if PARTIAL not in left] == []
