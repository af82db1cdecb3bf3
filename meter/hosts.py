"""One load sent by several client hosts: each sends its share of the plan, all from one moment, into one report.

Every host has the whole plan and sends every n-th request of it, as the workers of one host do, so that the union is
the plan. Times count from one moment, which each host has on its own clock by the measured offset.
"""

import queue
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from meter.api_key import read_key
from meter.board import Board
from meter.bundle import bundle
from meter.clock import Offset, read_offset
from meter.drive import Course, report
from meter.errors import OutsideWorldError
from meter.host_clock import ClockOffset, RoundTrip, offset_of, worst_error_ns
from meter.host_link import Answer, HostLink
from meter.limits import check_disk
from meter.plan import Plan
from meter.record import merge
from meter.report import claim, report_bytes, write_progress

TRIPS = 64  # to each host, of which the shortest counts
HEAD_START_NS = 1_000_000_000  # from the order to start to the start: the order has arrived on every host by then


@dataclass(slots=True)
class Fleet:
    """The connections to all client hosts, and what they answer, in order of arrival."""

    plan: Plan
    links: list[HostLink] = field(default_factory=list)
    answers: "queue.SimpleQueue[tuple[HostLink, Answer | None, int]]" = field(default_factory=queue.SimpleQueue)

    def hear(self, link: HostLink, answer: Answer | None, at_ns: int) -> None:
        """Keep an answer; called in the thread of its link."""
        self.answers.put((link, answer, at_ns))

    def next(self) -> tuple[HostLink, Answer, int]:
        """Wait for an answer; OutsideWorldError where a host fails or is lost, since the load lacks its share then."""
        link, answer, at_ns = self.answers.get()
        if answer is None:
            raise self._lost(link)
        if "failed" in answer:
            raise OutsideWorldError(f"The client host {link.name} failed: {answer['failed']}")
        return link, answer, at_ns

    def _lost(self, link: HostLink) -> OutsideWorldError:
        done = f" after {link.done} requests" if link.done else ""
        return OutsideWorldError(
            f"The client host {link.name} was lost{done}: {link.why_lost()}. It had one of {len(self.links)} shares of "
            "the load, so the run has no result: check the host, and run again."
        )

    def wait_for_all(self, key: str) -> None:
        """Wait until each host has sent this key."""
        missing = {link.name for link in self.links}
        while missing:
            self.hear_one(key, missing)

    def wait_until_ended(self, folder: Path) -> None:
        """Wait until each host has ended its share, and write how far they are."""
        running = {link.name for link in self.links}
        while running:
            self.hear_one("ended", running)
            write_progress(folder, sum(link.done for link in self.links), self.plan.total_count)

    def hear_one(self, key: str, missing: set[str]) -> None:
        """Take the next answer; a host that sends this key is no longer missing."""
        link, answer, _at_ns = self.next()
        link.done = answer.get("done", link.done)
        if key in answer:
            missing.discard(link.name)

    def offset(self, link: HostLink) -> ClockOffset:
        """Measure a host's clock, while all hosts wait for orders."""
        trips = []
        for _ in range(TRIPS):
            sent_ns = link.order(clock=True)
            _link, answer, received_ns = self.next()
            trips.append(RoundTrip(sent_ns, answer["clock_ns"], received_ns))
        return offset_of(trips)

    def fetch(self, link: HostLink) -> Answer:
        """Fetch what a host measured; `part` of the answer is its part."""
        link.order(send=True)
        _link, answer, _at_ns = self.next()
        return answer


def run_on_hosts(plan: Plan, folder: Path) -> int:
    """Run a plan on its hosts and write one folder; return the exit code. Raises MeterError as `drive.run` does."""
    given = _given(plan)
    claim(folder)
    check_disk(folder, report_bytes(plan))
    wall = read_offset()
    with _connected(plan, given) as fleet:
        fleet.wait_for_all("ready")
        before = [fleet.offset(link) for link in fleet.links]
        origin_ns = time.monotonic_ns() + HEAD_START_NS
        for link, clock in zip(fleet.links, before, strict=True):
            link.order(start_ns=origin_ns + clock.offset_ns)
        fleet.wait_until_ended(folder)
        hosts = [_host(link, clock, fleet.offset(link)) for link, clock in zip(fleet.links, before, strict=True)]
        fetched = [fleet.fetch(link) for link in fleet.links]
    course = _course(plan, (origin_ns, wall), hosts, fetched)
    return report(folder, course, merge([answer["part"] for answer in fetched]))


def _given(plan: Plan) -> dict[str, Any]:
    """What each host needs beside its share."""
    raw = {key: value for key, value in plan.raw.items() if key != "hosts"}
    ca = None if plan.ca_file is None else Path(plan.ca_file).read_text(encoding="utf-8")
    return {"plan": raw, "key": read_key(plan), "ca": ca}


@contextmanager
def _connected(plan: Plan, given: dict[str, Any]) -> Iterator[Fleet]:
    """Start every host on its share; all are ended when the block ends."""
    program, fleet = _program(), Fleet(plan)
    with ExitStack() as stack:
        for number, host in enumerate(plan.hosts):
            link = HostLink(host["name"], host["argv"], fleet.hear)
            stack.callback(link.close)
            fleet.links.append(link)
            share = {"number": number, "of": len(plan.hosts)}
            link.send(b"%d\n" % len(program) + program)
            link.order(**given | {"plan": given["plan"] | {"share": share}})
        yield fleet


def _program() -> bytes:
    """The meter as one file."""
    archive = Path(__file__).parents[1]
    if archive.is_file():
        return archive.read_bytes()
    with TemporaryDirectory(prefix="meter-") as folder:
        bundle(Path(folder) / "meter.pyz")
        return (Path(folder) / "meter.pyz").read_bytes()


def _host(link: HostLink, before: ClockOffset, after: ClockOffset) -> dict[str, Any]:
    """Describe a host and its clock for meter.json."""
    clock = {"before": asdict(before), "after": asdict(after), "worst_error_ns": worst_error_ns(before, after)}
    return {"name": link.name, "requests": link.done, "clock": clock}


def _course(plan: Plan, began: tuple[int, Offset], hosts: list[dict[str, Any]], fetched: Sequence[Answer]) -> Course:
    """The run of all hosts, from the moment at which they began on this host's clock."""
    origin_ns, wall = began
    board = Board.open(1)
    board.start(origin_ns)
    pairs = list(zip(hosts, fetched, strict=True))
    workers = [worker | {"host": host["name"]} for host, answer in pairs for worker in answer["workers"]]
    left_out = {(address, why) for answer in fetched for address, why in answer["left_out"]}
    return Course(plan, board, wall, read_offset(), tuple(sorted(left_out)), workers, hosts)
