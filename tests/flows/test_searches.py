"""A night with a sweep and a goodput search, against a known-truth server with a knee: killed, and resumed."""

import signal
import subprocess
import sys
from uuid import uuid4

import pytest

from bench.record import RunRecord
from flows.nightly import benchmark_machine
from infra.loadgen.suite_file import make_night
from infra.storage import store
from tests.flows.conftest import NightFixture
from tests.flows.deployed import ROOT

pytestmark = pytest.mark.usefixtures("calibrated", "nights_without_prefect")

KNEE, SERVICE_S = 4, 0.1  # of the server: beyond four requests in flight, each takes longer in proportion
SUITE = """
name = "searches"
repeats = 1
ready_timeout_s = 60
request_timeout_s = 20
run_timeout_s = 60

[model]
name = "tiny"
source = "generated:tiny?seed=0"

[engine]
version = "0.32.0"
max_model_len = 4096
flags = ["--no-enable-prefix-caching", "--enable-per-request-metrics"]
environment = { TRUTH_TTFT_MS = "40", TRUTH_ITL_MS = "20", TRUTH_KNEE = "4" }

[quality]
min_duration_s = 0.2
max_other_cpu_share = 1.0

[[sweeps]]
name = "users"
isl = 16
osl = 4
concurrency_max = 16
probes_max = 5

[[searches]]
name = "chat"
isl = 16
osl = 4
arrivals = "constant"
request_count = 60
request_rate_per_s_min = 10.0
request_rate_per_s_max = 160.0
probes_max = 6
slo = { e2el_ms_max = 160.0, share_min = 0.9 }
"""


KILLED_AFTER = 3  # probes
# The night as a process of its own, which kills itself before the folder of a further probe gets its final name.
DYING = f"""
import os, signal, sys
from pathlib import Path
from uuid import uuid4

import pytest

from flows.nightly import benchmark_machine
from infra.settings import Settings
from infra.storage import store
from tests.flows.conftest import trust_the_client
from tests.flows.without_prefect import without_prefect

finished = 0


def die(event, seen):
    global finished
    if event == "os.rename" and Path(str(seen[0])).name.startswith(store.PARTIAL):
        finished += 1
        if finished > {KILLED_AFTER}:
            os.kill(os.getpid(), signal.SIGKILL)


with pytest.MonkeyPatch.context() as patch, without_prefect():
    patch.setattr("infra.leases.watched_ledger.start_watchdog", lambda *_lease: None)
    trust_the_client(patch)
    sys.addaudithook(die)
    benchmark_machine(store.read_night(Settings().data, sys.argv[1]), uuid4())
"""


def test_a_night_killed_in_its_searches_goes_on_with_the_next_probe_and_runs_each_once(house: NightFixture) -> None:
    house.suite.write_text(SUITE)
    night = make_night(house.suite, "local", poc=False)
    store.write_json(store.night_file(house.data, night.night), night)
    folder = store.night_folder(house.data, night.night)

    argv = [sys.executable, "-c", DYING, night.night]
    killed = subprocess.run(argv, cwd=ROOT, env=house.environment, capture_output=True, text=True, check=False)

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    before = {path: path.read_bytes() for path in folder.glob("*/0/record.json")}
    assert len(before) == KILLED_AFTER

    benchmark_machine(night, uuid4())

    users, chat = store.search_results(house.data, night)
    assert users.is_over
    assert chat.is_over
    records = {path: RunRecord.model_validate_json(path.read_bytes()) for path in folder.glob("*/0/record.json")}
    assert {record.outcome for record in records.values()} == {"measured"}
    assert len(records) == len(users.probes) + len(chat.probes)
    assert {path: path.read_bytes() for path in before} == before, "what was measured is not measured again"
    pids = {record.server.pid for path, record in records.items() if record.server and path not in before}
    assert len(pids) == 1, "no restart between probes"
    # How near depends on the host: tests/bench/search/ holds the search to 5 %.
    assert users.value is None or KNEE / 2 < users.value < KNEE * 2
    assert chat.low is None or chat.low <= 1.3 * KNEE / SERVICE_S
    aside = list(folder.rglob(f"{store.ABANDONED}*"))
    assert (house.orphans(), house.leftovers()) == ([], list(map(str, aside)))
    assert len(aside) == 1, "the probe that was cut off"
