"""A run of ours on eight GPUs is audited by the engine's real arguments; the sums are done by hand here."""

from collections import defaultdict
from typing import Any

import pytest

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.evidence import Observed
from bench.audit.evidence.memory import memory_needs
from bench.audit.evidence.roofline import roofline_shares
from bench.audit.judge import row_evidence
from bench.audit.own_claim import claim_of
from bench.physics import Group, checkpoint_bytes, needed_gib
from bench.record import RunRecord
from bench.suite.model import Model
from bench.suite.workload import Workload
from catalog.read import read_catalog
from tests.bench.builders import SCENARIO, closed_loop, healthy, with_workload
from warehouse.rows.catalog_subject import subject_of

GIB = 1 << 30
LOAD = Workload(isl=1000, osl=1000, request_count=128, warmup_count=0, concurrency=64)
TP8 = ("vllm", "serve", "/models/m", "--tensor-parallel-size", "8", "--gpu-memory-utilization", "0.9")
FP8_KV = ("--kv-cache-dtype", "fp8")

# GiB and bytes a second of one GPU, by the makers' data sheets: MI300X 192 GiB less what the device keeps.
GPUS = {
    "AMD Instinct MI300X": (191.98, 5.325e12),
    "AMD Instinct MI325X": (255.98, 6.0e12),
    "NVIDIA H200": (140.4, 4.8e12),
}
# Bytes of the checkpoint, bytes that a step of one sequence reads of it, and bytes of FP8 KV a token. Parameters,
# vocabulary x hidden size and layers are those of the models' configurations.
LLAMA_70B = (70_553_706_496 + 2 * 128_256 * 8192, 69_503_033_344 + 128_256 * 8192, 80 * 2 * 8 * 128)
LLAMA_405B = (405_853_388_800 + 2 * 128_256 * 16_384, 403_752_042_496 + 128_256 * 16_384, 126 * 2 * 8 * 128)
DEEPSEEK = (
    671_026_419_200 + 2 * 129_280 * 7168,
    36_625_618_432 + 129_280 * 7168,
    8 * 61 * (512 + 64),
)  # each GPU holds every latent
MODELS = {
    "hf:amd/Llama-3.3-70B-Instruct-FP8-KV": LLAMA_70B,
    "hf:amd/Llama-3.1-405B-Instruct-FP8-KV": LLAMA_405B,
    "hf:deepseek-ai/DeepSeek-V3": DEEPSEEK,
}


def record(source: str, gpu: str, argv: tuple[str, ...] = (*TP8, *FP8_KV), gpus: int = 8) -> RunRecord:
    scenario = with_workload(LOAD, SCENARIO).model_copy(
        update={"model": Model(name="m", source=source, precision="fp8")}
    )
    base = healthy(closed_loop(LOAD, [20.0] * 128), LOAD).record
    assert base.server is not None
    assert base.host is not None
    return base.model_copy(
        update={
            "asked": scenario,
            "server": base.server.model_copy(update={"argv": argv, "kv_cache_tokens": 1_000_000}),
            "host": base.host.model_copy(update={"gpus": (gpu,) * gpus}),
        }
    )


def claim(of: RunRecord) -> Claim:
    """64 streams of 20 ms a token: 3,200 tokens a second."""
    row: dict[str, Any] = defaultdict(lambda: None)
    row |= {"run_id": "run", "completed": 128, "failed": 0, "duration_s": 40.0}
    row |= {"total_input_tokens": 128_000, "total_output_tokens": 128_000, "output_throughput_tok_per_s": 3200.0}
    row |= {"tpot_mean_ms": 20.0}
    return claim_of(of, healthy(closed_loop(LOAD, [20.0] * 128), LOAD).report, row, "0" * 64)


def observed(of: dict[str, Any], column: str) -> Observed:
    found = of[column]
    assert isinstance(found, Observed)
    return found


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("source", MODELS)
def test_memory_of_eight_gpus_agrees_with_the_sum_by_hand(source: str, gpu: str) -> None:
    one = claim(record(source, gpu))
    weights, _, kv_token = MODELS[source]
    running = 3200 * 0.020 * 999 / 1000
    needed = weights + running * 1500 * kv_token
    room = 8 * GPUS[gpu][0] * GIB * 0.9

    found = memory_needs(one, subject_of(one))

    assert observed(found, "ev_memory_fit").value == pytest.approx(needed / room, rel=1e-9)
    assert observed(found, "ev_kv_tokens_over_room_preempted").value == pytest.approx(running * 1500 / 1e6)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("source", MODELS)
def test_bandwidth_of_eight_gpus_agrees_with_the_sum_by_hand(source: str, gpu: str) -> None:
    one = claim(record(source, gpu))
    _, step, kv_token = MODELS[source]
    by_rate = 3200 / 64 * (step + 64 * 1500 * kv_token)
    by_pace = (step + 1000 * kv_token) / 0.020
    column = "ev_mbu_amd" if gpu.startswith("AMD") else "ev_mbu"

    found = roofline_shares(one, subject_of(one))

    assert observed(found, column).value == pytest.approx(max(by_rate, by_pace) / (8 * GPUS[gpu][1]), rel=1e-9)


# Shares of memory, bandwidth and FP8 compute, worked out on paper. 3,200 tok/s x 20 ms x 999/1000 = 63.94 sequences
# of 1,500 tokens run in 64 streams. A step is 20 ms. Operations of a second: 3,200 x (output token + prompt token).
#   70B   72.66 GB + 63.94 x 1,500 x 163,840 B = 88.37 GB; a step reads 70.55 + 64 x 1,500 x 163,840 B = 86.28 GB;
#         2 x 69.50e9 + 80 x 4 x 64 x 128 x 1,500 = 142.94 GFLOP, and 138.22 for a prompt token of 1,000
#   405B  410.06 GB + 63.94 x 1,500 x 258,048 B = 434.80 GB; 405.85 + 24.77 = 430.63 GB; 819.89 and 807.43 GFLOP
#   V3    672.88 GB + 8 x 63.94 x 1,500 x 35,136 B = 699.84 GB, since each GPU holds every latent;
#         37.55 + 8 x 3.37 = 64.54 GB (eight experts a token);
#         2 x 36.63e9 + 61 x 2 x 128 x (2 x 512 + 64) x 1,500 = 98.74 GFLOP, and 73.90 (heads of (128 + 64 + 128) / 2)
# over 8 x 0.9 x 191.98, 255.98 and 140.4 GiB, 8 x 5.325, 6.0 and 4.8 TB/s, and 8 x 2,614.9 and 1,978.9 TFLOP/s.
BY_HAND = {
    ("hf:amd/Llama-3.3-70B-Instruct-FP8-KV", "AMD Instinct MI300X"): (0.05954, 0.1013, 0.04301),
    ("hf:amd/Llama-3.3-70B-Instruct-FP8-KV", "AMD Instinct MI325X"): (0.04465, 0.0899, 0.04301),
    ("hf:amd/Llama-3.3-70B-Instruct-FP8-KV", "NVIDIA H200"): (0.08141, 0.1123, 0.05683),
    ("hf:amd/Llama-3.1-405B-Instruct-FP8-KV", "AMD Instinct MI300X"): (0.29296, 0.5054, 0.24893),
    ("hf:amd/Llama-3.1-405B-Instruct-FP8-KV", "AMD Instinct MI325X"): (0.21971, 0.4486, 0.24893),
    ("hf:amd/Llama-3.1-405B-Instruct-FP8-KV", "NVIDIA H200"): (0.40058, 0.5607, 0.32894),
    ("hf:deepseek-ai/DeepSeek-V3", "AMD Instinct MI300X"): (0.47153, 0.0757, 0.02641),
    ("hf:deepseek-ai/DeepSeek-V3", "AMD Instinct MI325X"): (0.35364, 0.0672, 0.02641),
    ("hf:deepseek-ai/DeepSeek-V3", "NVIDIA H200"): (0.64476, 0.0840, 0.03490),
}


@pytest.mark.parametrize(("source", "gpu"), BY_HAND)
def test_shares_of_eight_gpus_are_those_worked_out_on_paper(source: str, gpu: str) -> None:
    one = claim(record(source, gpu))
    bandwidth = "ev_mbu_amd" if gpu.startswith("AMD") else "ev_mbu"

    found = memory_needs(one, subject_of(one)) | roofline_shares(one, subject_of(one))

    shares = [observed(found, column).value for column in ("ev_memory_fit", bandwidth, "ev_mfu")]
    assert shares == pytest.approx(BY_HAND[source, gpu], rel=1.2e-3)


@pytest.mark.parametrize(
    ("model", "kv_gib"),
    # 64 sequences of 1,500 tokens. Eight GPUs share the KV heads of Llama, and each holds every latent of DeepSeek.
    [("Llama-3.3-70B", 14.648), ("Llama-3.1-405B", 23.071), ("DeepSeek-V3/R1", 8 * 3.1414)],
)
def test_a_plan_counts_the_kv_of_eight_gpus(model: str, kv_gib: float) -> None:
    catalog = read_catalog()
    row, gpu = next(one for one in catalog.models if one.model == model), catalog.gpu("MI300X")
    assert gpu is not None
    group = Group(gpu, 8, "fp8", kv_bytes=1.0)

    assert needed_gib(row, group, 64, 1500) - checkpoint_bytes(row, "fp8") / GIB == pytest.approx(kv_gib, rel=1e-4)


def test_the_arguments_that_ran_count_and_not_those_that_were_asked() -> None:
    asked = claim(record("hf:deepseek-ai/DeepSeek-V3", "NVIDIA H200")).asked

    assert (asked.gpu_count, asked.tp_size, asked.pp_size, asked.dp_size) == (8, 8, 1, 1)
    assert (asked.kv_precision, asked.gpu_memory_utilization, asked.ep_size) == ("fp8", 0.9, None)


@pytest.mark.parametrize(
    ("argv", "gpu_count", "ep_size", "kv_tokens"),
    [
        (("vllm", "-tp", "4"), 4, None, 1_000_000),
        (("vllm", "-tp=2", "--pipeline_parallel_size", "2"), 4, None, 1_000_000),
        (("vllm", "-dp", "8", "--enable-expert-parallel"), 8, 8, 8_000_000),
        (("vllm", "-tp", "2", "-dp", "4", "-ep"), 8, 8, 4_000_000),
        (("vllm",), 1, None, 1_000_000),
        (("vllm", "-tp", "16"), 8, None, 1_000_000),  # more than there are: its own rule says so
    ],
)
def test_each_way_to_spread_a_model_is_read(
    argv: tuple[str, ...], gpu_count: int, ep_size: int | None, kv_tokens: int
) -> None:
    asked = claim(record("hf:deepseek-ai/DeepSeek-V3", "NVIDIA H200", argv)).asked

    assert (asked.gpu_count, asked.ep_size, asked.kv_cache_tokens) == (gpu_count, ep_size, kv_tokens)


def test_a_machine_without_gpus_spreads_nothing() -> None:
    asked = claim(record("hf:deepseek-ai/DeepSeek-V3", "", ("vllm",), gpus=0)).asked

    assert (asked.gpu, asked.gpu_count, asked.tp_size, asked.pp_size, asked.dp_size) == (None,) * 5


def test_a_run_that_never_had_a_server_is_read_by_its_suite() -> None:
    run = record("hf:deepseek-ai/DeepSeek-V3", "NVIDIA H200")
    engine = run.asked.engine.model_copy(update={"flags": ("-tp", "4")})
    run = run.model_copy(update={"server": None, "asked": run.asked.model_copy(update={"engine": engine})})

    assert claim(run).asked.tp_size == 4


def test_only_random_prompts_are_known_to_be_distinct() -> None:
    run = record("hf:deepseek-ai/DeepSeek-V3", "NVIDIA H200")
    work = run.asked.workload
    shared = work.model_copy(
        update={"prompts": work.prompts.model_copy(update={"kind": "shared-prefix", "groups": 2, "prefix_tokens": 9})}
    )

    assert claim(run).asked.has_distinct_prompts is True
    run = run.model_copy(update={"asked": run.asked.model_copy(update={"workload": shared})})
    assert claim(run).asked.has_distinct_prompts is None


def test_requests_of_one_slot_are_held_against_what_their_suite_requires() -> None:
    run = record("hf:deepseek-ai/DeepSeek-V3", "NVIDIA H200")
    alone = run.asked.workload.model_copy(update={"concurrency": 1, "request_count": 6})
    asked = run.asked.model_copy(update={"workload": alone})
    quality = run.quality.model_copy(update={"min_requests_per_slot": 2.0})
    own = claim(run.model_copy(update={"asked": asked, "quality": quality}))

    found = row_evidence(own, subject_of(own))

    assert ev.REQUESTS_ONE_AT_A_TIME not in found
    over_required = found[ev.REQUESTS_OVER_REQUIRED]
    assert isinstance(over_required, Observed)
    assert over_required.value == 3.0
