"""A trace of an engine, with the truth server as the engine, and what is kept of a folder that may hold anything."""

import gzip
import json
from pathlib import Path

import pytest

from bench.engines.profile_record import ProfileRecord
from bench.record import PlannedRun
from bench.suite.quality import Profile
from infra.engines.launch import ServerRequest
from infra.measurement.kept_traces import TraceLimits, keep_traces
from infra.measurement.profile_run import profile
from infra.measurement.run import RunContext
from infra.processes import detached
from infra.storage import store
from tests.infra.engines.test_server import quiet, what
from tests.infra.measurement.test_lm_eval import NIGHT, bench_of

__all__ = ["what"]


def context_of(what: ServerRequest) -> RunContext:
    context = bench_of(what, None)
    suite = context.night.suite.model_copy(update={"profile": Profile(requests=3), "ready_timeout_s": 300.0})
    night = context.night.model_copy(update={"suite": suite})
    return RunContext(**{**context.__dict__, "night": night})


def traced(what: ServerRequest, context: RunContext, version: str = "0.32.0") -> ProfileRecord:
    engine = what.scenario.engine.model_copy(update={"version": version})
    run = PlannedRun(order=0, repeat=0, scenario=what.scenario.model_copy(update={"engine": engine}))
    record = profile(context, run, what.engine, 0, quiet)
    assert store.is_whole(store.profile_folder(context.data, NIGHT, run.scenario.scenario_id))
    assert detached.marked(what.lease_id) == []
    assert not list(what.machine.glob("trace-*"))
    return record


def test_a_trace_has_only_the_requests_that_were_sent_for_it(what: ServerRequest) -> None:
    context = context_of(what)

    record = traced(what, context)

    (name,) = record.traces
    folder = store.profile_folder(context.data, NIGHT, what.scenario.scenario_id)
    events = json.loads(gzip.decompress((folder / name).read_bytes()))["traceEvents"]
    assert [event["name"] for event in events] == ["aten::mm"] * 3
    assert (record.reason, record.scenario, record.requests) == (None, what.scenario, 3)
    assert {path.name for path in folder.iterdir()} == {
        *(name, "rank0.profiler_out.txt", "record.json", "server.log.gz", "MANIFEST.sha256"),
    }


def test_what_cannot_be_traced_is_a_sentence(what: ServerRequest) -> None:
    context = context_of(what)
    assert context.model is not None
    elsewhere = RunContext(**{**context.__dict__, "model": None})

    assert traced(what, context, "0.4.0").reason == ("no profiler of vllm 0.4.0 is known (catalog/profilers.csv)")
    assert "not ours" in str(traced(what, elsewhere, "0.32.1").reason)


def test_an_engine_that_has_no_such_call_leaves_its_log_and_a_sentence(what: ServerRequest) -> None:
    context = context_of(what)

    record = traced(what, context, "0.12.0")  # whose variables the truth server, like a later vLLM, ignores

    assert record.reason == (
        'the trace failed: POST /start_profile failed with HTTP status 404: {"detail":"Not Found"}'
    )
    folder = next((context.data / "runs" / NIGHT).glob("profile-*/0"))
    assert "Application startup complete" in gzip.decompress((folder / "server.log.gz").read_bytes()).decode()


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "from", tmp_path / "to"
    source.mkdir()
    target.mkdir()
    return source, target


def test_of_a_folder_that_may_hold_anything_only_bounded_regular_files_are_kept(folders: tuple[Path, Path]) -> None:
    source, target = folders
    (source / "a.json.gz").write_bytes(b"12")
    (source / "b.json.gz").write_bytes(b"1234")
    (source / "c.json.gz").write_bytes(b"1")
    (source / "passwords.json.gz").symlink_to("/etc/passwd")
    (source / "record.json").write_text("{}")
    (source / "d.json.gz").mkdir()
    (source / "e\n.json.gz").write_text("")

    traces, why = keep_traces(source, target, TraceLimits(bytes=3))

    assert traces == ("a.json.gz", "c.json.gz")
    assert sorted(path.name for path in target.iterdir()) == ["a.json.gz", "c.json.gz"]
    assert why == (
        "1 of the profiler's files are left out: at most 64 files and 0 MiB are kept; lower profile.requests"
    )
    assert keep_traces(source, target, TraceLimits(files=0))[0] == ()


def test_a_folder_without_a_trace_is_a_sentence(folders: tuple[Path, Path]) -> None:
    assert keep_traces(*folders) == ((), "the engine wrote no trace")
