"""When requests in flight must end: after the plan's time-out, or at the moment at which the plan cancels them."""

import random
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from meter.clock import NS
from meter.exchange import Connection, Exchange
from meter.plan import Plan

CANCELLED = "cancelled_as_planned"  # the outcome of a request that the plan cancels


def draw_cancels(plan: Plan, exchanges: Sequence[Exchange]) -> None:
    """Draw which measured requests are cancelled, and when after their sending; the same for the same seed."""
    if plan.cancel is None:
        return
    # random() is the one method whose sequence Python promises to keep between versions.
    draw = random.Random(f"cancel {plan.prompts.seed}").random  # noqa: S311 -- load, not secrets
    low, high = plan.cancel["after_s"]
    for exchange in exchanges:
        is_chosen, moment = draw() < plan.cancel["share"], draw()
        if is_chosen and exchange.request.phase == "measured":
            exchange.cancel_after_ns = round((low + (high - low) * moment) * NS)


class Deadlines:
    """The requests in flight by the moment at which each must have ended."""

    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._due: list[tuple[int, int, Connection, Exchange]] = []

    def begin(self, connection: Connection, exchange: Exchange, now: int) -> None:
        """Remember a request that is about to be sent."""
        after_ns = self._timeout_ns if exchange.cancel_after_ns is None else exchange.cancel_after_ns
        heappush(self._due, (now + after_ns, exchange.request.index, connection, exchange))

    def over(self, now: int) -> Iterator[tuple[Connection, Exchange]]:
        """Yield each request whose time is up and that has not ended, with its failure recorded."""
        while self._due and self._due[0][0] <= now:
            _due, _index, connection, exchange = heappop(self._due)
            if exchange.ended_ns is None:
                if exchange.cancel_after_ns is None:
                    exchange.fail("timeout", f"no complete answer within {self._timeout_ns / 1e9:g} s")
                else:
                    exchange.fail(CANCELLED, "the plan cancels it")
                yield connection, exchange
