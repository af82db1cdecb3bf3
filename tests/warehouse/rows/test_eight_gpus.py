"""The suites for eight GPUs: each plans without an account, and a run of it is audited by what its engine printed."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bench.audit.evidence.evidence import Observed
from bench.audit.judge import status_of_each
from bench.engines import vllm
from bench.engines.config import parallel_sizes, parse_flags
from bench.host import GpuFacts
from bench.record import RunRecord
from bench.server_facts import Weights
from bench.suite.parse import parse_suite
from bench.suite.scenario import Scenario
from catalog.engine_check import broken_by, refusals
from infra.leases.forecast import forecast
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from tests.warehouse.folders import Shape, whole_night
from warehouse.rows.run_folder import RunId, read_run
from warehouse.rows.run_rows import RunRows, run_rows

ROOT = Path(__file__).parents[3]
LOGS = ROOT / "tests" / "data" / "vllm-8-gpus"
GIB = 1 << 30
SHAPE = Shape(requests=320, tokens=8, concurrency=32, ttft_ms=400.0, gap_ms=25.0, warmup=0)


@dataclass(frozen=True)
class Case:
    """A suite, its GPU, and the bytes of its model: of the checkpoint, of a step's weights and of KV a token."""

    suite: str
    gpu: str
    gib: float  # of one GPU
    bytes_per_s: float
    weights: int
    step: int
    kv_token: int
    kv_tokens: int  # in the log
    backend: str
    usd_per_hour: float

    @property
    def scenario(self) -> Scenario:
        path = ROOT / "suites" / f"{self.suite}.toml"
        return parse_suite(path.read_text("utf-8"), path.name).expand()[0]


# 405B: 405,853,388,800 parameters of one byte, embeddings and lm_head (128,256 x 16,384 each) of two; a step reads all
# but the embeddings. KV: 126 layers x 2 x 8 heads x 128, of one byte.
LLAMA = Case(
    "llama-3.1-405b-8xmi300x", "AMD Instinct MI300X", 191.98, 5.325e12,
    405_853_388_800 + 2 * 128_256 * 16_384, 403_752_042_496 + 128_256 * 16_384, 126 * 2 * 8 * 128,
    3_993_872, "Aiter Flash Attention", 20.72,
)  # fmt: skip
# DeepSeek-V3: 671,026,419,200 parameters; a step of one token reads 36,625,618,432. KV: 61 latents of 512 + 64, on
# each GPU. Their precision is the engine's choice, so a sum counts the least, one byte.
DEEPSEEK = Case(
    "deepseek-v3-8xmi325x", "AMD Instinct MI325X", 255.98, 6.0e12,
    671_026_419_200 + 2 * 129_280 * 7168, 36_625_618_432 + 129_280 * 7168, 8 * 61 * (512 + 64),
    2_200_288, "AITER MLA", 30.40,
)  # fmt: skip
CASES = pytest.mark.parametrize("case", [LLAMA, DEEPSEEK], ids=lambda case: case.suite)


def rows_of(case: Case, tmp_path: Path, flags: tuple[str, ...] = ()) -> RunRows:
    """The rows of a run of the suite's first server, which printed the log."""
    night = whole_night(tmp_path, "2026-03-01", {"chat": SHAPE})
    place = RunId("2026-03-01", night.runs[0].scenario.scenario_id, 0)
    files = read_run(tmp_path / "runs" / place.night / place.scenario_id / "0")
    record = RunRecord.model_validate_json(files.record)
    asked, log = case.scenario, (LOGS / f"{case.suite}.log").read_text("utf-8")
    argv = (*vllm.argv(Path("vllm"), asked, Path("/models/m"), 8000), *flags)
    assert record.server is not None
    assert record.host is not None
    changes: dict[str, Any] = {
        "asked": record.asked.model_copy(update={"model": asked.model, "engine": asked.engine}),
        "weights": Weights(revision="a" * 40, sha256="1" * 64, bytes=case.weights),
        "server": record.server.model_copy(
            update={
                "argv": argv,
                "environment": vllm.environment(asked),
                "kv_cache_tokens": vllm.kv_cache_tokens(log),
                "attention_backend": vllm.attention_backend(log),
                "parallel": parallel_sizes(parse_flags(argv)),
            }
        ),
        "host": record.host.model_copy(
            update={"gpus": (case.gpu,) * 8, "gpu_details": tuple(GpuFacts(uuid=f"GPU-{at}") for at in range(8))}
        ),
    }
    return run_rows(place, replace(files, record=record.model_copy(update=changes).model_dump_json().encode()))


def value(rows: RunRows, column: str) -> float:
    assert rows.asked is not None
    found = rows.asked.evidence[column]
    assert isinstance(found, Observed), found
    return found.value


@CASES
def test_the_suite_plans_without_an_account(case: Case) -> None:
    path = ROOT / "suites" / f"{case.suite}.toml"
    night = make_night(path, "digitalocean", poc=False, is_draft=True)

    found = forecast(Settings(), night, None)

    (doubt,) = found.doubts
    assert doubt.startswith("the price may be out of date: no token for digitalocean: ")
    assert (found.price.usd_per_hour, night.suite.machine.gpu_count) == (case.usd_per_hour, 8)
    assert found.usd_max is not None
    assert 0 < found.usd_max <= (night.suite.machine.budget_usd or 0.0)
    assert broken_by(night.suite, "digitalocean") == ()
    assert refusals(night.suite, night.runs, "digitalocean") == ()


@CASES
def test_a_run_has_in_its_row_what_the_engine_was_started_with_and_printed(case: Case, tmp_path: Path) -> None:
    row = rows_of(case, tmp_path).measurement

    sizes = tuple(row[name] for name in ("gpu_count", "tp_size", "pp_size", "dp_size", "ep_size"))
    assert sizes == (8, 8, 1, 1, None)
    assert (row["kv_cache_tokens"], row["attention_backend"]) == (case.kv_tokens, case.backend)


@CASES
def test_the_rules_of_roofline_memory_and_kv_are_asked_and_agree_with_the_sums_by_hand(
    case: Case, tmp_path: Path
) -> None:
    rows = rows_of(case, tmp_path)
    row = rows.measurement
    rate, tpot_s = row["output_throughput_tok_per_s"], row["tpot_mean_ms"] / 1e3
    running = rate * tpot_s * 7 / 8  # Little's law, over the 7 gaps of 8 tokens
    context = 16 + 8 / 2

    # By the rate, a step reads the weights once and 32 sequences; by the pace, the weights and one prompt.
    by_rate = rate / 32 * (case.step + 32 * context * case.kv_token)
    by_pace = (case.step + 16 * case.kv_token) / tpot_s
    assert value(rows, "ev_mbu_amd") == pytest.approx(max(by_rate, by_pace) / (8 * case.bytes_per_s), rel=1e-6)
    needed = case.weights + running * context * case.kv_token
    assert value(rows, "ev_memory_fit") == pytest.approx(needed / (8 * case.gib * GIB * 0.9), rel=1e-6)
    assert value(rows, "ev_kv_tokens_over_room_preempted") == pytest.approx(running * context / case.kv_tokens)
    assert rows.asked is not None
    statuses = status_of_each(rows.asked.evidence)
    assert {statuses[name] for name in ("ev_mbu_amd", "ev_mfu", "ev_prefill_share", "ev_memory_fit")} == {"PASS"}


@pytest.mark.parametrize(
    ("case", "names"), [(LLAMA, ("Llama-3.1-405B", "MI300X")), (DEEPSEEK, ("DeepSeek-V3/R1", "MI325X"))]
)
def test_a_row_has_the_catalogues_names_of_its_model_and_gpu(
    case: Case, names: tuple[str, str], tmp_path: Path
) -> None:
    row = rows_of(case, tmp_path).measurement

    assert (row["catalog_model"], row["catalog_gpu"]) == names


def test_experts_that_are_dealt_out_have_a_size(tmp_path: Path) -> None:
    row = rows_of(DEEPSEEK, tmp_path, ("--enable-expert-parallel",)).measurement

    assert (row["tp_size"], row["ep_size"]) == (8, 8)
