"""A client's report against the truth of its run, on logs and reports made by hand."""

from pathlib import Path

import numpy as np
import pytest

from bench.client_error.calibration import LoadCell
from bench.client_error.truth import Truth, read_truth
from bench.errors import CalibrationError
from benchmarks import client_run
from benchmarks.client_error import in_order, schedule
from benchmarks.client_run import ClientSetup, compare, remark_on, run_client
from benchmarks.clients import CLIENTS
from benchmarks.clients.client import POOLED, Client, ClientReport, UnreadableError
from benchmarks.process_tree import ClientFailedError, CpuWatch
from tests.bench.client_error.test_truth import CELL, log_of

MS = 1_000_000


def report_of(
    truth: Truth, *, later_ms: float = 0.0, longer_ms: float = 0.0, ids: tuple[str, ...] | None = None
) -> ClientReport:
    """The report of a client that sees first tokens so much later, and gaps so much longer."""
    gaps = np.diff(truth.written_ns)[: len(truth.written_ns) - 1]
    within = np.diff(np.repeat(np.arange(len(truth.ids)), truth.count)) == 0
    ttft = (truth.written_ns[truth.at[:-1]] - truth.arrived_ns) / MS
    return ClientReport(ttft + later_ms, gaps[within] / MS + longer_ms, POOLED, len(truth.ids), 0, 16, ids)


def watched(*samples: tuple[int, float]) -> CpuWatch:
    return CpuWatch(pid=0, at_ns=[at for at, _cpu in samples], cpu_s=[cpu for _at, cpu in samples])


def test_a_client_that_sees_the_truth_has_no_error_and_draws_the_whole_load() -> None:
    truth = read_truth(log_of(late_ns=0))

    found = compare(CELL, truth, report_of(truth), watched((0, 0.0), (50 * MS, 0.01)))

    errors = (found.ttft_mean_error_ms, found.ttft_p99_error_ms, found.itl_p50_error_ms, found.itl_p99_error_ms)
    assert errors == (0.0, 0.0, 0.0, 0.0)
    assert (found.live_streams, found.load_share, found.true_itl_p99_ms) == (2.0, 1.0, 5.0)


def test_an_error_is_the_clients_number_minus_the_truths() -> None:
    truth = read_truth(log_of())

    found = compare(CELL, truth, report_of(truth, later_ms=3.0, longer_ms=-0.5), watched((0, 0.0)))

    assert found.ttft_mean_error_ms == pytest.approx(3.0)
    assert found.itl_p99_error_ms == pytest.approx(-0.5)


def test_requests_before_the_measured_ones_are_not_in_the_truth_of_those() -> None:
    truth = read_truth(log_of(requests=6))
    measured = ClientReport(np.full(4, 10.0), np.full(12, 5.0), POOLED, 4, 0, 16)
    slow_start = truth.arrived_ns.copy()
    slow_start[:2] -= 90 * MS

    found = compare(CELL, Truth(**{**vars(truth), "arrived_ns": slow_start}), measured, watched((0, 0.0)))

    assert found.ttft_mean_error_ms == pytest.approx(-7 / MS)


def test_a_client_that_names_its_requests_is_held_to_those() -> None:
    truth = read_truth(log_of())
    arrived = truth.arrived_ns.copy()
    arrived[3] -= 40 * MS
    bent = Truth(**{**vars(truth), "arrived_ns": arrived})
    first_two = ClientReport(np.full(2, 10.0), np.full(6, 5.0), POOLED, 2, 0, 8, ids=("r-0", "r-1"))

    assert compare(CELL, bent, first_two, watched((0, 0.0))).true_ttft_mean_ms == pytest.approx(10.0)


def test_cpu_is_that_between_the_first_arrival_and_the_last_token() -> None:
    truth = read_truth(log_of(late_ns=0))
    before_and_after = watched((-10 * MS, 5.0), (0, 6.0), (50 * MS, 6.032), (90 * MS, 9.0))

    found = compare(CELL, truth, report_of(truth), before_and_after)

    assert found.cpu_us_per_token == pytest.approx(32_000 / 16)
    assert found.core_share == pytest.approx(0.032 / 0.05)


def test_cpu_that_nobody_sampled_is_not_known() -> None:
    truth = read_truth(log_of())

    found = compare(CELL, truth, report_of(truth), watched())

    assert (found.cpu_us_per_token, found.core_share) == (None, None)


def test_a_slot_that_stands_idle_is_load_not_drawn() -> None:
    truth = read_truth(log_of(late_ns=0))
    three_slots = LoadCell(3, CELL.ttft_ms, CELL.itl_ms, CELL.output_tokens, CELL.request_count)

    assert compare(three_slots, truth, report_of(truth), watched((0, 0.0))).load_share == pytest.approx(2 / 3)


def test_answers_that_take_longer_than_planned_are_load_not_drawn() -> None:
    truth = read_truth(log_of(late_ns=5 * MS))

    found = compare(CELL, truth, report_of(truth), watched((0, 0.0)))

    assert found.load_share == pytest.approx(found.live_streams / 2 * 25 / 30)


def test_a_client_without_a_token_has_no_numbers() -> None:
    truth = read_truth(log_of())
    nothing = ClientReport(np.empty(0), np.empty(0), POOLED, 0, 4, 0)

    with pytest.raises(UnreadableError, match="4 requests failed"):
        compare(CELL, truth, nothing, watched((0, 0.0)))


def test_a_server_that_was_late_is_remarked() -> None:
    truth = read_truth(log_of(late_ns=6 * MS))

    assert remark_on(CELL, truth, CpuWatch(pid=0), warmup=0) == "the server was late by more than 5 ms at p99"


def test_other_requests_than_asked_and_a_process_off_its_core_are_remarked() -> None:
    truth = read_truth(log_of())
    loose = CpuWatch(pid=0, cores={0, 1})

    assert remark_on(CELL, truth, CpuWatch(pid=0, cores={1}), warmup=0) is None
    assert remark_on(CELL, truth, loose, warmup=2) == (
        "the server received 4 requests instead of 6; its processes could use 2 cores"
    )


@pytest.mark.parametrize("error", [ClientFailedError("exit code 3"), CalibrationError("no server")])
def test_whatever_stops_a_client_is_its_reason_and_nobody_elses(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_asked: object) -> None:
        raise error

    monkeypatch.setattr(client_run, "measure", fail)

    run = run_client(ClientSetup(Path(), Path(), {}, Path()), CLIENTS[0], CELL, 0, 3)

    assert (run.rows, run.reason, run.place) == ({}, str(error), 3)


def test_a_client_that_was_not_installed_says_so_in_every_cell(tmp_path: Path) -> None:
    setup = ClientSetup(tmp_path, tmp_path, {CLIENTS[-1].name: "could not be installed: no network"}, tmp_path)

    assert run_client(setup, CLIENTS[-1], CELL, 0, 0).reason == "could not be installed: no network"


def test_a_slow_client_is_not_run_above_what_it_can_do(tmp_path: Path) -> None:
    slow = next(client for client in CLIENTS if client.is_slow)
    large = LoadCell(2000, 200, 20, 100, 6000)

    run = run_client(ClientSetup(tmp_path, tmp_path, {slow.name: tmp_path}, tmp_path), slow, large, 0, 0)

    assert run.reason == "not run above 1,000 streams"


def test_cells_and_their_repeats_are_read_from_one_line() -> None:
    found = [(cell.streams, cell.itl_ms, runs) for cell, runs in schedule("1,100x3", capacity=True)]

    assert found == [(1, 20.0, 1), (100, 20.0, 3), (2000, 20.0, 1), (4000, 50.0, 1)]


def test_every_client_runs_in_every_cell_slow_ones_once_and_the_order_is_the_seeds() -> None:
    plan = schedule("10x4", capacity=False)

    orders = [list(in_order(CLIENTS, plan, seed)) for seed in (1, 1, 2)]

    def times(client: Client) -> int:
        return sum(one.name == client.name for one, *_others in orders[0])

    assert {client.name: times(client) for client in CLIENTS} == {
        client.name: 1 if client.is_slow else 4 for client in CLIENTS
    }
    assert orders[0] == orders[1] != orders[2]
    assert [place for *_others, place in orders[0]][:7] == list(range(7))
