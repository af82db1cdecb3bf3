"""The files a suite names are found, hashed and shared out, and no prompt of a night comes twice."""

import hashlib
import json
import os
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.engines.ladder import fallback_run
from bench.errors import SuiteError
from bench.loadgen.drivers.meter import meter_plan
from bench.loadgen.drivers.target import LoadTarget
from bench.plan import plan_runs, prompt_seed
from bench.record import NightRecord, PlannedRun
from bench.suite.parse import parse_suite
from bench.suite.source import SuiteSource
from bench.suite.suite import Suite
from bench.suite.workload import Workload
from infra.loadgen.datasets import find_inputs, read_inputs, require_conversations
from infra.loadgen.trace_files import read_trace
from meter.plan import Plan, parse_plan
from meter.prepare import prepare
from tests.bench.builders import STARTED_AT

TARGET = LoadTarget("http://127.0.0.1:8811", "tiny", Path("/models/tiny"), vocab_size=10240)
HEAD = """\
name = "kinds"
repeats = 2

[model]
name = "tiny"
source = "generated:tiny?seed=0"

[engine]
version = "0.32.0"
max_model_len = 4096
"""
SCENARIO = """
[[scenarios]]
name = "{name}"
isl = 32
osl = 8
concurrency = 2
request_count = 5
warmup_count = 1
{prompts}
"""
TALKS = 'prompts = {{ kind = "sharegpt", form = "chat", file = "talks.jsonl"{more} }}'
TRACE = """
[[scenarios]]
name = "trace"
isl = 32
osl = 8
arrivals = "trace"
trace = "arrivals.csv"
request_count = 2
warmup_count = 1
"""

TRACES = Path(__file__).parents[2] / "data" / "traces"
MOONCAKE = """
[[scenarios]]
name = "mooncake"
isl = 3000
osl = 32
arrivals = "trace"
trace = "mooncake.jsonl"
trace_format = "mooncake"
request_count = 24
"""


def _suite(folder: Path, *scenarios: str) -> Suite:
    """The suite of these scenarios, with its files beside it."""
    text = HEAD + "".join(scenarios)
    turns = [{"from": "human", "value": "How many?"}, {"from": "gpt", "value": "Many."}]
    talks = [{"conversations": [{**turns[0], "value": f"How many times {at}?"}, turns[1]]} for at in range(30)]
    for name, content in {
        "talks.jsonl": "".join(json.dumps(talk) + "\n" for talk in talks),
        "arrivals.csv": "arrival_s,tokens\n10.5,7\n10.5,7\n12,7\n12.25,9\n",
    }.items():
        if not (folder / name).exists():
            (folder / name).write_text(content)
    path = folder / "kinds.toml"
    return find_inputs(parse_suite(text, str(path)), SuiteSource.of(text, str(path)))


def _scenario(name: str, prompts: str = "") -> str:
    return SCENARIO.format(name=name, prompts=prompts)


def _night(suite: Suite, night: str = "2026-11-21") -> NightRecord:
    return NightRecord(
        night=night,
        target="local",
        started_at=STARTED_AT,
        suite=suite,
        suite_sha256="0" * 64,
        seed=suite.seed,
        runs=plan_runs(suite),
    )


def _plan(night: NightRecord, run: PlannedRun) -> Plan:
    """The meter's own reading of what a run is given."""
    asked = meter_plan(run.scenario, TARGET, prompt_seed(night, run), 60.0, read_inputs(night, run))
    return parse_plan(json.dumps(asked))


def _bodies(night: NightRecord) -> Iterator[str]:
    for run in night.runs:
        for request in prepare(_plan(night, run), "host:1", "id"):
            yield request.body_sha256


ALL_KINDS = (
    _scenario("ids"),
    _scenario("text", 'prompts = { form = "text" }'),
    _scenario("chat", 'prompts = { form = "chat" }'),
    _scenario("shared", 'prompts = { kind = "shared-prefix", groups = 2, prefix_tokens = 16 }'),
    _scenario("talking", 'prompts = { kind = "multi-turn", turns = 3 }').replace(
        "count = 5\nwarmup_count = 1", "count = 6\nwarmup_count = 0"
    ),
    _scenario("seen", 'prompts = { kind = "images", form = "chat", width = 16, height = 16, images = 1 }'),
    _scenario("talks", TALKS.format(more="")),
    _scenario("more-talks", TALKS.format(more=', output = "recorded"')),
    TRACE,
)


def test_no_prompt_of_a_night_repeats(tmp_path: Path) -> None:
    suite = _suite(tmp_path, *ALL_KINDS)

    bodies = Counter(body for night in ("2026-11-21",) for body in _bodies(_night(suite, night)))

    assert len(bodies) == bodies.total() == 2 * (8 * 6 + 3)


def test_another_night_draws_other_prompts(tmp_path: Path) -> None:
    generated = _suite(tmp_path, *ALL_KINDS[:6])

    assert not set(_bodies(_night(generated, "2026-11-21"))) & set(_bodies(_night(generated, "2026-11-22")))


@pytest.mark.parametrize("prompts", ["prompts = { seed = 3 }", TALKS.format(more=", seed = 3")])
def test_prompts_with_a_seed_of_their_own_are_always_the_same(tmp_path: Path, prompts: str) -> None:
    suite = _suite(tmp_path, _scenario("fixed", prompts))

    bodies = Counter(body for night in ("2026-11-21", "2026-11-22") for body in _bodies(_night(suite, night)))

    assert set(bodies.values()) == {4}
    assert len(bodies) == 6


def test_two_scenarios_that_take_conversations_of_other_lengths_take_other_ones(tmp_path: Path) -> None:
    short = _scenario("short", TALKS.format(more="")).replace("isl = 32", "isl = 5")
    night = _night(_suite(tmp_path, _scenario("long", TALKS.format(more="")), short))

    requests = [request for run in night.runs for request in prepare(_plan(night, run), "h:1", "id")]
    bodies = [json.loads(request.payload.partition(b"\r\n\r\n")[2]) for request in requests]
    prompts = Counter(json.dumps(body["messages"]) for body in bodies)

    assert set(prompts.values()) == {1}


def test_a_trace_reaches_the_meter_from_its_first_arrival_on(tmp_path: Path) -> None:
    night = _night(_suite(tmp_path, TRACE))

    assert _plan(night, night.runs[0]).load.arrivals_s == (0.0, 0.0, 1.5)


def test_a_trace_with_lengths_and_hashes_reaches_the_meter_whole(tmp_path: Path) -> None:
    (tmp_path / "mooncake.jsonl").write_text((TRACES / "mooncake.jsonl").read_text())
    night = _night(_suite(tmp_path, MOONCAKE))

    plan = _plan(night, night.runs[0])
    prompts = [json.loads(one.payload.partition(b"\r\n\r\n")[2])["prompt"] for one in prepare(plan, "h:1", "id")]

    recorded = [json.loads(line) for line in (TRACES / "mooncake.jsonl").read_text().splitlines()]
    assert [len(prompt) for prompt in prompts] == [row["input_length"] for row in recorded]
    assert [request["output_tokens"] for request in plan.prompts.requests] == [row["output_length"] for row in recorded]
    assert prompts[0][:1024] == prompts[1][:1024] != prompts[3][:1024]
    assert prompts[0][1024:] != prompts[1][1024:]


def test_a_trace_is_read_line_by_line_and_no_further_than_its_window(tmp_path: Path) -> None:
    """A trace of hundreds of gigabytes, nearly all of it a hole in the file."""
    trace = tmp_path / "long.jsonl"
    row = '{"timestamp": 0, "input_length": 5, "output_length": 5}\n'
    trace.write_text(row * 3)
    os.truncate(trace, 300 << 30)
    work = Workload(isl=32, osl=8, request_count=3, arrivals="trace", trace="x", trace_format="mooncake")

    tracemalloc.start()
    read = read_trace(work, trace)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(read) == 3
    assert peak < 1 << 20
    with pytest.raises(SuiteError, match=r"long\.jsonl:4: the line is longer than 64 MiB"):
        read_trace(work.model_copy(update={"request_count": 4}), trace)


def test_a_file_is_identified_by_its_content_and_not_by_its_path(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("here", "there", "other")]
    for folder in folders:
        folder.mkdir()
    (folders[2] / "arrivals.csv").write_text("arrival_s\n1\n2\n3\n")
    (folders[2] / "talks.jsonl").write_text('{"conversations": []}\n')

    here, there, other = ([s.scenario_id for s in _suite(folder, *ALL_KINDS[6:]).expand()] for folder in folders)

    assert here == there
    assert not set(here) & set(other)
    assert len(set(here)) == 3


def test_the_suite_gets_the_paths_and_hashes_of_its_files(tmp_path: Path) -> None:
    talks, trace = (entry.workload() for entry in _suite(tmp_path, ALL_KINDS[6], TRACE).scenarios)

    assert talks.prompts.file == str((tmp_path / "talks.jsonl").resolve())
    assert talks.prompts.sha256 == hashlib.sha256((tmp_path / "talks.jsonl").read_bytes()).hexdigest()
    assert trace.trace == str((tmp_path / "arrivals.csv").resolve())
    assert trace.trace_sha256 == hashlib.sha256((tmp_path / "arrivals.csv").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("scenario", "key"),
    [
        (TRACE.replace("arrivals.csv", "nowhere.csv"), "trace = "),
        (_scenario("talks", TALKS.format(more="").replace("talks.jsonl", "nowhere.jsonl")), "prompts = "),
        (_scenario("talks", '[scenarios.prompts]\nkind = "sharegpt"\nform = "text"\nfile = "nowhere"'), "file = "),
    ],
)
def test_a_missing_file_is_reported_with_the_suites_line(tmp_path: Path, scenario: str, key: str) -> None:
    line = next(at for at, line in enumerate((HEAD + scenario).splitlines(), 1) if line.startswith(key))

    with pytest.raises(SuiteError, match="cannot be read") as caught:
        _suite(tmp_path, scenario)

    assert str(caught.value).startswith(f"{tmp_path / 'kinds.toml'}:{line}: the file {tmp_path / 'nowhere'}")


def test_a_file_with_another_hash_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="SHA-256 mismatch"):
        _suite(tmp_path, TRACE + f'trace_sha256 = "{"0" * 64}"\n')


def test_a_trace_that_changed_since_the_night_was_planned_is_refused(tmp_path: Path) -> None:
    night = _night(_suite(tmp_path, TRACE))
    (tmp_path / "arrivals.csv").write_text("arrival_s\n1\n2\n3\n")

    with pytest.raises(SuiteError, match=r"scenario 'trace': .* SHA-256 mismatch"):
        read_inputs(night, night.runs[0])


def test_a_run_on_a_rung_of_the_ladder_takes_the_conversations_of_the_run_that_it_stands_for(tmp_path: Path) -> None:
    talks = [_scenario(name, TALKS.format(more="")) for name in ("one", "two")]
    night = _night(_suite(tmp_path, *talks, "[[ladder]]\nmax_num_seqs = 4\n[[ladder]]\nmax_num_seqs = 2\n"))

    for run in night.runs:
        smaller = fallback_run(night, run)
        assert smaller is not None
        smallest = fallback_run(night, smaller)
        assert smallest is not None
        assert [read_inputs(night, one).conversations for one in (smaller, smallest)] == [
            read_inputs(night, run).conversations
        ] * 2
    assert len({str(read_inputs(night, run).conversations) for run in night.runs}) == len(night.runs)


def test_too_few_conversations_are_reported_before_the_night(tmp_path: Path) -> None:
    night = _night(_suite(tmp_path, _scenario("talks", TALKS.format(more="")).replace("count = 5", "count = 15")))

    with pytest.raises(
        SuiteError, match=r"scenario 'talks', repeat \d: .* has 15 different prompts .* in share \d of 2"
    ):
        require_conversations(night)


def test_exactly_enough_conversations_are_accepted(tmp_path: Path) -> None:
    require_conversations(_night(_suite(tmp_path, *ALL_KINDS)))


def test_a_broken_conversation_is_reported_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "talks.jsonl").write_text('{"conversations": []}\n{oops\n')
    night = _night(_suite(tmp_path, ALL_KINDS[6]))

    with pytest.raises(SuiteError, match=r"talks\.jsonl:2: not JSON"):
        require_conversations(night)
