"""What is passed with a file: it adds, it never overrides, and what contradicts the file or fits nothing is told."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.audit.claim import ClaimedConfig
from bench.audit.judge import Finding
from bench.errors import UsageError
from flows.cli import app
from tests.data.formats.vllm_serve.make import plain, short_run
from warehouse.audit import AuditOptions, audit

HEAD = "system,url_or_title,gpu,gpu_count,tp,model,precision,isl,osl,concurrency_or_batch,metric,value,unit\n"
LOAD = "FP8,128,2048,1,output_throughput,30,tok/s\n"
ROW = f"a host,a page,AMD Instinct MI300X 192GB,1,1,meta-llama/Llama-3.3-70B-Instruct,{LOAD}"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "claims.csv"
    path.write_text(HEAD + ROW)
    return path


def conflicts(table: Path, context: ClaimedConfig | None = None) -> list[Finding]:
    (judged,) = audit([str(table)], AuditOptions(context or ClaimedConfig())).judged
    return [each for each in judged.findings if each.code == "context_conflict"]


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        (ClaimedConfig(gpu="H100 SXM"), "'AMD Instinct MI300X 192GB' and 'H100 SXM' (gpu: in the file / passed)"),
        (ClaimedConfig(tp_size=8), "'1' and '8' (tp: in the file / passed)"),
        (ClaimedConfig(precision="bf16"), "'fp8' and 'bf16' (precision: in the file / passed)"),
    ],
)
def test_an_option_that_contradicts_the_file_is_a_finding_with_both_values(
    passed: ClaimedConfig, said: str, table: Path
) -> None:
    (conflict,) = conflicts(table, passed)

    assert (conflict.status, said in conflict.message) == ("WARN", True)


def test_another_spelling_of_the_same_is_no_contradiction(table: Path) -> None:
    same = ClaimedConfig(gpu="MI300X", model="Llama-3.3-70B", precision="fp8_e4m3", tp_size=1, isl=128.4)

    assert conflicts(table, same) == []


def test_a_context_file_that_contradicts_the_file_is_a_finding(table: Path) -> None:
    table.with_name("context.toml").write_text('gpu = "H200"\nengine = "vllm"\n')

    (conflict,) = conflicts(table)

    assert "'AMD Instinct MI300X 192GB' and 'H200'" in conflict.message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('gpu = "MI399X"', "gpu = 'MI399X' is not in the catalogue; the nearest names are: MI3"),
        ('model = "Llama-3.3-71B"', "model = 'Llama-3.3-71B' is not in the catalogue; the nearest names are: Llama-3"),
        ('kv_precision = "fp9"', "kv_precision = 'fp9' is not in the catalogue; the nearest names are: fp8"),
    ],
)
def test_a_name_of_a_context_file_that_fits_nothing_is_wrong_usage(line: str, said: str, table: Path) -> None:
    table.with_name("context.toml").write_text(line)

    failed = CliRunner().invoke(app, ["audit", str(table)]).exception

    assert isinstance(failed, UsageError)
    assert said in str(failed)


def test_an_accelerator_without_physics_is_a_known_name(table: Path) -> None:
    table.with_name("context.toml").write_text('gpu = "TPU v5e"\n')

    assert len(conflicts(table)) == 1


@pytest.mark.parametrize(
    ("system", "title", "gpu", "model"),
    [
        ("Supermicro, 8x MI300X", "", "8x MI300X", None),
        ("a host", "Llama-3.3-70B on AMD Instinct MI300X with vLLM", "AMD Instinct MI300X", "Llama-3.3-70B"),
        ("DGX H200", "meta-llama/Llama-3.1-8B-Instruct on an MI300X", "DGX H200", "meta-llama/Llama-3.1-8B-Instruct"),
        ("", "MI300X against H100", None, None),
        ("38 MI300X CU", "DeepSeek-R1 Distill Llama-3.3-70B", None, None),
    ],
)
def test_what_a_row_leaves_open_is_read_from_its_machine_and_title(
    system: str, title: str, gpu: str | None, model: str | None, table: Path
) -> None:
    table.write_text(f'{HEAD}"{system}","{title}",,1,1,,{LOAD}')

    (judged,) = audit([str(table)], AuditOptions()).judged

    assert (judged.claim.asked.gpu, judged.claim.asked.model) == (gpu, model)


def test_the_number_of_gpus_may_stand_before_their_name(table: Path) -> None:
    table.write_text(HEAD + ROW.replace("AMD Instinct MI300X 192GB,1", "8x MI300X,"))

    (judged,) = audit([str(table)], AuditOptions()).judged

    assert judged.claim.asked.gpu_count == 8


@pytest.mark.parametrize("gpu", ["N/A", "unknown", "Undisclosed"])
def test_a_gpu_that_is_not_named_is_none(gpu: str, table: Path) -> None:
    table.write_text(HEAD + ROW.replace("AMD Instinct MI300X 192GB", gpu))

    (judged,) = audit([str(table)], AuditOptions()).judged

    assert judged.claim.asked.gpu is None


@pytest.mark.parametrize(
    ("metadata", "gpu", "tp_size"),
    [
        ({"gpu_name": "NVIDIA H100 80GB HBM3", "tp_size": 2}, "NVIDIA H100 80GB HBM3", 2),
        ({"host": "node 7 with 8x MI300X"}, "8x MI300X", None),
        ({"device": "cuda", "tp_size": "two"}, None, None),
    ],
)
def test_metadata_of_a_result_names_its_gpu(
    metadata: dict[str, object], gpu: str | None, tp_size: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "result.json"
    result = {
        name: value for name, value in plain(short_run(1)).items() if name not in ("gpu", "tp", "tensor_parallel_size")
    }
    path.write_text(json.dumps(result | metadata))

    (judged,) = audit([str(path)], AuditOptions()).judged

    assert (judged.claim.asked.gpu, judged.claim.asked.tp_size) == (gpu, tp_size)
