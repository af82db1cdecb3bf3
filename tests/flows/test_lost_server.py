"""Prefect's server is killed or stopped while a night measures: the night ends as it would have, and says so."""

import signal
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings

from bench.closing import GOOD_VERDICTS
from flows.dead_runs import report_dead_runs
from tests.flows.conftest import NightFixture
from tests.flows.serving import Service, free_port, is_healthy, migrated, start_server
from tests.pairs import matrix
from warehouse.lake.query import run_sql

pytestmark = pytest.mark.prefect


def healthy_server(home: Path, port: int) -> Service:
    server, url = start_server(home, port)
    server.wait_until(lambda: is_healthy(url), "the server is healthy")
    return server


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
    house.write_suite(ttft_ms=200)
    process = house.start("run", str(house.suite))
    server.wait_until(lambda: bool(list(house.data.glob("runs/*/*/.partial-*/load/progress.json"))), "it measures")

    send(server, number)
    out, err = process.communicate(timeout=200)

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
