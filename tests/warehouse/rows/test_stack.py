"""What ran, in columns: variables, flags, GPUs, and a host's identity under another name."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.engines.vllm import attention_backend
from bench.host import GpuFacts, HostFacts
from bench.machine.gpu_identity import NVIDIA_IDENTITY, amd_identities, cuda_version, nvidia_identities, serial_hash
from bench.server_facts import ServerFacts
from bench.suite.prompts import Prompts
from bench.suite.quality import Quality
from tests.bench.builders import SCENARIO
from warehouse.rows.lease_rows import LeaseRows
from warehouse.rows.measurement_setup import requested
from warehouse.rows.stack import of_host, of_server, with_lease

STATIC = {
    "gpu": 0,
    "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0x5A1B"},
    "vbios": {"version": "022.040.003.042.000001"},
    "limit": {"max_power": {"value": 750, "unit": "W"}, "socket_power_limit": {"value": 700, "unit": "W"}},
    "partition": {"accelerator_partition": "SPX", "memory_partition": "NPS1"},
    "ras": {"eeprom_version": "0x30000", "ecc_block_state": {"UMC": "ENABLED", "SDMA": "DISABLED"}},
}
FIRMWARE = json.dumps(
    [{"gpu": 0, "fw_list": [{"fw_id": "CP_MEC1", "fw_version": "177"}, {"fw_id": "SMC", "fw_version": "00.85.112.00"}]}]
)
HOST = HostFacts(
    hostname="droplet-1", kernel="6.8", cpu_model=None, cpu_count=8, memory_bytes=1, python_version="3.12",
    serial_sha256="5e" * 8, gpu_details=(GpuFacts(uuid="b"), GpuFacts(uuid="a", power_cap_w=700.0, ecc=True)),
)  # fmt: skip
LEASE = {"lease_id": "lease-1", "cloud": "digitalocean", "region": "tor1", "kind": "gpu-mi300x1-192gb"}


def server(*argv: str, **environment: str) -> ServerFacts:
    return ServerFacts(
        engine_version="0.32.0", engine_build=None, served_model="tiny", max_model_len=1, kv_cache_tokens=1,
        argv=argv, environment=environment, pid=1, cold_start_s=1.0,
    )  # fmt: skip


def host_id(host: HostFacts, **lease: Any) -> str | None:
    row = {"lease_id": "lease-1", **of_host(host)}
    found: str | None = with_lease(row, [LeaseRows({**LEASE, **lease}, [], [])], [])["host_id"]
    return found


def test_flags_in_another_order_and_spelling_on_another_port_are_the_same_flags() -> None:
    one = of_server(server("/x/vllm", "serve", "/m", "--port", "8000", "-tp", "8", "--max_num_seqs=4"))
    other = of_server(
        server("docker", "run", "--rm", "image", "serve", "/m", "--max-num-seqs", "4", "--port=9",
               "--tensor-parallel-size", "8")
    )  # fmt: skip

    assert one["engine_flags_found"] == ["--max-num-seqs=4", "--tensor-parallel-size=8"]
    assert one["engine_flags_sha256"] == other["engine_flags_sha256"]


def test_variables_are_sorted_and_their_hash_is_of_their_values() -> None:
    one, same, other = (
        of_server(server(**values)) for values in ({"B": "2", "A": "1"}, {"A": "1", "B": "2"}, {"A": "1", "B": "3"})
    )

    assert one["engine_environment"] == ["A=1", "B=2"]
    assert one["engine_environment_sha256"] == same["engine_environment_sha256"] != other["engine_environment_sha256"]


def test_a_host_keeps_its_id_under_another_name_and_with_its_gpus_in_another_order() -> None:
    renamed = HOST.model_copy(update={"hostname": "droplet-2", "gpu_details": HOST.gpu_details[::-1]})

    assert host_id(renamed) == host_id(HOST)


@pytest.mark.parametrize("lease", [{"region": "atl1"}, {"cloud": "static"}, {"kind": "gpu-h100x1-80gb"}])
def test_a_host_of_another_provider_region_or_plan_has_another_id(lease: dict[str, str]) -> None:
    assert host_id(HOST, **lease) != host_id(HOST)


def test_a_host_without_a_serial_number_and_gpu_ids_has_no_id() -> None:
    assert host_id(HOST.model_copy(update={"serial_sha256": None, "gpu_details": ()})) is None


def test_what_only_some_gpus_say_is_not_said_for_all() -> None:
    found = of_host(HOST)

    assert (found["gpu_uuids"], found["gpu_power_cap_w"], found["gpu_ecc"]) == (["b", "a"], 700.0, None)


def test_amd_smi_tells_ids_modes_and_the_cap_that_is_set() -> None:
    listed = json.dumps([{"gpu": 0, "bdf": "0000:83:00.0", "uuid": "96ff74b5-0000-1000-8000-000000000000"}])

    (found,) = amd_identities(json.dumps({"gpu_data": [STATIC]}), listed, f"WARNING: root only\n{FIRMWARE}")

    assert found == GpuFacts(
        uuid="96ff74b5-0000-1000-8000-000000000000", serial_sha256=serial_hash("0x5A1B"),
        vbios="022.040.003.042.000001", partition="SPX", memory_partition="NPS1", power_cap_w=700.0, ecc=True,
        firmware=("CP_MEC1=177", "SMC=00.85.112.00"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("blocks", "ecc"),
    [
        ([{"block": "UMC", "status": "DISABLED"}, {"block": "GFX", "status": "ENABLED"}], False),  # of ROCm 6.0
        ({"UMC": "N/A"}, None),
        ({"GFX": "ENABLED"}, None),
        ("N/A", None),
    ],
)
def test_ecc_is_that_of_the_memory(blocks: object, ecc: bool | None) -> None:
    (found,) = amd_identities(json.dumps([{"gpu": 0, "ras": {"ecc_block_state": blocks}}]), "[]", "no JSON")

    assert (found.ecc, found.firmware) == (ecc, ())


def test_a_virtual_gpu_that_tells_nothing_has_nothing() -> None:
    static = (Path(__file__).parents[2] / "data" / "gpu-tools" / "amd-static.json").read_text()

    assert amd_identities(static, "[]") == (GpuFacts(),)


DESCRIBED = """
Driver Version                            : 570.124.06
CUDA Version                              : 12.8

Attached GPUs                             : 1
GPU 00000000:18:00.0
    VBIOS Version                         : 96.00.99.00.01
    GSP Firmware Version                  : 570.124.06
"""


def test_nvidia_smi_tells_ids_modes_the_cap_and_the_firmware() -> None:
    row = "GPU-8f1c, 1652322012345, 96.00.99.00.01, 700.00, Enabled, Disabled\n"
    (found,) = nvidia_identities(row, DESCRIBED)
    one, other = nvidia_identities(row * 2, DESCRIBED)  # of one GPU, and it is not said of which

    assert len(NVIDIA_IDENTITY) == 6
    assert found == GpuFacts(
        uuid="GPU-8f1c", serial_sha256=serial_hash("1652322012345"), vbios="96.00.99.00.01", partition="MIG disabled",
        power_cap_w=700.0, ecc=True, firmware=("GSP=570.124.06",),
    )  # fmt: skip
    assert (one.firmware, other.firmware) == ((), ())
    assert (cuda_version(DESCRIBED), cuda_version("CUDA Version : N/A"), cuda_version("")) == ("12.8", None, None)
    assert nvidia_identities("[N/A], [N/A], [N/A], [N/A], [N/A], [N/A]\n") == (GpuFacts(),)


@pytest.mark.parametrize("serial", [None, "", "0x0", "0000", "Not Specified", "Default string"])
def test_a_serial_number_that_names_no_part_is_none(serial: str | None) -> None:
    assert serial_hash(serial) is None


@pytest.mark.parametrize(
    ("line", "backend"),
    [
        ("Using Aiter Flash Attention backend on V1 engine.", "Aiter Flash Attention"),
        ("Using AITER MLA backend on V1 engine.", "AITER MLA"),
        ("Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'FLASHINFER']", "FLASH_ATTN"),
        ("Using uniproc distributed executor backend", None),
        ("", None),
    ],
)
def test_the_attention_backend_is_the_one_that_the_log_names(line: str, backend: str | None) -> None:
    assert attention_backend(f"INFO 11-22 [rocm.py:1] {line}\nINFO ready") == backend


def test_the_images_of_prompts_and_of_containers_are_columns() -> None:
    prompts = Prompts(kind="images", form="chat", width=64, height=32, images=2)
    tracked = {"image": "vllm/vllm-openai:v0.32.0", "image_version": "0.32.1.dev7", "image_commit": "c" * 40}
    engine = SCENARIO.engine.model_copy(update=tracked)
    work = SCENARIO.workload.model_copy(update={"prompts": prompts})

    row = requested(SCENARIO.model_copy(update={"workload": work, "engine": engine}), Quality())

    names = ("images_per_prompt", "image_width", "image_height", *tracked)
    assert [row[name] for name in names] == [2, 64, 32, *tracked.values()]
