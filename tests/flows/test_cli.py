"""The command line as its users meet it: as a process, with the wrong arguments, and interrupted at a bad moment."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from flows.temporary_server import DATABASE
from infra.ledger.ledger import Ledger
from infra.processes.detached import marked
from infra.processes.machine_lock import MachineLock
from infra.reporting import silent
from infra.storage import store
from tests.emulators.s3 import Bucket
from tests.flows.conftest import NightFixture
from tests.flows.serving import PATIENCE_S
from tests.pairs import matrix
from tests.watchdogs import end_watchdogs

pytestmark = pytest.mark.prefect
COMMANDS = (
    "run",
    "plan",
    "upload",
    "fetch",
    "reap",
    "leases",
    "sql",
    "shell",
    "rebuild",
    "report",
    "audit",
    "doctor",
    "calibrate",
    "crosscheck",
)
SLOW_MS = 1500


def wait_until_measuring(house: NightFixture, process: "subprocess.Popen[str]") -> str:
    """Wait until a load is under way; return the lease of the night."""
    until = time.monotonic() + PATIENCE_S
    while not list(house.data.glob("runs/*/*/.partial-*/load/progress.json")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.1)
    return Ledger(house.data / "ledger.sqlite").open_leases()[0].lease_id


@contextmanager
def measuring(house: NightFixture) -> Iterator[None]:
    """Another night of this computer measures, from a data folder of its own."""
    lock = MachineLock(Path(house.environment["NIGHTBENCH_MACHINE_LOCK"]), house.data.parent / "other")
    with lock.hold(silent, wait=False):
        lock.name("2026-03-01T010000Z")
        yield


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(house: NightFixture, command: str) -> None:
    done = house.call(command, "--help")

    assert done.returncode == 0
    assert "Usage:" in done.stdout


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["run", "no-such-suite.toml"], "no-such-suite.toml cannot be read"),
        (["run", "--target", "moon"], "--target 'moon' is unknown"),
        (["plan", "suites/local.toml", "--target", "moon"], "--target 'moon' is unknown"),
        (["plan", "suites/local.toml", "--target", "ssh:ann"], "'ssh:ann' must have the form ssh:user@host"),
        (["run", "--resume", "no-such-night", "--force"], "no-such-night was checked when it was planned"),
        (["run", "--resume", "no-such-night"], "night 'no-such-night' is not in"),
        (["sql", "SELECT 1", "--json", "--csv"], "exclude each other"),
        (["sql", "SELECT 1"], "no data folder"),
        (["report"], "no night"),
        (["audit", "no-such-folder"], "no-such-folder"),
        (["calibrate", "--streams", "1,many"], "is not a list of whole numbers"),
        (["fly"], "No such command 'fly'"),
    ],
)
def test_a_wrong_call_is_one_sentence_and_exit_code_2(house: NightFixture, argv: list[str], said: str) -> None:
    done = house.call(*argv)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_suite_with_an_unknown_key_names_file_and_line_and_starts_nothing(house: NightFixture) -> None:
    text = house.suite.read_text().replace("ready_timeout_s", "ready_timeout_ms")
    house.suite.write_text(text)

    done = house.call("run", str(house.suite))

    assert done.returncode == 2
    assert re.search(r"suite\.toml:5: unknown key 'ready_timeout_ms'; did you mean 'ready_timeout_s'", done.stderr)
    assert not house.data.exists()


@pytest.mark.parametrize(
    ("setting", "named"),
    [("NIGHTBENCH_DATA", "--data"), ("NIGHTBENCH_CACHE", "NIGHTBENCH_CACHE"), ("PREFECT_HOME", "PREFECT_HOME")],
)
def test_a_folder_that_cannot_be_written_is_named_with_its_setting_before_prefect_starts(
    house: NightFixture, tmp_path: Path, setting: str, named: str
) -> None:
    (tmp_path / "file").touch()
    house.environment[setting] = str(tmp_path / "file" / "folder")

    done = house.call("run", str(house.suite))

    assert done.returncode == 2
    assert re.search(f"folder cannot be written: .*; set {named} to a folder", done.stderr)


def test_a_trace_that_is_not_there_names_the_suites_line_and_starts_nothing(house: NightFixture) -> None:
    text = house.suite.read_text().replace("concurrency = 2", 'arrivals = "trace"\ntrace = "tuesday.csv"')
    house.suite.write_text(text)

    done = house.call("run", str(house.suite))

    assert done.returncode == 2
    assert re.search(r"suite\.toml:\d+: the file .*tuesday\.csv cannot be read", done.stderr)
    assert not house.data.exists()


def test_a_plan_touches_nothing(house: NightFixture) -> None:
    done = house.call("plan", str(house.suite), "--json")

    assert [run["scenario"] for run in json.loads(done.stdout)["runs"]].count("one") == 1
    assert not house.data.exists()


LLAMA = Path(__file__).parents[2] / "suites" / "llama-3.3-70b-mi300x.toml"


def test_a_plan_of_a_rented_night_tells_minutes_and_dollars_of_every_stage(house: NightFixture) -> None:
    done = house.call("plan", str(LLAMA), "--target", "digitalocean", "--json")

    told = json.loads(done.stdout)
    stages = told["estimates"]["cold"]["stages"]
    assert told["usd_per_hour"] == 2.59
    assert [stage["stage"] for stage in stages].count("measure") == 9
    assert sum(stage["usd"] for stage in stages) == pytest.approx(told["estimates"]["cold"]["usd"], abs=0.01)
    assert len(told["to_be_set"]) == 2
    assert not house.data.exists()


def test_the_table_of_a_plan_says_that_its_price_is_of_another_day(house: NightFixture) -> None:
    done = house.call("plan", str(LLAMA), "--target", "digitalocean", "--poc")

    assert done.returncode == 0
    assert "from the catalogue, 2026-10-01" in done.stdout
    assert "the price may be out of date" in done.stderr


def test_a_plan_for_a_host_of_ones_own_asks_it_nothing_and_says_what_it_must_have(
    house: NightFixture, tmp_path: Path
) -> None:
    house.environment["NIGHTBENCH_SSH_KEY"] = str(tmp_path / "no-key")

    done = house.call("plan", str(LLAMA), "--target", "ssh:ann@gpu.invalid")
    told = json.loads(house.call("plan", str(LLAMA), "--target", "ssh:ann@gpu.invalid", "--json").stdout)

    assert done.returncode == 0
    assert "requirements on ssh:ann@gpu.invalid:22; not checked now" in done.stdout
    assert "price: 0.00 USD, your own host; reserved for at most 360 minutes" in done.stdout
    assert "the night would be refused: no SSH key found at" in done.stderr
    assert (told["usd_per_hour"], len(told["needs"]), told["doubts"][-1][:26]) == (0.0, 5, "the night would be refused")
    assert not house.data.exists()


def test_a_night_with_a_reference_that_may_move_is_refused_before_anything_begins(house: NightFixture) -> None:
    done = house.call("run", str(LLAMA), "--target", "digitalocean")

    assert done.returncode == 2
    assert f"no lock pins it: run `nightbench pin {LLAMA}`" in done.stderr
    assert not house.data.exists()


@pytest.mark.usefixtures("prefect_api", "calibrated", "nights_without_prefect")
def test_a_failed_night_exits_1_and_says_why(house: NightFixture) -> None:
    house.write_suite(fault="oom_at_start")

    done = house.call("run", str(house.suite))

    assert done.returncode == 1
    assert "larger than the available KV cache memory" in done.stdout
    assert house.leftovers() == []


@pytest.mark.usefixtures("prefect_api", "calibrated", "nights_without_prefect")
def test_what_no_bucket_took_is_kept_uploaded_later_and_taken_up_elsewhere(house: NightFixture, tmp_path: Path) -> None:
    house.environment.update(
        AWS_ACCESS_KEY_ID="tester",
        AWS_SECRET_ACCESS_KEY="secret",  # noqa: S106 - of nobody
        NIGHTBENCH_S3_BUCKET="nights",
        NIGHTBENCH_S3_ENDPOINT="http://127.0.0.1:9",
        NIGHTBENCH_S3_GRACE_S="1",
        NIGHTBENCH_S3_PATIENCE_S="1",
    )
    ran = house.call("run", str(house.suite), "--poc")
    with Bucket() as bucket:
        house.environment.update(NIGHTBENCH_S3_ENDPOINT=bucket.endpoint, NIGHTBENCH_S3_PATIENCE_S="60")
        uploaded = house.call("upload")
        there = tmp_path / "elsewhere"
        elsewhere = NightFixture(there, house.suite, house.environment | {"NIGHTBENCH_DATA": str(there)})
        (night,) = store.nights(house.data)
        resumed = elsewhere.call("run", "--resume", night)

    assert (ran.returncode, uploaded.returncode, resumed.returncode) == (3, 0, 0)
    assert f"1 runs are not uploaded: run `nightbench upload {night}`" in ran.stderr
    assert "fetched 1 runs" in resumed.stderr
    assert Ledger(elsewhere.data / "ledger.sqlite").leases() == []


def test_a_night_beside_another_one_is_refused_before_anything_begins(house: NightFixture) -> None:
    with measuring(house):
        done = house.call("run", str(house.suite))

    assert done.returncode == 3
    assert f"night 2026-03-01T010000Z (process {os.getpid()}, since " in done.stderr
    assert f"data folder {house.data.parent / 'other'}) measures on this computer" in done.stderr
    assert "add --wait" in done.stderr
    assert not house.data.exists()


@pytest.mark.usefixtures("served")
def test_a_night_that_waits_for_another_one_goes_on_and_exits_3_on_a_full_disk(house: NightFixture) -> None:
    house.environment["NIGHTBENCH_MIN_FREE_GIB"] = "1e9"

    with measuring(house):
        process = house.start("run", str(house.suite), "--wait")
        assert process.stderr is not None
        waits = next((line for line in process.stderr if "waiting for this computer" in line), "")
    _out, err = process.communicate(timeout=PATIENCE_S)

    assert "night 2026-03-01T010000Z" in waits
    assert process.returncode == 3
    assert "GiB free, 1e+09 GiB needed" in err


def test_a_truncated_run_folder_is_named_and_loses_nothing_else(after_a_night: NightFixture) -> None:
    house = after_a_night
    before = json.loads(house.call("sql", "SELECT scenario_id, verdict, stage FROM measurements", "--json").stdout)
    broken = next(house.data.glob("runs/*/*/0/load/requests.jsonl"))
    broken.write_bytes(broken.read_bytes()[:100])
    other = next(row for row in before if row["scenario_id"] not in broken.parts)

    rebuilt = house.call("rebuild")
    audited = house.call("audit", str(house.data / "runs"), "--json")
    asked = house.call("sql", "SELECT scenario_id, verdict, stage FROM measurements", "--json")

    assert rebuilt.returncode == audited.returncode == 1
    assert "load/requests.jsonl does not match its SHA-256" in rebuilt.stderr
    assert {run["verdict"] for run in json.loads(audited.stdout)} == {other["verdict"], "failed"}
    lost = {"scenario_id": broken.parts[-4], "verdict": "failed", "stage": "load"}
    assert sorted(json.loads(asked.stdout), key=str) == sorted([other, lost], key=str)


@pytest.mark.parametrize(
    ("sign", "code", "brings_its_api"), matrix([(signal.SIGINT, 130, False), (signal.SIGTERM, 143, True)], kept=1)
)
def test_a_night_that_is_stopped_leaves_nothing_rented_and_nothing_running(
    house: NightFixture, server_url: str, sign: signal.Signals, code: int, *, brings_its_api: bool
) -> None:
    # A company's proxy, which does not reach this computer: Prefect's server and the engine are asked directly.
    house.environment["HTTP_PROXY"] = house.environment["HTTPS_PROXY"] = "http://127.0.0.1:9"
    if not brings_its_api:
        house.environment["PREFECT_API_URL"] = server_url
    house.write_suite(fault="slow_child", ttft_ms=SLOW_MS)
    process = house.start("run", str(house.suite))
    wait_until_measuring(house, process)
    imported = "/pandas/" in Path(f"/proc/{process.pid}/maps").read_text()  # by great-expectations alone

    os.kill(process.pid, sign)
    _out, err = process.communicate(timeout=PATIENCE_S)

    (night,) = store.nights(house.data)
    assert (process.returncode, f"`nightbench run --resume {night}`" in err) == (code, True)
    assert imported == brings_its_api  # while that starts, or when the last engine stops: never during a load
    assert not (brings_its_api and heartbeats_of_nights(Path(house.environment["PREFECT_HOME"])))
    assert house.orphans() == []
    assert [left for left in house.leftovers() if ".partial-" not in left] == []


def heartbeats_of_nights(prefect_home: Path) -> int:
    """How many heartbeats of nights the database of temporary servers has; each night would wait for its last one."""
    count = "SELECT count(*) FROM events WHERE event = 'prefect.flow-run.heartbeat' AND resource LIKE '%nightly %'"
    with closing(sqlite3.connect(prefect_home / DATABASE)) as database:
        return int(database.execute(count).fetchone()[0])


@pytest.mark.usefixtures("prefect_api", "calibrated", "nights_without_prefect")
def test_a_night_killed_with_9_and_its_watchdog_too_is_reaped_and_resumed(house: NightFixture) -> None:
    house.write_suite(ttft_ms=300)
    process = house.start("run", str(house.suite))
    lease_id = wait_until_measuring(house, process)
    end_watchdogs(house.data)
    process.kill()
    process.wait(timeout=PATIENCE_S)
    cost_file = next(house.data.glob(f"runs/*/leases/{lease_id}.json"))
    before = json.loads(cost_file.read_text())
    engine, api = marked(lease_id), set(house.orphans()) - set(marked(lease_id))

    reaped = house.call("reap")
    running_after, after = marked(lease_id) + house.orphans(), json.loads(cost_file.read_text())
    resumed = house.call("run", "--resume", store.nights(house.data)[0])

    assert engine
    assert api
    assert lease_id in reaped.stdout
    assert running_after == []
    assert (before["released_at"], before["usd"], after["usd"]) == (None, None, 0.0)
    assert resumed.returncode == 0, resumed.stderr
    assert len(list(house.data.glob("runs/*/*/0/MANIFEST.sha256"))) == 2
    assert [left for left in house.leftovers() if ".abandoned-" not in left] == []


@pytest.mark.matrix  # of a killed night and whoever tidies up after it: the reaper does so in every `make test`
def test_the_next_night_ends_what_a_killed_one_left_running(house: NightFixture, server_url: str) -> None:
    house.write_suite(ttft_ms=SLOW_MS)
    process = house.start("run", str(house.suite))
    lease_id = wait_until_measuring(house, process)
    end_watchdogs(house.data)
    process.kill()
    process.wait(timeout=PATIENCE_S)
    house.write_suite()
    house.environment["PREFECT_API_URL"] = server_url

    done = house.cli("run", str(house.suite))

    assert (done.returncode, "leaked" in done.stderr) == (0, False), done.stderr
    assert marked(lease_id) + house.orphans() == []


def test_answers_come_as_table_json_and_csv(past: NightFixture) -> None:
    query = "-- It may begin with a comment.\nSELECT scenario, completed FROM measurements ORDER BY scenario"

    wrong = past.call("sql", "SELEKT 1")
    table, as_json, as_csv = (past.call("sql", query, *form).stdout for form in ([], ["--json"], ["--csv"]))

    assert "one" in table
    assert json.loads(as_json) == [{"scenario": "one", "completed": 12}, {"scenario": "two", "completed": 24}]
    assert as_csv.splitlines() == ["scenario,completed", "one,12", "two,24"]
    assert (wrong.returncode, "syntax error" in wrong.stderr) == (2, True)


def test_the_doctor_knows_what_is_missing(house: NightFixture, tmp_path: Path) -> None:
    house.environment["NIGHTBENCH_VLLM_EXECUTABLE"] = str(tmp_path / "nowhere")

    done = house.call("doctor")

    assert done.returncode == 1
    assert "not executable: set NIGHTBENCH_VLLM_EXECUTABLE" in done.stdout


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_a_calibration_is_a_row_for_each_number_of_streams_and_kept(house: NightFixture, tmp_path: Path) -> None:
    house.environment["NIGHTBENCH_CACHE"] = str(tmp_path / "cache")

    done = house.cli("calibrate", "--streams", "1,8", "--ttft-ms", "20", "--itl-ms", "5", "--json")

    points = json.loads(done.stdout)
    told = {"ttft_mean_error_ms", "itl_p99_error_ms", "itl_p99_error_kernel_ms", "live_streams", "cpu_us_per_token"}
    assert all(told <= point.keys() and point["passed"] == (not point["reasons"]) for point in points)
    (kept,) = (house.data / "calibration").glob("*.json")
    assert [(point["streams"], point["ok"], point["kernel_stamp_share"]) for point in points] == [
        (1, 6, 1.0),
        (8, 24, 1.0),
    ]
    assert json.loads(kept.read_text())["points"] == points
    # How large an error is stands in benchmarks; that the client cannot see a token before it was written stands here.
    assert all(point["ttft_mean_error_ms"] > 0 for point in points)


def test_a_calibration_without_a_compiler_says_what_to_install(house: NightFixture, tmp_path: Path) -> None:
    house.environment.update({"NIGHTBENCH_CACHE": str(tmp_path / "cache"), "PATH": str(tmp_path)})

    done = house.call("calibrate", "--streams", "1")

    assert (done.returncode, "no C compiler" in done.stderr) == (3, True)
    assert not (house.data / "calibration").exists()
