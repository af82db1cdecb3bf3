"""What each of two servers is started with: pure functions of the scenario and the GPUs that are visible."""

import json

import pytest

from bench.engines.checks import CHECKS
from bench.engines.config import EngineConfig
from bench.engines.disaggregated import parts_of, rank_count
from bench.suite.engine import Disaggregated, Engine
from tests.bench.builders import CLOSED, with_workload

SPLIT = Disaggregated(
    connector="OffloadingConnector",
    connector_config={"spec_name": "a"},
    prefill_flags=("--max-num-seqs", "4"),
    decode_flags=("--tensor-parallel-size", "2"),
)
ENGINE = Engine(version="0.32.0", max_model_len=4096, flags=("--max-num-seqs", "64"), disaggregated=SPLIT)
SCENARIO = with_workload(CLOSED).model_copy(update={"engine": ENGINE})


def test_each_server_is_the_engine_with_flags_and_gpus_of_its_own() -> None:
    prefill, decode = (part.engine for part in parts_of(SCENARIO, ["4", "5", "6"]))

    transfer = {"kv_connector": "OffloadingConnector", "kv_connector_extra_config": {"spec_name": "a"}}
    assert prefill.flags[:3] == ("--max-num-seqs", "4", "--kv-transfer-config")
    assert decode.flags[:5] == ("--max-num-seqs", "64", "--tensor-parallel-size", "2", "--kv-transfer-config")
    assert json.loads(prefill.flags[-1]) == transfer | {"kv_role": "kv_producer"}
    assert json.loads(decode.flags[-1]) == transfer | {"kv_role": "kv_consumer"}
    seen = [one.environment["CUDA_VISIBLE_DEVICES"] for one in (prefill, decode)]
    assert seen == ["4", "5,6"]
    assert (prefill.disaggregated, decode.disaggregated) == (None, None)


def test_a_host_without_gpus_hides_none() -> None:
    assert all("CUDA_VISIBLE_DEVICES" not in part.engine.environment for part in parts_of(SCENARIO, []))


def test_an_engine_that_is_one_server_has_no_parts() -> None:
    one = SCENARIO.model_copy(update={"engine": ENGINE.model_copy(update={"disaggregated": None})})

    with pytest.raises(ValueError, match="is not disaggregated"):
        parts_of(one, [])


@pytest.mark.parametrize(("gpus", "broken"), [(3, None), (2, "3 ranks on 2 GPUs")])
def test_a_plan_counts_the_ranks_of_both_servers(gpus: int, broken: str | None) -> None:
    assert rank_count(ENGINE) == 3

    config = EngineConfig("vllm", "0.32.0", gpu_count=gpus, rank_count=rank_count(ENGINE))

    assert CHECKS["gpus_for_ranks"](config) == broken
