"""The truth server as it is built and run: what it writes, when, and what it writes down."""

import http.client
import json
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from bench.client_error.calibration import LoadCell
from bench.client_error.truth import Truth, read_truth
from bench.errors import CalibrationError
from infra.loadgen.calibration import run_cell
from infra.loadgen.truth.run import build_server, truth_server

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
MS = 1_000_000
QUICK = ("--ttft-us", "20000", "--itl-us", "5000")
Answers = list[list[dict[str, Any]]]
Ask = Callable[..., tuple[Truth, Answers]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_server(tmp_path_factory.mktemp("cache"))


def body(**more: object) -> dict[str, object]:
    asked = {"model": "truth", "prompt": [1, 2, 3], "max_tokens": 8, "stream": True}
    return {**asked, "stream_options": {"include_usage": True}, "return_token_ids": True, **more}


def stream(connection: http.client.HTTPConnection, asked: dict[str, object], path: str) -> list[dict[str, Any]]:
    """The events of one answer, read by the standard library's client."""
    connection.request("POST", path, json.dumps(asked), {"X-Request-Id": "asked-by-test"})
    answer = connection.getresponse()
    lines = [line[6:] for line in answer.read().decode().split("\n\n") if line]
    assert (answer.status, lines[-1]) == (200, "[DONE]")
    return [json.loads(line) for line in lines[:-1]]


@contextmanager
def connected(server: Path, log: Path, *options: str) -> Iterator[http.client.HTTPConnection]:
    with (
        truth_server(server, log, (*QUICK, *options), core=None) as port,
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=300)) as connection,
    ):
        yield connection


@pytest.fixture
def ask(server: Path, tmp_path: Path) -> Ask:
    def run(*options: str, bodies: tuple[dict[str, object], ...] = (body(),), path: str = "/v1/completions") -> Any:
        log = tmp_path / "truth.log"
        with connected(server, log, *options) as connection:
            answers = [stream(connection, asked, path) for asked in bodies]
        return read_truth(log.read_bytes()), answers

    return run


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_an_answer_has_openais_format_and_the_requested_tokens(ask: Ask, path: str) -> None:
    truth, ((*chunks, usage),) = ask(path=path)
    if "chat" in path:
        opening = chunks.pop(0)
        assert opening["choices"][0]["delta"] == {"role": "assistant", "content": ""}

    assert usage["usage"] == {"prompt_tokens": 3, "completion_tokens": 8, "total_tokens": 11}
    assert [len(chunk["choices"][0]["token_ids"]) for chunk in chunks] == [1] * 8
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 7 + ["length"]
    assert (truth.ids, truth.tokens.sum(), truth.asked_tokens.tolist()) == (("asked-by-test",), 8, [8])


def test_a_prompt_of_text_has_the_tokens_that_the_option_gives_it(ask: Ask) -> None:
    _truth, ((*_chunks, usage),) = ask("--prompt-tokens", "64", bodies=(body(prompt="some words"),))

    assert usage["usage"]["prompt_tokens"] == 64


def test_every_third_answer_stops_short_and_says_so(ask: Ask) -> None:
    truth, answers = ask("--fault", "short", "--fault-one-in", "3", bodies=(body(),) * 3)

    counts = [usage["usage"]["completion_tokens"] for *_chunks, usage in answers]
    reasons = [chunks[-2]["choices"][0]["finish_reason"] for chunks in answers]
    assert counts == [8, 8, 4]
    assert reasons == ["length", "length", "stop"]
    assert truth.tokens.sum() == 20


def test_an_error_comes_inside_the_200_after_half_of_the_tokens(ask: Ask) -> None:
    truth, (answer,) = ask("--fault", "error")

    assert [len(chunk["choices"][0]["token_ids"]) for chunk in answer[:-1]] == [1] * 4
    assert answer[-1]["error"]["message"] == "EngineCore encountered an issue."
    assert truth.tokens.sum() == 4


def test_a_cut_answer_loses_its_connection_half_way(server: Path, tmp_path: Path) -> None:
    log = tmp_path / "truth.log"

    with connected(server, log, "--fault", "cut") as connection, pytest.raises(http.client.IncompleteRead):
        stream(connection, body(), "/v1/completions")

    assert read_truth(log.read_bytes()).tokens.sum() == 4


def test_every_second_request_is_refused(server: Path, tmp_path: Path) -> None:
    log = tmp_path / "truth.log"

    with connected(server, log, "--fault", "http500", "--fault-one-in", "2") as connection:
        statuses = []
        for _ in range(4):
            connection.request("POST", "/v1/completions", json.dumps(body()))
            answer = connection.getresponse()
            statuses.append((answer.status, b"EngineCore" in answer.read()))

    assert statuses == [(200, False), (500, True)] * 2
    assert read_truth(log.read_bytes()).count.tolist() == [8, 0] * 2


def test_nothing_is_written_before_it_is_due_and_the_schedule_is_that_of_the_options(ask: Ask) -> None:
    truth, _answers = ask(bodies=(body(), body()))

    due = truth.written_ns - truth.late_ns
    assert truth.late_ns.min() >= 0
    assert (due[truth.at[:-1]] - truth.arrived_ns).tolist() == [20 * MS] * 2
    assert set(np.diff(due[:8]).tolist()) == {5 * MS}
    assert truth.count.tolist() == [8, 8]


def test_a_request_arrives_when_its_last_byte_does_and_not_when_the_server_reads_it(
    server: Path, tmp_path: Path
) -> None:
    log = tmp_path / "truth.log"
    with connected(server, log) as connection:
        connection.connect()
        (process,) = [one for one in psutil.process_iter(["cmdline"]) if str(log) in (one.info["cmdline"] or ())]
        process.suspend()
        connection.request("POST", "/v1/completions", json.dumps(body()))
        time.sleep(0.3)  # a busy kernel delivers it after it was sent
        sent_ns = time.monotonic_ns()
        process.resume()
        connection.getresponse().read()

    (arrived_ns,) = read_truth(log.read_bytes()).arrived_ns.tolist()
    assert sent_ns - 1_000 * MS < arrived_ns < sent_ns


def test_many_streams_at_once_each_keep_their_own_schedule(server: Path, tmp_path: Path) -> None:
    def one(port: int) -> int:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=300)) as connection:
            return len(stream(connection, body(max_tokens=30), "/v1/completions"))

    with (
        truth_server(server, tmp_path / "log", (*QUICK, "--jitter", "90"), core=None) as port,
        ThreadPoolExecutor(16) as pool,
    ):
        lengths = set(pool.map(one, [port] * 16))

    truth = read_truth((tmp_path / "log").read_bytes())
    assert lengths == {31}
    assert (set(truth.count.tolist()), truth.late_ns.min() >= 0) == ({30}, True)
    assert overtaken(truth) == 0


def overtaken(truth: Truth) -> int:
    """How often a write went out just after one that was due later, though it was already waiting then."""
    begins = np.zeros(len(truth.written_ns), dtype=np.bool_)
    begins[truth.at[:-1]] = True
    waiting_since = np.roll(truth.written_ns, 1)
    waiting_since[begins] = truth.arrived_ns
    order = np.argsort(truth.written_ns, kind="stable")
    due, written, since = (truth.written_ns - truth.late_ns)[order], truth.written_ns[order], waiting_since[order]
    return int(((due[1:] < due[:-1]) & (since[1:] < written[:-1])).sum())


def test_in_lock_step_everything_is_due_on_one_grid(ask: Ask) -> None:
    truth, _answers = ask("--lockstep", bodies=(body(), body()))

    assert set(((truth.written_ns - truth.late_ns) % (5 * MS)).tolist()) == {0}


def test_jitter_is_within_its_bounds_and_the_same_in_every_run(ask: Ask) -> None:
    gaps = []
    for _run in range(2):
        truth, _answers = ask("--jitter", "50", bodies=(body(max_tokens=40),))
        gaps.append(np.diff(truth.written_ns - truth.late_ns))

    assert gaps[0].tolist() == gaps[1].tolist()
    assert gaps[0].min() >= 2.5 * MS
    assert gaps[0].max() <= 7.5 * MS
    assert len(set(gaps[0].tolist())) > 20


def test_stalls_are_about_as_frequent_as_configured(ask: Ask) -> None:
    truth, _answers = ask("--stall-one-in", "10", "--stall-us", "30000", bodies=(body(max_tokens=100),))

    gaps = np.diff(truth.written_ns - truth.late_ns)
    assert set(gaps.tolist()) == {5 * MS, 35 * MS}
    assert 2 <= (gaps == 35 * MS).sum() <= 25


def test_several_tokens_an_event_and_several_events_a_write_are_counted(ask: Ask) -> None:
    truth, ((*chunks, usage),) = ask(
        "--tokens-per-event", "3", "--events-per-write", "2", bodies=(body(max_tokens=10),)
    )

    assert [len(chunk["choices"][0]["token_ids"]) for chunk in chunks] == [3, 3, 3, 1]
    assert truth.tokens.tolist() == [6, 4]
    assert usage["usage"]["completion_tokens"] == 10
    assert np.diff(truth.written_ns - truth.late_ns).tolist() == [30 * MS]


def test_a_prompt_cannot_pass_for_a_key(ask: Ask) -> None:
    prompt = 'a "max_tokens": 99, \\" "stream": false, [{"max_tokens": 7}'

    truth, ((*_chunks, usage),) = ask(bodies=(body(prompt=prompt, nested={"max_tokens": 50}, max_tokens=2),))

    assert (truth.asked_tokens.tolist(), usage["usage"]["prompt_tokens"]) == ([2], 1)


def test_its_counters_are_those_of_the_log(server: Path, tmp_path: Path) -> None:
    with connected(server, tmp_path / "log", "--tokens-per-event", "3") as connection:
        stream(connection, body(), "/v1/completions")
        connection.request("GET", "/metrics")
        told = connection.getresponse().read().decode()

    lines = dict(line.rsplit(" ", 1) for line in told.splitlines())
    found = {name.split("{")[0]: int(value) for name, value in lines.items()}
    assert (found["vllm:generation_tokens_total"], found["vllm:prompt_tokens_total"]) == (8, 3)
    assert (found["vllm:num_requests_running"], found["vllm:request_success_total"]) == (0, 1)
    assert read_truth((tmp_path / "log").read_bytes()).tokens.sum() == 8


def test_what_it_cannot_stream_it_refuses(server: Path, tmp_path: Path) -> None:
    with connected(server, tmp_path / "log") as connection:
        connection.request("POST", "/v1/completions", json.dumps(body(stream=False)))
        answer = connection.getresponse()
        answer.read()
        connection.request("GET", "/nowhere")
        lost = connection.getresponse().status

    assert (answer.status, lost) == (400, 404)


def test_a_client_that_disconnects_does_not_disturb_others(server: Path, tmp_path: Path) -> None:
    with connected(server, tmp_path / "log") as connection:
        connection.request("POST", "/v1/completions", json.dumps(body(max_tokens=10_000)))
        connection.getresponse().read(100)
        connection.close()
        time.sleep(0.05)
        events = stream(connection, body(), "/v1/completions")

    assert len(events) == 9


def test_an_unknown_option_is_an_error(server: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(CalibrationError, match="--speed: truth server: unknown option"),
        truth_server(server, tmp_path / "log", ("--speed", "9"), core=None),
    ):
        pass


def test_a_missing_compiler_is_an_error_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)

    with pytest.raises(CalibrationError, match="no C compiler"):
        build_server(tmp_path)


def test_it_is_built_once(server: Path) -> None:
    again = build_server(server.parents[2])

    assert again == server
    assert [path.name for path in server.parent.iterdir()] == ["server"]


def test_over_tls_the_truth_is_known_too_and_the_meter_keeps_the_kernels_stamps(server: Path, tmp_path: Path) -> None:
    cell = LoadCell(streams=2, ttft_ms=5, itl_ms=4, output_tokens=20, request_count=6, is_tls=True)

    point = run_cell(cell, server, tmp_path)

    assert (point.is_tls, point.ok, point.requests) == (True, 6, 6)
    assert point.kernel_stamp_share == 1.0
    assert point.itl_p99_error_kernel_ms is not None
    head = json.loads((tmp_path / "load" / "meter.json").read_text())
    assert head["network"]["tls"]["version"] == "TLSv1.3"
    # What the kernel stamped came after it was written, by far less than a gap.
    assert abs(point.itl_p50_error_ms) < cell.itl_ms
    assert (tmp_path / "server.pem").stat().st_mode & 0o077 == 0
