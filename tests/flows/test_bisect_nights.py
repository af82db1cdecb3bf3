"""The command over whole nights of a simulated engine history: planned, measured, loaded, judged and read back."""

import json
import re
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bench.errors import EngineBuildError, UsageError
from bench.record import LeaseReport, NightRecord
from flows.cli import app
from flows.machines import run_machines
from infra.settings import Settings
from infra.storage import store
from tests.warehouse.folders import Shape, Told, write_run

NOT_BUILT = "0.29.1"
VERSIONS = ["0.28.0", "0.29.0", NOT_BUILT, "0.30.0", "0.31.0"]
SLOWER_FROM = 29
SUITE = """
name = "history"
repeats = 2
[model]
name = "tiny"
source = "generated:tiny"
[engine]
version = "0.32.0"
max_model_len = 4096
flags = ["--no-enable-prefix-caching", "--max-num-seqs", "256"]
[quality]
min_duration_s = 1.0
min_requests_per_slot = 10.0
[[scenarios]]
name = "chat"
isl = 16
osl = 8
concurrency = 4
request_count = 400
warmup_count = 2
"""


class Machines:
    """Stands for every machine: it measures at once, at the speed of the engine's version."""

    def __init__(self, data: Path) -> None:
        self.data, self.measured = data, list[str]()
        self.stop_after_runs: int | None = None
        self.slower: str | None = None  # the scenario that newer engines slow down; None: each

    def measure(
        self, settings: Settings, night: NightRecord, _progress: object, **_more: object
    ) -> BaseException | None:
        version = night.suite.engine.version or ""
        self.measured.append(version)
        if version == NOT_BUILT:
            return run_machines(settings, night, lambda _part: EngineBuildError("no such version"))
        gap_ms = 5.5 if int(version.split(".")[1]) >= SLOWER_FROM else 5.0
        for run in store.missing_runs(self.data, night):
            if self.stop_after_runs == 0:
                raise KeyboardInterrupt
            self.stop_after_runs = None if self.stop_after_runs is None else self.stop_after_runs - 1
            is_slower = self.slower is None or run.scenario.name == self.slower
            shape = Shape(gap_ms=(gap_ms if is_slower else 5.0) * (1 + 0.001 * run.repeat))
            write_run(self.data, night, run, shape, Told(engine_version=f"{version}+cpu"))
        return None


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nights_without_prefect: None) -> Machines:
    del nights_without_prefect
    found = Machines(tmp_path / "data")
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", "/nowhere/vllm")  # no release of the history has a lock
    monkeypatch.setattr("flows.nightly.try_machines", found.measure)
    monkeypatch.setattr("tasks.loading.write_report", lambda data, night: data / night)  # a search reads no page
    monkeypatch.setattr("flows.temporary_server.temporary_server", nullcontext)
    monkeypatch.setattr("flows.ending.handle_stop_signals", lambda _data: None)  # this process is pytest's
    return found


def bisect(folder: Path, *more: str, metric: str = "tpot_p50_ms", suite: str = SUITE) -> Result:
    (folder / "suite.toml").write_text(suite)
    (folder / "versions.txt").write_text("\n".join(VERSIONS))
    files = ["--images", str(folder / "versions.txt"), "--suite", str(folder / "suite.toml")]
    asked = ["bisect", metric, "--good", VERSIONS[0], "--bad", VERSIONS[-1], *files, *more]
    return CliRunner().invoke(app, ["--data", str(folder / "data"), *asked])


def test_a_metric_that_does_not_exist_is_refused_with_the_nearest_before_a_night_runs(
    tmp_path: Path, machines: Machines
) -> None:
    said = bisect(tmp_path, "--plan", metric="tpot_p50")

    assert str(said.exception).startswith("'tpot_p50' is not a metric; nearest: tpot_p50_ms, ")
    assert said.stderr == ""
    assert machines.measured == []


def test_a_plan_expects_nights_as_long_as_earlier_ones_of_the_suite_were(tmp_path: Path, machines: Machines) -> None:
    machines.stop_after_runs = 0
    bisect(tmp_path)
    data = tmp_path / "data"
    (night,) = store.nights(data)
    rented = datetime(2026, 3, 1, tzinfo=UTC)
    price = {"lease_id": "one", "cloud": "local", "machine_id": "this", "usd_per_hour": 0.0}
    times = {"rented_at": rented, "released_at": rented + timedelta(minutes=2)}
    store.write_json(store.lease_file(data, night, "one"), LeaseReport.model_validate(price | times))

    said = bisect(tmp_path, "--plan")

    assert "24 at most; 2 min a night as earlier nights of the suite took, 0.2 to 0.8 h" in said.stderr


def test_the_version_is_found_by_nights_and_a_search_that_was_stopped_goes_on(
    tmp_path: Path, machines: Machines
) -> None:
    machines.stop_after_runs = 1
    stopped = bisect(tmp_path)
    (cut,) = store.nights(tmp_path / "data")
    machines.stop_after_runs = None

    said = bisect(tmp_path, "--json")

    assert (stopped.exit_code, "run the same command again" in stopped.stderr) == (130, True)
    assert f"night {cut} is resumed" in said.stderr
    assert "5 candidates from 0.28.0 to 0.31.0: 6 nights at least" in said.stderr
    assert re.search(r"; \d+ min a night by the suite's plan, [\d.]+ to [\d.]+ h and 0\.00 to 0\.00 USD", said.stderr)
    found = json.loads(said.stdout[said.stdout.index("{\n") :])
    assert (found["is_found"], found["last_good"], found["first_bad"]) == (True, "0.28.0", "0.29.0")
    nights = store.nights(tmp_path / "data")
    assert len(nights) <= 6  # both ends twice, one that has no night, and the one that is bad
    assert {one["night"] for one in found["measured"]} == set(nights)
    (passed_over,) = [one for one in found["measured"] if one["candidate"] == NOT_BUILT]
    assert passed_over["reason"].endswith("has no accepted tpot_p50_ms: no such version")
    again = bisect(tmp_path)
    assert (again.exit_code, said.exit_code) == (0, 0)
    assert store.nights(tmp_path / "data") == nights


def test_a_change_of_one_scenario_is_found_in_its_numbers_alone(tmp_path: Path, machines: Machines) -> None:
    chat = SUITE[SUITE.index("[[scenarios]]") :]
    others = "".join(chat.replace('"chat"', f'"chat-{osl}"').replace("osl = 8", f"osl = {osl}") for osl in (9, 10, 11))
    machines.slower = "chat-10"
    suite = SUITE + others

    refused = bisect(tmp_path, "--scenario", "caht", suite=suite)
    said = bisect(tmp_path, "--scenario", "chat-10", "--json", suite=suite)

    assert re.search(r"has no scenario 'caht'; it has chat, chat-9, chat-10, chat-11", str(refused.exception))
    found = json.loads(said.stdout[said.stdout.index("{\n") :])
    assert (found["is_found"], found["last_good"], found["first_bad"]) == (True, "0.28.0", "0.29.0")
    named = {series for one in found["measured"] for series in one["by_series"]}
    assert len(named) == 1
    assert "/chat-10/" in named.pop()


def test_a_version_that_could_not_run_is_refused_before_the_first_night(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NIGHTBENCH_VLLM_EXECUTABLE")

    refused = bisect(tmp_path)

    assert isinstance(refused.exception, UsageError)
    why = f"no environment can be built for vLLM {NOT_BUILT}: this checkout has locks for "
    assert why in str(refused.exception)
    assert "0.32.0" in str(refused.exception)
    assert machines.measured == []
