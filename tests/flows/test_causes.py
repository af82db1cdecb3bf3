"""A confirmed change is followed by a search for its engine, and the answer is sent and shown."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bench.engines.profile_record import ProfileRecord
from bench.record import LeaseReport, NightRecord
from bench.suite.engine_searches import Bisect
from bench.suite.scenario import Scenario
from bench.trends.bisect import Bisection, Measured, Step
from flows.causes import Side, _candidates, _in_words, _why_none
from flows.end_state import loaded
from flows.night_request import NightRequest
from flows.nightly import nightly, whole_night
from infra.settings import Settings
from infra.storage import store
from tasks.cause_traces import traces_in_words
from tests.emulators.messages import Webhook, webhook
from tests.warehouse.folders import Shape, Told, write_night, write_run
from tests.warehouse.simulated_lake import write
from tests.warehouse.trends.judgements import AT, judgement
from warehouse.lake.database import build_warehouse
from warehouse.lake.query import ask
from warehouse.load import load_judgement
from warehouse.trends.kept import JUDGEMENT

GOOD, SLOWER = "0.31.0", "0.33.0"  # between them is the release that the checkout has a lock of
NIGHT = "2026-03-01T010000Z"
METRIC = "tpot_p50_ms"
SUITE = """
name = "history"
repeats = 2
bisect = {{ usd = 5 }}
[model]
name = "tiny"
source = "generated:tiny"
[engine]
version = "{version}"
max_model_len = 4096
flags = ["--no-enable-prefix-caching", "--max-num-seqs", "256"]
[quality]
min_duration_s = 1.0
min_requests_per_slot = 10.0
"""
SCENARIO = """
[[scenarios]]
name = "{name}"
isl = 16
osl = 8
concurrency = {concurrency}
request_count = 400
warmup_count = 2
"""


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with webhook() as found:
        yield found


@pytest.fixture
def settings(tmp_path: Path, hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", "/nowhere/vllm")  # so that each release could run
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("NIGHTBENCH_NOTIFY_URLS", f"json://{hook.url}/")
    return Settings()


def write_suite(folder: Path, version: str) -> Path:
    scenarios = "".join(SCENARIO.format(name=name, concurrency=at) for name, at in (("chat", 4), ("long", 8)))
    (folder / "suite.toml").write_text(SUITE.format(version=version) + scenarios)
    return folder / "suite.toml"


def write_trace(data: Path, night: NightRecord, scenario: Scenario, **more: object) -> None:
    """What a night of a bisect leaves of its scenario."""
    partial = store.start_folder(store.profile_folder(data, night.night, scenario.scenario_id))
    (partial / "rank0.json.gz").write_bytes(b"")
    values = {"scenario_id": scenario.scenario_id, "requests": 8, "traces": ("rank0.json.gz",), "reason": None} | more
    times = {"started_at": AT, "ended_at": AT}
    store.finish_run(partial, ProfileRecord(night=night.night, scenario=scenario, **values, **times))


def measured_at_once(settings: Settings, night: NightRecord, *_more: object, **_named: object) -> None:
    """Stands for every machine: it measures at once, at the speed of the engine's version."""
    version = night.suite.engine.version or ""
    for run in store.missing_runs(settings.data, night):
        if version == SLOWER and night.suite.profile is not None and run.repeat == 0:
            write_trace(settings.data, night, run.scenario)
        gap = (5.5 if version == SLOWER else 5.0) * (1 + 0.001 * run.repeat)
        shape = Shape(gap_ms=gap, concurrency=run.scenario.workload.concurrency or 1)
        write_run(settings.data, night, run, shape, Told(engine_version=f"{version}+cpu", host={"gpu_driver": version}))


def confirm(data: Path, good: str, bad: str) -> str:
    """A judgement of the bad night that confirms a change of one scenario; returns its event."""
    ((series,),) = ask(
        data, "SELECT DISTINCT series FROM series_nights WHERE metric = ? AND series LIKE '%/chat/%'", (METRIC,)
    ).rows
    said = judgement(bad)
    seen = {"series": series, "metric": METRIC, "unit": "", "last_good": good, "first_bad": bad}
    change = said.changes[0].model_copy(update=seen)
    store.write_json(
        store.night_folder(data, bad) / JUDGEMENT,
        said.model_copy(update={"rerun_of": None, "verdicts": (), "changes": (change,)}),
    )
    load_judgement(data, bad)
    return change.event_id


@pytest.mark.matrix  # seven nights without an engine
@pytest.mark.usefixtures("nights_without_prefect")
def test_a_confirmed_change_of_several_causes_is_followed_by_a_search_whose_answer_is_sent_and_shown(
    tmp_path: Path, settings: Settings, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.nightly.try_machines", measured_at_once)
    good = loaded(nightly(suite=str(write_suite(tmp_path, GOOD)), target="local")).night
    suite = write_suite(tmp_path, SLOWER)

    bad = loaded(whole_night(settings, NightRequest(str(suite), "local"))).night
    event = confirm(settings.data, good, bad)
    before = set(store.nights(settings.data))
    hook.taken.clear()

    nightly(suite=str(suite), target="local", resume=bad)

    searched = [store.read_night(settings.data, one) for one in store.nights(settings.data) if one not in before]
    assert [one.suite.engine.version for one in searched].count("0.32.0") == 1
    assert {run.scenario.name for one in searched for run in one.runs} == {"chat"}
    ((note,),) = ask(settings.data, "SELECT DISTINCT note FROM changes WHERE event_id = ?", (event,)).rows
    assert note.startswith(f"{SLOWER} is the first one that moved {METRIC}; 0.32.0 is the last one before; {METRIC} +")
    newest = max(one.night for one in searched if one.suite.engine.version == SLOWER)
    (trace,) = (settings.data / "runs" / newest).glob("profile-*/0/*.gz")
    answer, good_trace, bad_trace = note.split("\n")
    assert answer.endswith("5 nights, 0.00 USD")
    assert (good_trace, bad_trace) == (
        "no trace of 0.32.0: its nights had no time for one",
        f"trace of {SLOWER}: {trace.relative_to(settings.data)}",
    )
    page = (settings.data / "reports" / f"{bad}.html").read_text()
    assert all(line in page for line in (answer, good_trace))
    assert answer in hook.taken[-1]["title"]
    assert "trace of" not in hook.taken[-1]["title"]
    assert f"event {event}: {note}" in hook.taken[-1]["message"]
    ended = len(store.nights(settings.data))
    nightly(suite=str(suite), target="local", resume=bad)
    assert len(store.nights(settings.data)) == ended


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ((), "the engine of one of the two nights is not known"),
        ((GOOD,), f"both nights ran {GOOD}"),
        ((GOOD, "0.32.0", SLOWER), "a night costs 11.00 USD, and [bisect] usd is 5.00"),
    ],
)
def test_no_night_is_run_that_could_tell_nothing_or_costs_too_much(
    tmp_path: Path, names: tuple[str, ...], why: str
) -> None:
    night = write_night(tmp_path, NIGHT, {"chat": Shape()})
    night = night.model_copy(update={"suite": night.suite.model_copy(update={"bisect": Bisect(usd=5)})})
    lease = LeaseReport(lease_id="one", cloud="static", machine_id="this", usd_per_hour=9.0, usd=9.0)
    store.write_json(store.lease_file(tmp_path, NIGHT, "one"), lease)

    assert _why_none(tmp_path, night, judgement(NIGHT).changes[0], names) == why


def test_the_answer_names_the_engine_the_interval_the_commits_and_the_cost() -> None:
    nights = [("1", 10.0), ("1", 10.1), ("2", 11.0), ("2", 11.1)]
    measured = tuple(
        Measured(candidate=name, night=str(at), by_series={"a": value}) for at, (name, value) in enumerate(nights)
    )
    search = Bisection(metric=METRIC, suite="s", target="local", candidates=("1", "2"), measured=measured)
    step = Step(None, "1", "2", "2 is the first one", is_found=True)

    said = _in_words(search, step, (Side("chat", "1", "aaa"), Side("chat", "2", "bbb")), 3.5)

    assert said.startswith("2 is the first one; tpot_p50_ms +10.0 % [+")
    assert said.endswith("; commits aaa..bbb; 4 nights, 3.50 USD")


def test_the_answer_names_the_newest_trace_of_each_side_or_why_there_is_none(tmp_path: Path) -> None:
    nights = [write_night(tmp_path, f"2026-03-0{day}T010000Z", {"chat": Shape()}) for day in (1, 2, 3)]
    sides = ("1", "2", "1")
    measured = tuple(Measured(candidate=side, night=night.night) for side, night in zip(sides, nights, strict=True))
    search = Bisection(metric=METRIC, suite="s", target="local", candidates=("1", "2"), measured=measured)
    found = Step(None, "1", "2", "2 is the first one", is_found=True)
    for night in (nights[0], nights[2]):
        write_trace(tmp_path, night, night.runs[0].scenario)
    newest = store.profile_folder(Path(), nights[2].night, nights[2].runs[0].scenario.scenario_id)

    before = list(traces_in_words(tmp_path, search, found))
    write_trace(tmp_path, nights[1], nights[1].runs[0].scenario, traces=(), reason="the start failed")

    trace = f"trace of 1: {newest}/rank0.json.gz"
    assert before == [trace, "no trace of 2: its nights had no time for one"]
    assert list(traces_in_words(tmp_path, search, found)) == [trace, "no trace of 2: the start failed"]
    assert list(traces_in_words(tmp_path, search, Step(None, "1", "2", "no change"))) == []


def test_between_two_images_lie_those_of_their_repository_that_were_measured(tmp_path: Path) -> None:
    images = ("vllm@sha256:1", "rocm@sha256:9", "vllm@sha256:2", "vllm@sha256:3")
    for at, image in enumerate(images, 1):
        row = {"night": f"2026-03-0{at}", "run_id": image, "image": image, "started_at": AT + timedelta(days=at)}
        write(tmp_path / "lake", "measurements", f"2026-03-0{at}", [row])
    build_warehouse(tmp_path)
    first, _other, _middle, last = (Side("chat", image, None) for image in images)
    release = Side("chat", GOOD, None)

    assert _candidates(tmp_path, (first, last)) == ("vllm@sha256:1", "vllm@sha256:2", "vllm@sha256:3")
    assert _candidates(tmp_path, (release, last)) == (GOOD, "vllm@sha256:3")
    assert _candidates(tmp_path, (release, Side("chat", None, None))) == ()
