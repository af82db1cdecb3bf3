import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.engines.vllm import REQUEST_BODY
from bench.errors import SuiteError, UnreadableResultError
from bench.loadgen.drivers.by_name import read_report
from bench.loadgen.drivers.meter import meter_argv, meter_plan
from bench.loadgen.drivers.require_engine import require_driver_engines
from bench.loadgen.drivers.target import LoadTarget, RunInputs
from bench.loadgen.drivers.vllm_bench import vllm_bench_argv
from bench.loadgen.drivers.vllm_rs import vllm_rs_bench_argv
from bench.loadgen.events import NO_STAMP_NS
from bench.loadgen.meter_report import read_meter, read_server_times
from bench.loadgen.meter_rows import read_rows
from bench.loadgen.report import LoadReport, PlannedTokens
from bench.loadgen.vllm_report import read_vllm_bench
from bench.metrics import concurrency_achieved
from bench.plan import ConversationShare, describe_load
from bench.suite.parse import parse_suite
from bench.suite.prompts import Prompts
from bench.suite.scenario import Scenario
from bench.suite.source import SuiteSource
from bench.suite.traces.window import Replayed
from bench.suite.workload import Workload
from tests.bench.builders import OPEN, SCENARIO, with_workload

REAL = Path(__file__).parents[2] / "data" / "vllm-results" / "vllm_bench_serve.json"
RUST = Path(__file__).parents[2] / "data" / "vllm-rs-bench" / "serve.json"
TWIN = Path(__file__).parents[2] / "data" / "vllm-bench" / "serve-synthetic.json"
TARGET = LoadTarget("http://127.0.0.1:8811", "small", Path("/models/small"), vocab_size=2048, body=REQUEST_BODY)
MS = 1_000_000

Row = dict[str, Any]
Event = tuple[int, int]  # when, and how many tokens it carried


def _row(index: int, phase: str, send_ns: int, events: list[Event], first: int) -> Row:
    is_ok = bool(events)
    return {
        "index": index,
        "phase": phase,
        "intended_at_ns": send_ns,
        "send_start_ns": send_ns,
        "first_token_at_ns": events[0][0] if is_ok else None,
        "last_token_at_ns": events[-1][0] if is_ok else None,
        "done_at_ns": events[-1][0] + MS if is_ok else None,
        "prompt_tokens_counted": 8 if is_ok else None,
        "output_tokens_counted": sum(tokens for _, tokens in events) if is_ok else None,
        "outcome": "ok" if is_ok else "http",
        "error": None if is_ok else "HTTP 503: too busy",
        "event_first": first,
        "event_count": len(events),
    }


REQUESTS: list[tuple[str, int, list[Event]]] = [
    ("warmup", 0, [(5 * MS, 1), (6 * MS, 1)]),
    ("measured", 10 * MS, [(30 * MS, 1), (40 * MS, 1), (60 * MS, 1)]),
    ("measured", 10 * MS, []),
    ("measured", 70 * MS, [(90 * MS, 1), (95 * MS, 2)]),
]
HEAD: Row = {
    "complete": True,
    "plan": {"request_count": 3},
    "client": {"lag_p99_ms": 0.5, "kernel_stamp_share": 0.75},
}


def _parts(requests: list[tuple[str, int, list[Event]]] = REQUESTS, **head: Any) -> tuple[bytes, bytes, bytes]:
    rows: list[Row] = []
    every: list[Event] = []
    for index, (phase, send_ns, events) in enumerate(requests):
        rows.append(_row(index, phase, send_ns, events, first=len(every)))
        every += events
    packed = struct.pack(f"<{len(every)}q", *(at for at, _ in every))
    packed += struct.pack(f"<{len(every)}q", *(at - 1 for at, _ in every))
    packed += struct.pack(f"<{len(every)}i", *(tokens for _, tokens in every))
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    return json.dumps({**HEAD, **head}).encode(), lines.encode(), packed


def _stamped(*kernel_ns: int) -> LoadReport:
    """Read one request sent at 10 ms whose events our client read at 30, 40 and 60 ms."""
    header, rows, events = _parts([REQUESTS[1]])
    return read_meter(header, rows, events[:24] + struct.pack("<3q", *kernel_ns) + events[48:])


def _read(**head: Any) -> LoadReport:
    return read_meter(*_parts(**head))


@pytest.fixture(scope="module")
def twin() -> LoadReport:
    return read_vllm_bench(TWIN.read_bytes())


def _twin_with(**keys: Any) -> bytes:
    return json.dumps(json.loads(TWIN.read_bytes()) | keys).encode()


# The meter's plan and argv


def test_a_closed_scenario_becomes_a_closed_plan() -> None:
    assert meter_plan(SCENARIO, TARGET, 3, 120.0)["load"] == {"kind": "closed", "concurrency": 4}


@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
def test_an_open_scenario_becomes_a_plan_of_its_arrivals_and_rate(arrivals: str) -> None:
    work = Workload.model_validate(OPEN.model_dump() | {"arrivals": arrivals})

    assert meter_plan(with_workload(work), TARGET, 3, 120.0)["load"] == {"kind": arrivals, "rate_per_s": 2.0}


def test_a_bursty_scenario_tells_both_drivers_how_bursty() -> None:
    bursty = with_workload(Workload.model_validate(OPEN.model_dump() | {"arrivals": "gamma", "burstiness": 0.5}))

    argv = vllm_bench_argv(Path("vllm"), bursty, TARGET, 3, Path("out/result.json"))

    assert meter_plan(bursty, TARGET, 3, 120.0)["load"] == {"kind": "gamma", "rate_per_s": 2.0, "burstiness": 0.5}
    assert argv[argv.index("--burstiness") + 1] == "0.5"
    assert "gamma 2/s of burstiness 0.5" in describe_load(bursty)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("meter_plan_version", 2),
        ("workers", 1),
        ("kernel_stamps", True),
        ("url", "http://127.0.0.1:8811"),
        ("path", "/v1/completions"),
        ("model", "small"),
        ("output_tokens", 64),
        ("request_count", 40),
        ("warmup_count", 2),
        ("timeout_s", 120.0),
    ],
)
def test_the_plan_holds_what_the_scenario_and_the_target_say(key: str, value: object) -> None:
    assert meter_plan(SCENARIO, TARGET, 3, 120.0)[key] == value


def test_prompts_are_drawn_by_seed_from_the_ids_the_model_has() -> None:
    assert meter_plan(SCENARIO, TARGET, 3, 120.0)["prompts"] == {
        "kind": "random",
        "input_tokens": 128,
        "token_low": 264,
        "token_high": 2048,
        "seed": 3,
    }


@pytest.mark.parametrize(
    ("prompts", "path", "planned"),
    [
        ({"form": "text"}, "/v1/completions", {"kind": "random", "form": "text"}),
        ({"form": "chat"}, "/v1/chat/completions", {"kind": "random", "form": "chat"}),
        (
            {"kind": "shared-prefix", "groups": 2, "prefix_tokens": 64},
            "/v1/completions",
            {"kind": "shared-prefix", "groups": 2, "prefix_tokens": 64, "token_low": 264, "token_high": 2048},
        ),
        (
            {"kind": "images", "form": "chat", "width": 8, "height": 4, "images": 2},
            "/v1/chat/completions",
            {"kind": "images", "form": "chat", "width": 8, "height": 4, "images": 2},
        ),
        (
            {"kind": "sharegpt", "form": "text", "file": "/talks.json", "sha256": "0" * 64, "repeat": True},
            "/v1/completions",
            {"kind": "sharegpt", "form": "text", "path": "/talks.json", "sha256": "0" * 64, "repeat": True,
             "output": "asked", "order_seed": 9, "share": 1, "shares": 4},
        ),
    ],
)  # fmt: skip
def test_each_kind_of_prompt_is_planned_with_its_own_keys_and_endpoint(prompts: Row, path: str, planned: Row) -> None:
    work = SCENARIO.workload.model_copy(update={"prompts": Prompts.model_validate(prompts)})

    plan = meter_plan(with_workload(work), TARGET, 3, 120.0, RunInputs(conversations=ConversationShare(9, 1, 4)))

    assert plan["path"] == path
    assert plan["prompts"] == {"input_tokens": 128, "seed": 3, **planned}


RECORDED = (
    Replayed(0.0, 5, (("block 7", 100),)),
    Replayed(0.5, 6, (("block 7", 64), ("prompt 1", 7))),
)


def test_the_arrivals_of_a_trace_stand_in_the_plan() -> None:
    work = Workload(isl=128, osl=64, request_count=2, arrivals="trace", trace="a.csv")

    plan = meter_plan(with_workload(work), TARGET, 3, 120.0, RunInputs(trace=RECORDED))

    assert plan["load"] == {"kind": "trace", "arrivals_s": [0.0, 0.5]}
    assert plan["prompts"]["kind"] == "random"


def test_the_requests_of_a_trace_with_lengths_stand_in_the_plan_with_their_parts_as_numbers() -> None:
    work = Workload(isl=128, osl=64, request_count=2, arrivals="trace", trace="a.jsonl", trace_format="mooncake")
    target = replace(TARGET, cache_block_tokens=16)

    plan = meter_plan(with_workload(work), target, 3, 120.0, RunInputs(trace=RECORDED))

    assert plan["prompts"] == {
        "kind": "replay",
        "input_tokens": 128,
        "token_low": 264,
        "token_high": TARGET.vocab_size,
        "seed": 3,
        "requests": [
            {"output_tokens": 5, "parts": [[0, 100]]},
            {"output_tokens": 6, "parts": [[0, 64], [1, 7]]},
        ],
    }
    assert plan["cache_block_tokens"] == 16


def _planning(*counts: Row) -> PlannedTokens | None:
    header, rows, events = _parts()
    changed = [{**json.loads(line), **more} for line, more in zip(rows.splitlines(), counts, strict=True)]
    return read_meter(header, "\n".join(json.dumps(row) for row in changed).encode(), events).planned


def _told(prompt: int | None, cached: int | None) -> Row:
    return {"prompt_tokens_planned": prompt, "output_tokens_planned": 4, "cached_tokens_planned": cached}


def test_what_was_planned_is_summed_over_good_requests_and_the_cache_over_all() -> None:
    planned = _planning(_told(8, 0), _told(8, 5), _told(8, 5), _told(9, 6))

    assert planned == PlannedTokens(input_tokens=17, output_tokens=8, cached_tokens=16)


def test_one_length_that_nobody_can_know_leaves_the_sum_unknown() -> None:
    planned = _planning(_told(8, None), _told(8, 5), _told(8, 5), _told(None, 6))

    assert planned == PlannedTokens(input_tokens=None, output_tokens=8, cached_tokens=None)


def test_answers_are_greedy_of_full_length_and_carry_token_ids() -> None:
    assert meter_plan(SCENARIO, TARGET, 3, 120.0)["extra_body"] == {
        "temperature": 0.0,
        "ignore_eos": True,
        "return_token_ids": True,
    }


def test_the_sampling_temperature_of_a_workload_reaches_each_client() -> None:
    warm = with_workload(SCENARIO.workload.model_copy(update={"temperature": 0.7}))

    argv = vllm_bench_argv(Path("/vllm"), warm, TARGET, 3, Path("/out/result.json"))

    assert meter_plan(warm, TARGET, 3, 120.0)["extra_body"]["temperature"] == 0.7
    assert argv[argv.index("--temperature") + 1] == "0.7"


def test_the_meter_runs_isolated_from_our_packages() -> None:
    argv = meter_argv(Path("/py"), Path("/meter.pyz"), Path("/plan.json"), Path("/out"))

    assert argv == ("/py", "-I", "/meter.pyz", "run", "/plan.json", "/out")


# The meter's report


def test_the_warm_up_is_left_out_of_the_requests() -> None:
    assert _read().requests.index.tolist() == [1, 2, 3]


def test_the_warm_up_is_counted_beside_them() -> None:
    report = _read()

    assert (report.warmup_count, report.warmup_input_tokens, report.warmup_output_tokens) == (1, 8, 2)


def test_the_planned_count_is_that_of_the_plan() -> None:
    assert _read(plan={"request_count": 7}).planned_count == 7


def test_times_are_seconds() -> None:
    requests = _read().requests

    assert np.allclose(requests.ttft_s, [0.020, np.nan, 0.020], equal_nan=True)


def test_the_gaps_are_those_between_the_events_of_one_request() -> None:
    requests = _read().requests

    assert np.allclose(requests.gap_s, [0.010, 0.020, 0.005])


def test_each_request_knows_its_own_gaps() -> None:
    assert _read().requests.gap_at.tolist() == [0, 2, 2, 3]


def test_ttft_plus_all_gaps_of_a_report_is_e2el() -> None:
    requests = _read().requests

    assert np.allclose((requests.ttft_s + requests.gap_sum_s)[requests.is_ok], requests.e2el_s[requests.is_ok])


def test_tokens_count_from_when_the_kernel_had_them_not_from_when_we_read_them() -> None:
    requests = _stamped(25 * MS, 35 * MS, 45 * MS).requests

    assert np.allclose([requests.ttft_s[0], requests.e2el_s[0], *requests.gap_s], [0.015, 0.035, 0.010, 0.010])


def test_where_one_stamp_of_the_kernel_is_missing_none_is_used() -> None:
    requests = _stamped(25 * MS, NO_STAMP_NS, 45 * MS).requests

    assert np.allclose(requests.gap_s, [0.010, 0.020])


def test_the_warm_up_of_vllm_bench_is_its_first_prompt_again() -> None:
    report = read_vllm_bench(TWIN.read_bytes(), warmup_count=3)

    first = report.requests.input_tokens[0], report.requests.output_tokens.max()
    assert (report.warmup_count, report.warmup_input_tokens, report.warmup_output_tokens) == (
        3,
        3 * first[0],
        3 * first[1],
    )


def test_without_any_stamp_of_the_kernel_our_own_readings_count() -> None:
    requests = _stamped(NO_STAMP_NS, NO_STAMP_NS, NO_STAMP_NS).requests

    assert np.allclose([requests.ttft_s[0], requests.e2el_s[0]], [0.020, 0.050])


def test_an_event_may_carry_several_tokens() -> None:
    assert _read().requests.event_tokens.tolist() == [3, 0, 3]


def test_a_failed_request_keeps_its_outcome_and_its_error() -> None:
    requests = _read().requests

    assert (requests.outcome[1], requests.error[1]) == ("http", "HTTP 503: too busy")


def test_a_failed_request_is_not_ok() -> None:
    assert _read().requests.is_ok.tolist() == [True, False, True]


def test_a_request_without_events_has_no_times_of_tokens() -> None:
    requests = _read().requests

    assert np.isnan([requests.first_token_s[1], requests.last_token_s[1]]).all()


def test_counts_nobody_reported_are_minus_one() -> None:
    assert _read().requests.output_tokens.tolist() == [3, -1, 3]


def test_a_run_in_which_every_request_failed_is_still_read() -> None:
    report = read_meter(*_parts([("measured", 0, []), ("measured", 0, [])]))

    assert report.requests.is_ok.tolist() == [False, False]


def test_the_lag_of_the_client_is_in_seconds() -> None:
    assert _read().lag_p99_s == 0.0005


def test_the_delays_of_the_client_are_in_seconds() -> None:
    delays = {"dispatch_delay_p99_ms": 2.0, "send_gap_p99_ms": 3.0}
    report = _read(client={"lag_p99_ms": 0.5, "kernel_stamp_share": 0.75} | delays)

    assert (report.dispatch_delay_p99_s, report.slot_refill_p99_s) == (0.002, 0.003)


def test_the_times_of_the_server_are_in_seconds() -> None:
    names = ("time_to_first_token_ms", "queue_time_ms", "generation_time_ms", "mean_itl_ms")
    told = {"server_metrics": {name: 1.0 + at for at, name in enumerate(names)}}
    every = "\n".join(json.dumps(_row(at, "measured", 0, [], 0) | more) for at, more in enumerate((told, {})))

    times = read_server_times(read_rows(every.encode()))

    assert times is not None
    found = [times.ttft_s, times.queue_s, times.generation_s, times.mean_itl_s]
    assert [float(each[0]) for each in found] == [0.001, 0.002, 0.003, 0.004]
    assert all(np.isnan(each[1]) for each in found)


def test_a_lag_nobody_measured_is_missing() -> None:
    assert _read(client={"lag_p99_ms": None, "kernel_stamp_share": None}).lag_p99_s is None


def test_a_run_that_was_cut_short_says_so() -> None:
    assert not _read(complete=False).is_complete


@pytest.mark.parametrize("cut", [1, 8, 20])
def test_a_truncated_events_file_is_unreadable(cut: int) -> None:
    header, rows, events = _parts()

    with pytest.raises(UnreadableResultError, match=r"events\.bin holds \d+ (bytes|events)"):
        read_meter(header, rows, events[:-cut])


def _with_kinds(columns: list[list[str]]) -> tuple[bytes, bytes, bytes]:
    """A request of record version 2: a role, two token events, usage; the columns in the order of the header."""
    values = {
        "event_at_ns": [20 * MS, 30 * MS, 40 * MS, 41 * MS],
        "event_kernel_ns": [NO_STAMP_NS, 30 * MS - 1, 40 * MS - 1, NO_STAMP_NS],
        "event_tokens": [0, 1, 2, 0],
        "event_kind": [0, 1, 1, 5],
    }
    row = {**_row(7, "measured", 10 * MS, [(30 * MS, 1), (40 * MS, 2)], first=0), "event_count": 4}
    packed = b"".join(np.array(values[name], dtype=kind).tobytes() for name, kind in columns)
    head = json.dumps({**HEAD, "events": {"count": 4, "columns": columns, "kinds": ["role", "content"]}})
    return head.encode(), json.dumps(row).encode(), packed


COLUMNS = [["event_at_ns", "<i8"], ["event_kernel_ns", "<i8"], ["event_tokens", "<i4"], ["event_kind", "|u1"]]


@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS[::-1]])
def test_the_header_says_where_the_columns_are_and_events_without_tokens_are_none(columns: list[list[str]]) -> None:
    requests = read_meter(*_with_kinds(columns)).requests

    assert requests.event_tokens.tolist() == [3]
    assert requests.gap_s.tolist() == pytest.approx([0.01])
    assert requests.first_token_s.tolist() == pytest.approx([(30 * MS - 1) * 1e-9], rel=1e-12)


def test_events_that_the_rows_do_not_promise_are_unreadable() -> None:
    header, rows, events = _with_kinds(COLUMNS)

    with pytest.raises(UnreadableResultError, match=r"events\.bin holds 4 events, but requests\.jsonl lists 3"):
        read_meter(header, rows.replace(b'"event_count": 4', b'"event_count": 3'), events)


def test_an_events_file_that_is_too_long_is_unreadable() -> None:
    header, rows, events = _parts()

    with pytest.raises(UnreadableResultError, match=r"events\.bin"):
        read_meter(header, rows, events + bytes(20))


@pytest.mark.parametrize("cut", [1, 30])
def test_a_broken_header_is_unreadable(cut: int) -> None:
    header, rows, events = _parts()

    with pytest.raises(UnreadableResultError):
        read_meter(header[:-cut], rows, events)


def test_a_torn_last_row_is_unreadable() -> None:
    header, rows, events = _parts()

    with pytest.raises(UnreadableResultError):
        read_meter(header, rows[:-10], events)


# The two times that events.bin tells as well, and better.
NOT_READ = {"first_token_at_ns", "last_token_at_ns"}


@pytest.mark.parametrize("key", sorted(_row(0, "measured", 0, [], 0).keys() - NOT_READ))
def test_a_row_that_lacks_a_key_is_unreadable(key: str) -> None:
    header, rows, events = _parts()
    lacking = [{name: value for name, value in json.loads(line).items() if name != key} for line in rows.splitlines()]

    with pytest.raises(UnreadableResultError, match=key):
        read_meter(header, "\n".join(json.dumps(row) for row in lacking).encode(), events)


@pytest.mark.parametrize("key", sorted(HEAD))
def test_a_header_that_lacks_a_key_is_unreadable(key: str) -> None:
    header, rows, events = _parts()
    lacking = {name: value for name, value in json.loads(header).items() if name != key}

    with pytest.raises(UnreadableResultError, match=key):
        read_meter(json.dumps(lacking).encode(), rows, events)


def test_a_row_that_points_outside_the_events_is_unreadable() -> None:
    header, rows, events = _parts()
    moved = rows.replace(b'"event_first": 5', b'"event_first": 99')

    with pytest.raises(UnreadableResultError):
        read_meter(header, moved, events)


# vllm bench serve


def _bench_argv(scenario: Scenario) -> tuple[str, ...]:
    return vllm_bench_argv(Path("/engine/bin/vllm"), scenario, TARGET, 3, Path("/out/result.json"))


def _value(argv: tuple[str, ...], flag: str) -> str:
    return argv[argv.index(flag) + 1]


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--base-url", "http://127.0.0.1:8811"),
        ("--model", "small"),
        ("--tokenizer", "/models/small"),
        ("--random-input-len", "128"),
        ("--random-output-len", "64"),
        ("--num-prompts", "40"),
        ("--num-warmups", "2"),
        ("--max-concurrency", "4"),
        ("--request-rate", "inf"),
        ("--seed", "3"),
        ("--temperature", "0"),
        ("--result-dir", "/out"),
        ("--result-filename", "result.json"),
    ],
)
def test_a_closed_scenario_becomes_these_flags(flag: str, value: str) -> None:
    assert _value(_bench_argv(SCENARIO), flag) == value


@pytest.mark.parametrize("flag", ["--ignore-eos", "--save-result", "--save-detailed"])
def test_the_bench_is_told_to_answer_in_full_and_to_keep_every_request(flag: str) -> None:
    assert flag in _bench_argv(SCENARIO)


def test_a_closed_scenario_has_no_burstiness() -> None:
    assert "--burstiness" not in _bench_argv(SCENARIO)


@pytest.mark.parametrize(("arrivals", "burstiness"), [("poisson", "1"), ("constant", "1e6")])
def test_open_arrivals_become_a_rate_and_its_burstiness(arrivals: str, burstiness: str) -> None:
    work = Workload.model_validate(OPEN.model_dump() | {"arrivals": arrivals})

    argv = _bench_argv(with_workload(work))

    assert (_value(argv, "--request-rate"), _value(argv, "--burstiness")) == ("2", burstiness)


def test_an_open_scenario_has_no_cap_on_its_concurrency() -> None:
    assert "--max-concurrency" not in _bench_argv(with_workload(OPEN))


def test_the_times_of_the_bench_are_read_as_seconds(twin: LoadReport) -> None:
    assert np.allclose(twin.requests.ttft_s, [0.5, 0.25, np.nan, 0.5], equal_nan=True)


def test_latencies_of_the_bench_are_read_as_e2el(twin: LoadReport) -> None:
    assert np.allclose(twin.requests.e2el_s, [1.0, 1.0, np.nan, 0.5], equal_nan=True)


def test_the_bench_is_believed_in_its_latencies_where_its_gaps_add_up_to_less() -> None:
    report = read_vllm_bench(_twin_with(latencies=[1.25, 1.5, 0.0, 0.75]))

    assert np.allclose(report.requests.e2el_s, [1.25, 1.5, np.nan, 0.75], equal_nan=True)


def test_the_gaps_of_the_bench_stay_with_their_request(twin: LoadReport) -> None:
    assert twin.requests.gap_sum_s.tolist() == [0.5, 0.75, 0.0, 0.0]


def test_a_request_the_bench_gives_an_error_for_is_failed(twin: LoadReport) -> None:
    assert twin.requests.error == (None, None, "Bad Request", None)


def test_a_request_that_failed_in_the_bench_has_no_times(twin: LoadReport) -> None:
    assert np.isnan([twin.requests.first_token_s[2], twin.requests.last_token_s[2]]).all()


def test_a_request_the_bench_never_sent_does_not_stretch_the_window() -> None:
    report = read_vllm_bench(_twin_with(start_times=[100.0, 100.0, 0.0, 102.5]))

    assert report.requests.window_s == 3.0


def test_an_answer_without_a_token_and_without_an_error_is_failed() -> None:
    report = read_vllm_bench(_twin_with(errors=["", "", "", ""]))

    assert report.requests.is_ok.tolist() == [True, True, False, True]


def test_what_the_bench_does_not_say_is_missing(twin: LoadReport) -> None:
    assert (twin.warmup_count, twin.lag_p99_s, twin.kernel_stamp_share) == (None, None, None)


def test_the_bench_does_not_say_how_many_tokens_an_event_carried(twin: LoadReport) -> None:
    assert twin.requests.event_tokens.tolist() == [-1, -1, -1, -1]


def test_what_the_bench_prints_is_kept_for_the_audit(twin: LoadReport) -> None:
    assert (twin.planned_count, twin.duration_s, twin.output_throughput_tok_per_s) == (4, 3.0, 7 / 3)


@pytest.mark.parametrize(
    "key",
    [
        *("start_times", "ttfts", "itls", "errors", "input_lens", "output_lens"),
        *("num_prompts", "duration", "output_throughput"),
    ],
)
def test_a_bench_report_that_lacks_a_key_is_unreadable(key: str) -> None:
    raw = json.loads(TWIN.read_bytes())
    del raw[key]

    with pytest.raises(UnreadableResultError, match=key):
        read_vllm_bench(json.dumps(raw).encode())


def test_bench_lists_of_different_lengths_are_unreadable() -> None:
    with pytest.raises(UnreadableResultError, match="differ in length"):
        read_vllm_bench(_twin_with(ttfts=[0.5, 0.25]))


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"null"])
def test_a_bench_report_that_is_not_one_is_unreadable(text: bytes) -> None:
    with pytest.raises(UnreadableResultError):
        read_vllm_bench(text)


def test_a_real_report_of_the_bench_agrees_with_littles_law() -> None:
    report = read_vllm_bench(REAL.read_bytes())

    assert concurrency_achieved(report.requests) == pytest.approx(3.99, abs=0.01)


def test_in_a_real_report_of_the_bench_ttft_plus_all_gaps_is_e2el() -> None:
    requests = read_vllm_bench(REAL.read_bytes()).requests

    assert np.allclose(requests.ttft_s + requests.gap_sum_s, requests.e2el_s, atol=1e-3)


# vllm-rs bench serve


def test_the_rust_twin_gets_the_same_flags_and_prompts_as_ids() -> None:
    argv = vllm_rs_bench_argv(Path("/bin/vllm-rs"), SCENARIO, TARGET, 3, Path("/out/result.json"))

    assert argv == ("/bin/vllm-rs", *_bench_argv(SCENARIO)[1:], "--prompt-token-ids")


def test_a_real_report_of_the_rust_client_becomes_requests() -> None:
    scenario = with_workload(SCENARIO.workload.model_copy(update={"driver": "vllm-rs-bench"}))

    report = read_report(scenario, [RUST.read_bytes()])

    requests = report.requests
    assert requests.is_ok.tolist() == [True, True, True, False, True, True, True, False]
    assert {str(error)[:8] for error in requests.error} == {"None", "HTTP 500"}
    assert 0.02 < requests.ttft_s[0] < 0.03
    assert np.allclose((requests.ttft_s + requests.gap_sum_s)[[0, 1, 4, 6]], requests.e2el_s[[0, 1, 4, 6]], atol=1e-3)
    assert np.isnan(requests.ttft_s[[3, 7]]).all()
    assert (report.kernel_stamp_share, report.core_share, report.lag_p99_s) == (None, None, None)
    assert set(requests.event_tokens.tolist()) == {-1}


def test_an_error_inside_a_stream_is_a_success_to_the_rust_client_and_shows_as_missing_events() -> None:
    requests = read_vllm_bench(RUST.read_bytes()).requests

    assert requests.output_tokens.tolist() == [8, 8, 8, 0, 8, 8, 8, 0]
    assert (requests.gap_count + 1)[requests.is_ok].tolist() == [8, 8, 4, 8, 4, 8]


def test_two_rows_on_one_line_are_unreadable() -> None:
    header, rows, events = _parts()

    with pytest.raises(UnreadableResultError, match="Extra data"):
        read_meter(header, rows.strip().replace(b"\n", b","), events)


def test_the_error_of_a_broken_row_is_about_its_own_line() -> None:
    header, rows, events = _parts()
    first, *rest = rows.splitlines()

    with pytest.raises(UnreadableResultError, match=f"line 1 column {len(first)}"):
        read_meter(header, b"\n".join((first[:-1], *rest)), events)


OF_AN_ENGINE = """\
name = "small"
[model]
name = "small"
source = "path:/models/small"
[engine]
name = "{engine}"
version = "1"
max_model_len = 4096
[[scenarios]]
name = "one"
isl = 128
osl = 64
concurrency = 1
request_count = 8
driver = "{driver}"
"""


@pytest.mark.parametrize("driver", ["vllm-bench", "vllm-rs-bench"])
def test_a_client_of_vllm_drives_no_other_engine(driver: str) -> None:
    text = OF_AN_ENGINE.format(engine="llama.cpp", driver=driver)

    with pytest.raises(SuiteError) as error:
        require_driver_engines(parse_suite(text, "s.toml"), SuiteSource.of(text, "s.toml"))

    assert str(error.value) == (
        f's.toml:15: the driver {driver} is a part of vllm, and engine.name is llama.cpp: use driver = "meter"'
    )


@pytest.mark.parametrize(("engine", "driver"), [("llama.cpp", "meter"), ("vllm", "vllm-bench"), ("vllm", "meter")])
def test_a_client_drives_the_engine_that_it_is_a_part_of(engine: str, driver: str) -> None:
    text = OF_AN_ENGINE.format(engine=engine, driver=driver)

    require_driver_engines(parse_suite(text, "s.toml"), SuiteSource.of(text, "s.toml"))
