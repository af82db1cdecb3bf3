"""A night whose loads fit the speed of its server, and that adds repeats: on one server, in its scenario's time."""

from uuid import uuid4

import pytest

from bench.record import RunRecord
from flows.nightly import benchmark_machine
from infra.loadgen.suite_file import make_night
from infra.storage import store
from tests.flows.conftest import NightFixture

pytestmark = pytest.mark.usefixtures("calibrated", "nights_without_prefect")

CAP, LOAD_S, REQUEST_S = 40, 0.5, 0.06  # a request of the server takes 20 ms and four gaps of 10 ms
SUITE = f"""
name = "sized"
repeats = 2
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
environment = {{ TRUTH_TTFT_MS = "20", TRUTH_ITL_MS = "10" }}

[quality]
min_duration_s = 0.1
min_requests_per_slot = 2
max_other_cpu_share = 1.0
half_width_max = 0.99
scenario_s = 60

[[scenarios]]
name = "closed"
isl = 16
osl = 5
concurrency = 1
request_count = {CAP}
load_s = {LOAD_S}

[[scenarios]]
name = "open"
isl = 16
osl = 5
arrivals = "constant"
request_rate_per_s = 20.0
request_count = {CAP}
load_s = {LOAD_S}
"""


def test_a_night_sizes_its_loads_and_repeats_them_until_three_agree(house: NightFixture) -> None:
    house.suite.write_text(SUITE)
    night = make_night(house.suite, "local", poc=False)
    store.write_json(store.night_file(house.data, night.night), night)

    benchmark_machine(night, uuid4())

    folders = store.night_folder(house.data, night.night).glob("*/*/record.json")
    records = [RunRecord.model_validate_json(path.read_bytes()) for path in folders]
    counts: dict[str, list[int | None]] = {}
    for record in records:
        assert record.load is not None, record.reason
        counts.setdefault(record.asked.name, []).append(record.load.request_count)
    # How many agree depends on the host; three do at least, and the first after the start is none of them.
    assert len(records) >= 7
    assert len({record.server.pid for record in records if record.server}) == 1
    assert len({record.order for record in records}) == len(records)
    assert set(counts["open"]) == {round(20.0 * LOAD_S)}
    (closed,) = set(counts["closed"])
    assert closed is not None
    assert 2 <= closed <= LOAD_S / REQUEST_S + 1  # a busy host sends fewer
    assert house.leftovers() == []
