"""`nightbench tune` over whole nights, on a known-truth server whose speed its flags set."""

import json
import sys
from pathlib import Path

import pytest

from tests.flows.conftest import TRUTH_SERVER, NightFixture
from warehouse.lake.query import run_sql

pytestmark = [pytest.mark.matrix, pytest.mark.prefect, pytest.mark.timeout(1500)]

SUITE = """
name = "tuned"
repeats = 1

[model]
name = "tiny"
source = "generated:tiny?seed=0"

[engine]
version = "0.32.0"
max_model_len = 1024
flags = ["--no-enable-prefix-caching", "--max-num-seqs", "1"]

[quality]
min_duration_s = 0.2
min_requests_per_slot = 3
max_other_cpu_share = 1.0

[[scenarios]]
name = "chat"
isl = 16
osl = 16
concurrency = 4
request_count = 20
warmup_count = 4

[slo]
ttft_ms_max = 500
share_min = 0.9

[tune]
rounds = 3
request_count = 12
flags = { "--max-num-seqs" = [4, 8, 16] }
"""
# 1 takes 40 ms a token; 4 takes 8 ms; 8 takes 2 ms and lets the first token wait too long; 16 the engine refuses.
BY_FLAGS = f"""#!/bin/sh
case "$*" in
  *"--max-num-seqs 16"*) echo "vllm: error: argument --max-num-seqs: 16 is too many" >&2; exit 2;;
  *"--max-num-seqs 8"*) export TRUTH_ITL_MS=2 TRUTH_TTFT_MS=900;;
  *"--max-num-seqs 4"*) export TRUTH_ITL_MS=8 TRUTH_TTFT_MS=20;;
  *) export TRUTH_ITL_MS=40 TRUTH_TTFT_MS=20;;
esac
exec "{sys.executable}" -u "{TRUTH_SERVER}" "$@"
"""


def test_the_fastest_flags_that_keep_the_slo_win_and_each_other_candidate_has_its_reason(served: NightFixture) -> None:
    Path(served.environment["NIGHTBENCH_VLLM_EXECUTABLE"]).write_text(BY_FLAGS)
    served.suite.write_text(SUITE)

    found = served.cli("tune", str(served.suite), "--json", timeout_s=1400)

    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]
    answer = json.loads(found.stdout[found.stdout.index("{\n") :])
    assert answer["flags"] == ["--max-num-seqs", "4"]
    dropped = {row["candidate"]: row["dropped"] for row in answer["trials"] if row["round"] == "1"}
    assert dropped["own"] == dropped["c1"] == ""
    assert dropped["c2"].startswith("misses the SLO")
    assert "16 is too many" in dropped["c3"]
    rows = run_sql(served.data, "SELECT candidate, verdict, ratio_low > 1.5 FROM tuning WHERE ratio IS NOT NULL").rows
    assert [tuple(row) for row in rows] == [("c1", "gain", True)]
    assert served.leftovers() == []
