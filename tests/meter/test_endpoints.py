"""Servers of somebody else: API keys, rate limits, redirects, and several addresses behind one name."""

from pathlib import Path

import pytest

from meter.head import read_head, retry_after_s
from tests.meter.conftest import RunMeter, StartTruth
from tests.planted import SECRETS, found_below, plant

KEY = "ENDPOINT_KEY"


def test_a_rate_limited_request_is_an_outcome_of_its_own_and_is_not_retried(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    report = run_meter(start_truth("rate_limit:3").url, load={"kind": "closed", "concurrency": 1})

    assert report.outcomes == ["ok", "ok", "rate_limited", "ok", "ok", "rate_limited"]
    assert report.rows[2]["retry_after_s"] == 7.0
    assert report.rows[0]["retry_after_s"] is None
    assert report.rows[2]["error"].startswith("HTTP 429, retry after 7 s: {")
    assert report.summary["failed_by_class"] == {"rate_limited": 2}


@pytest.mark.parametrize(
    ("head", "seconds"),
    [
        ("Retry-After: 12", 12.0),
        ("retry-after: 0.5", 0.5),
        ("retry-after: 30\r\nretry-after-ms: 1500", 1.5),
        ("date: Mon, 23 Nov 2026 04:00:00 GMT\r\nretry-after: Mon, 23 Nov 2026 04:01:00 GMT", 60.0),
        ("retry-after: soon", None),
        ("retry-after: -3", 0.0),
        ("server: x", None),
    ],
)
def test_the_seconds_to_wait_are_read_in_every_form(head: str, seconds: float | None) -> None:
    raw = f"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Too Many Requests\r\n{head}\r\n\r\n".encode()

    assert retry_after_s(read_head(raw)) == seconds


def test_a_redirect_is_refused_with_its_target(start_truth: StartTruth, run_meter: RunMeter) -> None:
    report = run_meter(start_truth("redirect").url)

    assert report.exit_code == 3
    assert "redirects GET /v1/models to https://elsewhere.example/v1 (HTTP 307)" in report.stderr


def test_something_between_client_and_server_is_recorded(start_truth: StartTruth, run_meter: RunMeter) -> None:
    report = run_meter(start_truth("proxied").url)

    assert report.summary["network"]["between"] == {"via: 1.1 front": 6}


def test_the_key_is_sent_and_written_nowhere(
    start_truth: StartTruth, run_meter: RunMeter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch, "NIGHTBENCH_ENDPOINT_API_KEY")
    truth = start_truth("http500:2", TRUTH_API_KEY=SECRETS["NIGHTBENCH_ENDPOINT_API_KEY"])

    report = run_meter(truth.url, api_key_env="NIGHTBENCH_ENDPOINT_API_KEY")

    assert set(report.outcomes) == {"ok", "http"}
    assert found_below(tmp_path) == {}
    assert "planted" not in report.stderr


def test_a_key_that_a_server_quotes_in_its_error_is_not_in_the_report(
    start_truth: StartTruth, run_meter: RunMeter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch, "NIGHTBENCH_ENDPOINT_API_KEY")

    report = run_meter(start_truth("quotes_key").url, api_key_env="NIGHTBENCH_ENDPOINT_API_KEY")

    assert set(report.outcomes) == {"http"}
    assert report.rows[0]["error"].startswith("HTTP 401 (the API key is missing or not accepted): {")
    assert "Incorrect API key provided: Bearer ***" in report.rows[0]["error"]
    assert found_below(tmp_path) == {}


@pytest.mark.parametrize(
    ("key", "code", "words"),
    [
        ("wrong", 3, "does not accept the API key: GET /v1/models returned HTTP 401."),
        ("", 2, f"names {KEY}, which is not set"),
        ("two\nlines", 2, "has characters that no HTTP header may have"),
    ],
)
def test_a_key_that_is_missing_or_refused_is_said_before_anything_is_sent(
    start_truth: StartTruth, run_meter: RunMeter, monkeypatch: pytest.MonkeyPatch, key: str, code: int, words: str
) -> None:
    monkeypatch.setenv(KEY, key)

    report = run_meter(start_truth(TRUTH_API_KEY="right").url, api_key_env=KEY)

    assert (report.exit_code, words in report.stderr) == (code, True), report.stderr


RESOLVER = """
import socket
real = socket.getaddrinfo
def resolve(host, port, *rest, **more):
    hosts = ("127.0.0.1", "127.0.0.2") if host == "two.example" else (host,)
    return [found for one in hosts for found in real(one, port, *rest, **more)]
socket.getaddrinfo = resolve
"""


@pytest.fixture
def two_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A name that stands for 127.0.0.1 and 127.0.0.2 in every process that is started."""
    folder = tmp_path / "resolver"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(RESOLVER)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return "two.example"


def test_connections_go_in_turn_to_the_addresses_that_answer(
    start_truth: StartTruth, run_meter: RunMeter, two_addresses: str
) -> None:
    first = start_truth("", "--host", "127.0.0.1")
    port = first.url.rpartition(":")[2]
    second = start_truth("", "--host", "127.0.0.2", "--port", port)

    report = run_meter(f"http://{two_addresses}:{port}", load={"kind": "closed", "concurrency": 4}, request_count=8)

    assert set(report.outcomes) == {"ok"}
    used = report.summary["network"]["addresses"]
    assert {address: one["connections"] for address, one in used.items()} == {
        f"127.0.0.1:{port}": 2,
        f"127.0.0.2:{port}": 2,
    }
    assert [len(truth.log("received")) for truth in (first, second)] == [
        one["requests"] for _address, one in sorted(used.items())
    ]


def test_an_address_that_does_not_answer_is_left_out_and_named(
    start_truth: StartTruth, run_meter: RunMeter, two_addresses: str
) -> None:
    port = start_truth("", "--host", "127.0.0.2").url.rpartition(":")[2]

    report = run_meter(f"http://{two_addresses}:{port}")

    assert set(report.outcomes) == {"ok"}
    network = report.summary["network"]
    assert list(network["addresses"]) == [f"127.0.0.2:{port}"]
    assert list(network["left_out"]) == [f"127.0.0.1:{port}"]
    assert {row["address"] for row in report.rows} == {f"127.0.0.2:{port}"}
