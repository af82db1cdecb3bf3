"""A night with a sweep and a goodput search, against a known-truth server with a knee: one server, and `--resume`."""

import shutil
from collections.abc import Iterator
from uuid import uuid4

import pytest

from bench.record import RunRecord
from flows.nightly import benchmark_machine
from infra.loadgen.suite_file import make_night
from infra.storage import store
from tests.flows.conftest import NightFixture
from tests.flows.without_prefect import without_prefect

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


@pytest.fixture(autouse=True)
def _without_prefect(monkeypatch: pytest.MonkeyPatch, calibrated: None) -> Iterator[None]:
    del calibrated
    monkeypatch.setattr("infra.leases.watched_ledger.start_watchdog", lambda *_lease: None)
    with without_prefect():
        yield


def test_all_probes_of_a_night_run_on_one_server_and_a_resumed_search_goes_on(house: NightFixture) -> None:
    house.suite.write_text(SUITE)
    night = make_night(house.suite, "local", poc=False)
    store.write_json(store.night_file(house.data, night.night), night)

    benchmark_machine(night, uuid4())

    users, chat = store.search_results(house.data, night)
    assert users.is_over
    assert chat.is_over
    paths = list(store.night_folder(house.data, night.night).glob("*/0/record.json"))
    records = [RunRecord.model_validate_json(path.read_bytes()) for path in paths]
    assert {record.outcome for record in records} == {"measured"}
    assert len(records) == len(users.probes) + len(chat.probes)
    assert len({record.server.pid for record in records if record.server}) == 1, "no restart between probes"
    # How near depends on the host: tests/bench/search/ holds the search to 5 %.
    assert users.value is None or KNEE / 2 < users.value < KNEE * 2
    assert chat.low is None or chat.low <= 1.3 * KNEE / SERVICE_S

    for status in users.probes[-2:]:  # as a night leaves it that was killed before them
        shutil.rmtree(store.night_folder(house.data, night.night) / status.probe.scenario_id)
    benchmark_machine(night, uuid4())

    again = store.search_results(house.data, night)[0]
    assert again.is_over
    assert again.probes[: len(users.probes) - 2] == users.probes[:-2]
    assert house.leftovers() == []
