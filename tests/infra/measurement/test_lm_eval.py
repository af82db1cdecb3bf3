"""Asking tasks, with the truth server as the server and a small program in the harness's place."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import LmEvalError
from bench.manifest import MANIFEST
from bench.record import Calibration, LeaseFacts, Lineage, NightRecord
from bench.suite.quality import LmEval, Quality
from bench.suite.suite import ScenarioEntry, Suite
from infra.engines import server
from infra.engines.launch import ServerRequest
from infra.engines.server import RunningServer
from infra.hardware.host_facts import read_host
from infra.measurement.lm_eval import run_tasks
from infra.measurement.run import RunContext
from infra.models.models import PreparedModel
from infra.processes import detached
from infra.settings import Settings
from infra.storage import store
from tests.bench.quality.test_lm_eval import NO_DATA, RESULTS
from tests.infra.benches import pid_of
from tests.infra.engines.test_server import quiet, what
from tests.infra.models.tiny import copy_tiny_model
from tests.warehouse.folders import STARTED

__all__ = ["what"]
NIGHT = "2026-03-01"
# Does what the name of its task says; it leaves its environment, its folder and its arguments behind.
HARNESS = """#!{python}
import glob, json, os, signal, subprocess, sys, time
said = dict(zip(sys.argv[1:], sys.argv[2:]))
task, out = said["--tasks"], said["--output_path"]
print("asked", json.loads(said["--model_args"])["base_url"], os.getcwd(), os.environ["HF_DATASETS_OFFLINE"], flush=True)
if task == "good":
    os.makedirs(os.path.dirname(out))
    open(out.replace(".json", "_2026-11-22T06-52-14.905420.json"), "wb").write(open({results!r}, "rb").read())
elif task == "empty":
    os.makedirs(os.path.dirname(out))
    open(out.replace(".json", "_2026.json"), "w").write("{{}}")
elif task == "nodata":
    sys.exit({no_data!r})
elif task == "broken":
    sys.exit("ValueError: Tasks not found: broken")
elif task == "killer":
    (pid_file,) = glob.glob({machine!r} + "/server-*.pid")
    os.kill(int(open(pid_file).read().split()[0]), signal.SIGKILL)
    time.sleep(600)
elif task == "endless":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=False)
    time.sleep(600)
"""


@pytest.fixture
def running(what: ServerRequest) -> Iterator[RunningServer]:
    found = server.bring_up(what, quiet)
    yield found
    server.stop(found)


@pytest.fixture(autouse=True)
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    command = tmp_path / "lm-eval"
    said = {"python": sys.executable, "results": str(RESULTS), "no_data": NO_DATA, "machine": str(tmp_path / "machine")}
    command.write_text(HARNESS.format(**said))
    command.chmod(0o755)
    monkeypatch.setenv("NIGHTBENCH_LM_EVAL", str(command))
    return command


def bench_of(what: ServerRequest, asked: LmEval | None) -> RunContext:
    """A bench for this server, whose suite asks for these tasks."""
    entry = ScenarioEntry(name="one", **what.scenario.workload.model_dump())
    suite = Suite(
        name="asking",
        model=what.scenario.model,
        engine=what.scenario.engine,
        quality=Quality(lm_eval=asked),
        scenarios=(entry,),
    )
    night = NightRecord(
        night=NIGHT, target="local", started_at=STARTED, suite=suite, suite_sha256="0" * 64, seed=0, runs=()
    )
    return RunContext(
        data=what.machine.parent / "data",
        night=night,
        machine=what.machine,
        host=read_host(),
        model=PreparedModel("m", what.model, revision="r", sha256="0" * 64, bytes=1, weights_bytes=1, vocab_size=512),
        calibration=Calibration(reason="none"),
        lease=LeaseFacts(lease_id=what.lease_id, cloud="test", machine_id="m", usd_per_hour=0.0),
        lineage=Lineage(nightbench_version="0", git_commit=None, suite_sha256="0" * 64),
    )


def folder_of(what: ServerRequest) -> Path:
    return store.lm_eval_folder(what.machine.parent / "data", NIGHT, what.scenario.server_id)


def nothing_is_left(what: ServerRequest, running: RunningServer) -> bool:
    """Whether every process of the lease belongs to the server."""
    mine = {process.pid for process in detached.members(pid_of(running))}
    return {process.pid for process in detached.marked(what.lease_id)} <= mine


def test_a_task_that_was_asked_leaves_its_results_and_its_log(what: ServerRequest, running: RunningServer) -> None:
    context = bench_of(what, LmEval(tasks=("good",)))

    record = run_tasks(context, what.scenario, running, Settings(), quiet)

    assert [(task.task, task.outcome, task.reason) for task in record.tasks] == [("good", "measured", None)]
    assert store.is_whole(folder_of(what))
    assert (folder_of(what) / "good.json").read_bytes() == RESULTS.read_bytes()
    assert f"asked {running.base_url}/v1/completions" in (folder_of(what) / "good.log").read_text()
    assert {path.name for path in folder_of(what).iterdir()} == {
        *("record.json", "good.json", "good.log", MANIFEST),
    }
    assert not list(what.machine.glob("lm-eval*"))


def test_data_that_is_not_there_is_a_reason_and_no_failure_and_takes_no_other_task_with_it(
    what: ServerRequest, running: RunningServer
) -> None:
    context = bench_of(what, LmEval(tasks=("nodata", "broken", "empty", "good")))

    nodata, broken, empty, good = run_tasks(context, what.scenario, running, Settings(), quiet).tasks

    assert nodata.outcome == "not-run"
    assert str(nodata.reason).startswith("the data of nodata is not on this host")
    assert "quality.lm_eval.folder" in str(nodata.reason)
    assert (broken.outcome, empty.outcome, good.outcome) == ("failed", "failed", "measured")
    assert "Tasks not found: broken" in str(broken.reason)
    assert "not a results file of lm-eval" in str(empty.reason)


@pytest.mark.matrix  # the real harness, which a night on the real engine runs in every `make test`, for a second task
def test_the_real_harness_without_the_data_of_a_task_is_a_reason(
    what: ServerRequest, running: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_tiny_model(what.model)  # the harness reads its tokenizer
    monkeypatch.delenv("NIGHTBENCH_LM_EVAL")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))  # the host has nobody's data sets
    context = bench_of(what, LmEval(tasks=("gsm8k",), limit=5))

    (gsm8k,) = run_tasks(context, what.scenario, running, Settings(), quiet).tasks

    assert gsm8k.outcome == "not-run"
    assert "the data of gsm8k is not on this host" in str(gsm8k.reason)
    assert (folder_of(what) / "gsm8k.log").is_file()


def test_tasks_are_read_from_the_folder_that_the_suite_names(
    what: ServerRequest, running: RunningServer, tmp_path: Path
) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "good.yaml").write_text("task: good\n")

    record = run_tasks(
        bench_of(what, LmEval(tasks=("good",), folder=f"{tmp_path}/tasks")), what.scenario, running, Settings(), quiet
    )

    assert f"{tmp_path}/tasks 1" in (folder_of(what) / "good.log").read_text()
    assert record.folder_sha256 is not None


def test_a_folder_that_is_not_there_is_named(what: ServerRequest, running: RunningServer, tmp_path: Path) -> None:
    context = bench_of(what, LmEval(tasks=("good",), folder=f"{tmp_path}/nowhere"))

    (task,) = run_tasks(context, what.scenario, running, Settings(), quiet).tasks

    assert task.outcome == "failed"
    assert f"the folder {tmp_path}/nowhere does not exist" in str(task.reason)


def test_a_task_that_takes_too_long_is_killed_with_its_children_and_the_next_is_not_begun(
    what: ServerRequest, running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.measurement.lm_eval.END_PATIENCE_S", 0.1)
    context = bench_of(what, LmEval(tasks=("endless", "good"), timeout_s=3.0))

    endless, good = run_tasks(context, what.scenario, running, Settings(), quiet).tasks

    assert (endless.outcome, good.outcome) == ("failed", "not-run")
    assert endless.reason == "not finished after 3 s (suite: quality.lm_eval.timeout_s)"
    assert good.reason == "the earlier tasks took all of quality.lm_eval.timeout_s (3 s)"
    assert nothing_is_left(what, running)
    assert server.is_serving(running)


def test_a_server_that_ends_under_a_task_is_said_and_asked_no_more(what: ServerRequest, running: RunningServer) -> None:
    context = bench_of(what, LmEval(tasks=("killer", "good")))

    killer, good = run_tasks(context, what.scenario, running, Settings(), quiet).tasks

    assert killer.outcome == "failed"
    assert "the server exited during the task" in str(killer.reason)
    assert (good.outcome, good.reason) == ("not-run", "the server no longer answers")
    assert nothing_is_left(what, running)


def test_a_server_that_is_gone_is_not_asked(what: ServerRequest, running: RunningServer) -> None:
    os.killpg(pid_of(running), signal.SIGKILL)
    detached.end_session(pid_of(running), patience_s=5)

    (task,) = run_tasks(bench_of(what, LmEval(tasks=("good",))), what.scenario, running, Settings(), quiet).tasks

    assert (task.outcome, task.duration_s) == ("not-run", None)


def test_a_harness_that_cannot_be_installed_is_a_reason(
    what: ServerRequest, running: RunningServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NIGHTBENCH_LM_EVAL")
    monkeypatch.setenv("NIGHTBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("infra.measurement.lm_eval_venv.FREE_BYTES_NEEDED", 1 << 60)

    (task,) = run_tasks(bench_of(what, LmEval(tasks=("good",))), what.scenario, running, Settings(), quiet).tasks

    assert task.outcome == "not-run"
    assert "lm-eval needs" in str(task.reason)
    assert store.is_whole(folder_of(what))


def test_a_suite_without_tasks_has_nothing_to_ask(what: ServerRequest, running: RunningServer) -> None:
    with pytest.raises(LmEvalError, match="has no lm-eval tasks"):
        run_tasks(bench_of(what, None), what.scenario, running, Settings(), quiet)
