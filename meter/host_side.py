"""The client host's side of a load that several hosts send: it takes its plan and its orders from standard input.

A line of JSON each way. In: the plan, then `clock`, `start` with a moment of this host's clock, and `send`. Out:
`ready`, this host's clock, `done` about once a second, `ended`, and the part with what follows it. Where standard input
ends, whoever gave the orders is gone: the load stops.
"""

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import IO, Any

from meter.board import Board
from meter.drive import Conduct, check_work, drive, make_work
from meter.errors import MeterError, OutsideWorldError
from meter.host_part import pack
from meter.plan import parse_plan


class Orders:
    """The two ways to whoever gives the orders."""

    def __init__(self, given: IO[bytes], answers: IO[bytes]) -> None:
        self._given, self._answers = given, answers

    def next(self) -> dict[str, Any]:
        """Wait for an order; OutsideWorldError where none will come."""
        line = self._given.readline()
        if not line:
            raise OutsideWorldError("the connection to the host that gives the orders was lost")
        order: dict[str, Any] = json.loads(line)
        return order

    def next_but_clock(self) -> dict[str, Any]:
        """Wait for an order; until it comes, answer how late it is here."""
        while "clock" in (order := self.next()):
            self.answer(clock_ns=time.monotonic_ns())
        return order

    def answer(self, **said: Any) -> None:
        """Send a line."""
        self.send([json.dumps(said).encode() + b"\n"])

    def send(self, parts: list[bytes]) -> None:
        """Send bytes."""
        self._answers.writelines(parts)
        self._answers.flush()

    def are_over(self) -> bool:
        """Whether the connection has ended, while no order is due."""
        return bool(select.select([self._given], [], [], 0)[0])


def serve(folder: str) -> int:
    """Do one share of a load, with files in a folder that the caller deletes; return the exit code."""
    orders = Orders(sys.stdin.buffer, sys.stdout.buffer)
    try:
        _serve(orders, Path(folder))
    except MeterError as error:
        orders.answer(failed=str(error))
        return error.exit_code
    return 0


def _serve(orders: Orders, folder: Path) -> None:
    given = orders.next()
    plan = parse_plan(json.dumps(_placed(given, folder)))
    if given["key"] is not None:
        os.environ[str(plan.api_key_env)] = given["key"]

    def begin(board: Board) -> None:
        orders.answer(ready=True)
        board.start(orders.next_but_clock()["start_ns"])

    def watch(board: Board) -> None:
        if orders.are_over():
            board.stop(signal.SIGHUP)
        orders.answer(done=board.ended)

    course, part = drive(check_work(make_work(plan)), Conduct(begin, watch))
    if course.ended_by is not None:
        raise OutsideWorldError(course.ended_by)
    orders.answer(ended=True)
    orders.next_but_clock()
    orders.send(pack(part, {"workers": course.workers, "left_out": course.left_out}))


def _placed(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The plan with the file of its CAs where this host has it."""
    plan: dict[str, Any] = given["plan"]
    if given["ca"] is None:
        return plan
    (folder / "ca.pem").write_text(given["ca"], encoding="utf-8")
    return plan | {"ca_file": str(folder / "ca.pem")}
