"""Every answer has one deadline and one size limit, whatever a server sends and however slowly."""

import json
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest

from bench.errors import EngineBuildError
from infra.engines.first_probe import stream_once
from infra.engines.http_client import Origin
from infra.engines.metrics_scraper import Scraper
from infra.engines.registry import resolve_tag
from meter.connection import resolve
from meter.errors import OutsideWorldError
from meter.plan import Plan, parse_plan
from meter.probe import check_speaks_openai
from tests.emulators.strange_server import PAUSE_S, dropped, strange_server, whole
from tests.emulators.virtual_clock import VirtualClock
from tests.meter.conftest import make_plan

DEADLINE_S = 3 * PAUSE_S
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"
DRIPPING = {
    "status line": dropped(b"HTTP/1.1 200 " + b"y" * 20),
    "headers": [b"HTTP/1.1 200 OK\r\n", *dropped(b"a: " + b"b" * 20)],
    "body": [HEAD, *dropped(b"x" * 20)],
    "chunks": [CHUNKED, *repeat(b"1\r\nx\r\n", 20), b"0\r\n\r\n"],
    "early answers": [*repeat(b"HTTP/1.1 100 Continue\r\n\r\n", 20), whole(b"{}")],
}
PIECE = b"x" * (1 << 20)


@pytest.mark.parametrize("name", DRIPPING)
def test_an_answer_that_drips_ends_at_its_deadline(name: str) -> None:
    with (
        strange_server(lambda _request: DRIPPING[name], PAUSE_S) as url,
        pytest.raises(TimeoutError),
    ):
        Origin(url).ask("GET", "/v1/models", None, DEADLINE_S)


def test_a_stream_that_drips_ends_at_its_deadline() -> None:
    with (
        strange_server(lambda _request: DRIPPING["chunks"], PAUSE_S) as url,
        pytest.raises(TimeoutError),
    ):
        stream_once(Origin(url), "small", DEADLINE_S)


def endless(head: bytes) -> Iterator[bytes]:
    yield head
    yield from repeat(PIECE, 64)


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\n\r\n", CHUNKED + b"fffffffff\r\n"], ids=["until it closes", "chunk"]
)
def test_an_answer_without_end_is_read_up_to_the_limit(head: bytes) -> None:
    with (
        strange_server(lambda _request: endless(head)) as url,
        pytest.raises(ConnectionError, match="larger than 16777216 bytes"),
    ):
        Origin(url).ask("GET", "/metrics", None, 60.0)


@pytest.mark.parametrize("length", ["1000000000000", "21"])
def test_an_answer_that_ends_before_its_announced_length_is_an_error(length: str) -> None:
    announced = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode()

    with (
        strange_server(lambda _request: [announced, b"x" * 20]) as url,
        pytest.raises(ConnectionError, match="IncompleteRead"),
    ):
        Origin(url).ask("GET", "/metrics", None, 60.0)


def test_a_sample_of_a_dripping_page_is_a_row_with_its_error() -> None:
    def read(url: str) -> str:
        return Origin(url).ask("GET", "/metrics", None, DEADLINE_S)[1]

    with (
        strange_server(lambda _request: DRIPPING["body"], PAUSE_S) as url,
        Scraper(lambda: read(url), lambda _: {}) as scraper,
    ):
        pass  # leaving it waits for the first sample

    assert [scrape["error"] for scrape in scraper.scrapes] == [
        f"no complete answer to GET /metrics after {DEADLINE_S:g} s"
    ]


def test_the_meter_does_not_wait_for_a_dripping_list_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meter.probe.ANSWER_S", DEADLINE_S)

    with (
        strange_server(lambda _request: DRIPPING["body"], PAUSE_S) as url,
        pytest.raises(OutsideWorldError, match="no complete answer"),
    ):
        check_speaks_openai(plan_for(url), resolve(url, wants_stamps=False), None)


def test_a_registry_that_drips_does_not_hold_a_night(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("infra.engines.registry.ANSWER_S", DEADLINE_S)

    with (
        strange_server(lambda _request: DRIPPING["headers"], PAUSE_S) as url,
        pytest.raises(EngineBuildError, match="no complete answer"),
    ):
        resolve_tag(f"{url.removeprefix('http://')}/team/image:1", VirtualClock(tmp_path / "clock"))


def plan_for(url: str) -> Plan:
    return parse_plan(json.dumps(make_plan(url=url)))
