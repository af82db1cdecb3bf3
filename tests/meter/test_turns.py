"""A turn goes when the one before it has ended, on whatever is free, and a slot goes through its conversation."""

import json
import os
import re
import socket
import threading
from collections import defaultdict
from contextlib import closing
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, NoReturn

import pytest

from meter.board import Board
from meter.connection import Endpoint, resolve
from meter.exchange import Exchange
from meter.order import link_turns
from meter.pace import ClosedPace
from meter.plan import parse_plan
from meter.prepare import prepare
from meter.wire import Wire
from tests.meter.conftest import PLAN, Report, RunMeter, StartTruth, make_plan

Row = dict[str, Any]
TALKS: dict[str, Any] = {
    "prompts": {**PLAN["prompts"], "kind": "multi-turn", "turns": 3},
    "output_tokens": 16,
    "request_count": 15,
    "warmup_count": 3,
}


def _conversations(report: Report) -> list[list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in report.requests:
        found[row["conversation"]].append(row)
    return list(found.values())


def test_a_turn_is_sent_after_the_answer_to_the_one_before_it(start_truth: StartTruth, run_meter: RunMeter) -> None:
    report = run_meter(start_truth().url, **TALKS)

    assert report.outcomes == ["ok"] * 18
    assert [[row["turn"] for row in talk] for talk in _conversations(report)] == [[0, 1, 2]] * 6
    for talk in _conversations(report):
        assert all(earlier["done_at_ns"] <= later["send_start_ns"] for earlier, later in pairwise(talk))


def test_a_slot_goes_through_its_conversation_before_it_takes_another(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    report = run_meter(start_truth().url, **TALKS)

    sent = sorted(report.requests, key=lambda row: (row["connection"], row["send_start_ns"]))
    runs = [list(rows) for _talk, rows in groupby(sent, key=lambda row: row["conversation"])]
    assert [len(rows) for rows in runs] == [3] * 6
    assert {row["connection"] for row in sent} == {0, 1}


def test_one_worker_sends_all_turns_of_a_conversation(start_truth: StartTruth, run_meter: RunMeter) -> None:
    report = run_meter(start_truth().url, **TALKS, workers=2)

    assert report.outcomes == ["ok"] * 18
    assert [{row["worker"] for row in talk} for talk in _conversations(report)] == [{0}, {1}] * 3


def test_a_server_finds_the_previous_prompt_in_its_cache(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("", "--enable-prompt-tokens-details")

    report = run_meter(truth.url, **TALKS)

    assert [row["cached_tokens"] for row in report.requests] == [0, 16, 48] * 6
    assert [row["cached_tokens_planned"] for row in report.requests] == [0, 16, 48] * 6


@pytest.mark.parametrize("fault", ["http500:4", "drop_reuse:2", "cut:2"])
def test_a_conversation_goes_on_after_a_turn_that_failed(
    start_truth: StartTruth, run_meter: RunMeter, fault: str
) -> None:
    report = run_meter(start_truth(fault).url, **TALKS)

    assert report.summary["issued"] == report.summary["planned"] == 15
    assert 0 < report.outcomes.count("ok") < 18
    for talk in _conversations(report):
        assert all(earlier["done_at_ns"] <= later["send_start_ns"] for earlier, later in pairwise(talk))


def _take_request(connection: socket.socket) -> None:
    """Read one whole request."""
    said = b""
    while b"\r\n\r\n" not in said:
        said += connection.recv(1 << 16)
    length = re.search(rb"Content-Length: (\d+)", said)
    missing = int(length[1] if length else 0) - len(said.partition(b"\r\n\r\n")[2])
    while missing > 0:
        missing -= len(connection.recv(1 << 16))


def _answer(connection: socket.socket, body: str, *, is_last: bool = True) -> None:
    """Answer; the last time hang up as well, and return when the other side has hung up too."""
    ending = "Connection: close\r\n" if is_last else ""
    connection.sendall(f"HTTP/1.1 200 OK\r\n{ending}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    if is_last:
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


def _serve_two(reporter: socket.socket, is_refused: threading.Event) -> None:
    """Serve two connections: a whole conversation, and the first turn of another once a new connection was refused."""
    with reporter.accept()[0] as first, reporter.accept()[0] as second:
        for connection, is_last in ((second, False), (second, True), (first, True)):
            _take_request(connection)
            if connection is first:
                is_refused.wait(timeout=300)
            _answer(connection, "no event stream", is_last=is_last)


def test_a_refused_spare_connection_does_not_delay_a_later_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    is_refused = threading.Event()

    def refuse(_endpoint: Endpoint, _number: int) -> NoReturn:
        is_refused.set()
        raise ConnectionRefusedError

    monkeypatch.setattr("meter.wire.open_starting", refuse)
    turns = {**PLAN["prompts"], "kind": "multi-turn", "turns": 2}
    plan = parse_plan(json.dumps(make_plan(prompts=turns, request_count=4)))
    exchanges = [Exchange(request) for request in prepare(plan, "host:1", "id")]
    link_turns(exchanges)
    with closing(socket.create_server(("127.0.0.1", 0))) as reporter:
        url = f"http://127.0.0.1:{reporter.getsockname()[1]}"
        threading.Thread(target=_serve_two, args=(reporter, is_refused), daemon=True).start()
        board = replace(Board.open(1), watcher=os.getppid())  # there is no process apart from the watcher here
        wire = Wire(resolve(url, wants_stamps=False), exchanges, ClosedPace(2, 4), 60 * 10**9, board)

        wire.connect_first(2)
        wire.run()

    assert [exchange.failure for exchange in exchanges] == [None, None, None, "connect"]
