"""Prefect's server is killed or stopped while a night measures: the night ends as it would have, and says so."""

import json
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import prefect
import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings

from bench.closing import GOOD_VERDICTS
from flows.dead_runs import report_dead_runs
from flows.lost_server import run_to_its_end
from tests.flows.conftest import NightFixture
from tests.flows.serving import PATIENCE_S, Service, free_port, is_healthy, migrated, start_server
from tests.pairs import matrix
from warehouse.lake.query import run_sql

pytestmark = pytest.mark.prefect


def healthy_server(home: Path, port: int) -> Service:
    server, url = start_server(home, port)
    server.wait_until(lambda: is_healthy(url), "the server is healthy")
    return server


class Busy(BaseHTTPRequestHandler):
    """A server that takes longer for an answer than a restart takes."""

    def do_GET(self) -> None:
        time.sleep(1.0)
        answer = json.dumps(prefect.__version__).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def test_a_busy_server_is_not_a_lost_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.lost_server.RESTART_S", 0.1)
    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with temporary_settings({PREFECT_API_URL: f"http://127.0.0.1:{server.server_port}/api"}):
            assert run_to_its_end(tmp_path, lambda: "the night", lambda: None) == "the night"
        server.shutdown()


def send(server: Service, number: signal.Signals) -> None:
    for process in server.living():
        process.send_signal(number)


@pytest.mark.parametrize("number", matrix([signal.SIGSTOP, signal.SIGKILL], 1))
def test_a_night_whose_server_is_lost_while_it_measures_is_loaded_and_reported_and_the_server_hears_of_it_later(
    house: NightFixture, tmp_path: Path, shared: Path | None, number: signal.Signals
) -> None:
    port = free_port()
    home = migrated(tmp_path / "server", shared)
    server = healthy_server(home, port)
    url = house.environment["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"
    house.environment["PREFECT_API_REQUEST_TIMEOUT"] = "20"  # a stopped server is waited for as long as a busy one
    house.write_suite(ttft_ms=200)
    process = house.start("run", str(house.suite))
    server.wait_until(lambda: bool(list(house.data.glob("runs/*/*/.partial-*/load/progress.json"))), "it measures")

    send(server, number)
    out, err = process.communicate(timeout=PATIENCE_S)

    outcomes = run_sql(house.data, "SELECT outcome FROM measurements").rows
    assert [outcome for (outcome,) in outcomes] == ["measured", "measured"], err
    good = {verdict for (verdict,) in run_sql(house.data, "SELECT verdict FROM results").rows} <= GOOD_VERDICTS
    assert process.returncode == (0 if good else 1), err
    assert "Prefect's server does not respond. This run is over" in err
    assert f"report: {house.data}" in out
    assert house.leftovers() == []

    if number == signal.SIGKILL:
        server.stop()
        server = healthy_server(home, port)
    else:
        send(server, signal.SIGCONT)
    with temporary_settings({PREFECT_API_URL: url}), get_client(sync_client=True) as client:
        (reported,) = report_dead_runs(house.data)
        (run,) = client.read_flow_runs()
    assert reported.sentence == f"flow run {run.name} ended as {run.state_name} while the server did not respond"
    assert run.state_name == "Completed" if good else run.state_name in {"Rejected", "Failed"}
    assert report_dead_runs(house.data) == []
    server.stop()
