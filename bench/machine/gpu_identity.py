"""Parse each GPU's ids, firmware, modes and limits from amd-smi and nvidia-smi. Missing is None.

Serial numbers are hashed. The names of amd-smi's keys are those of ROCm 6 and 7.
A virtual function of an AMD GPU has neither firmware nor ECC.
"""

import hashlib
import re
from typing import Any

from bench.errors import UnreadableResultError
from bench.host import GpuFacts
from bench.machine.gpu_tools import amd_list, known_text, nvidia_rows

NVIDIA_IDENTITY = ("uuid", "serial", "vbios_version", "power.limit", "ecc.mode.current", "mig.mode.current")


def amd_identities(static: str, listed: str, firmware: str = "") -> tuple[GpuFacts, ...]:
    """The GPUs of `amd-smi static --json`, with the ids of `amd-smi list` and the versions of `amd-smi firmware`."""
    uuids = {one.get("gpu"): known_text(one.get("uuid")) for one in amd_list(listed)}
    versions = _amd_versions(firmware)
    return tuple(
        _amd_identity(one, uuids.get(one.get("gpu")), versions.get(one.get("gpu"), ())) for one in amd_list(static)
    )


def _amd_versions(firmware: str) -> dict[Any, tuple[str, ...]]:
    """The firmware of each GPU; none of an answer that cannot be read, since the rest of the GPU's identity can."""
    try:
        return {one.get("gpu"): _amd_firmware(one.get("fw_list")) for one in amd_list(firmware)}
    except UnreadableResultError:
        return {}


def _amd_firmware(listed: Any) -> tuple[str, ...]:
    """Each firmware of `fw_list` as NAME=version."""
    found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    named = [(known_text(one.get("fw_id", one.get("fw_name"))), known_text(one.get("fw_version"))) for one in found]
    return tuple(sorted({f"{name}={version}" for name, version in named if name and version}))


def _amd_ecc(ras: dict[str, Any]) -> bool | None:
    """Whether the block of the memory (UMC) corrects errors, by a table of blocks or by a list of them."""
    blocks = ras.get("ecc_block_state")
    if isinstance(blocks, list):
        blocks = {one.get("block"): one.get("status") for one in blocks if isinstance(one, dict)}
    state = blocks.get("UMC") if isinstance(blocks, dict) else None
    return {"ENABLED": True, "DISABLED": False}.get(str(state))


def _amd_identity(static: dict[str, Any], uuid: str | None, firmware: tuple[str, ...]) -> GpuFacts:
    modes = _table(static, "partition")
    return GpuFacts(
        uuid=uuid,
        serial_sha256=serial_hash(
            known_text(_table(static, "board").get("product_serial"))
            or known_text(_table(static, "asic").get("asic_serial"))
        ),
        vbios=known_text(_table(static, "vbios").get("version")),
        partition=known_text(modes.get("accelerator_partition")) or known_text(modes.get("compute_partition")),
        memory_partition=known_text(modes.get("memory_partition")),
        power_cap_w=_watts(_table(static, "limit")),
        ecc=_amd_ecc(_table(static, "ras")),
        firmware=firmware,
    )


def amd_caps(static: str, kind: str | None = None) -> dict[str | None, float | None]:
    """The power cap in watts by a GPU's index; with `kind`, None where the tool has no cap of that name."""
    limits = {str(one.get("gpu")): _table(one, "limit") for one in amd_list(static)}
    return {gpu: _watts(limit) if kind is None or kind in limit else None for gpu, limit in limits.items()}


def nvidia_identities(csv: str, described: str = "") -> tuple[GpuFacts, ...]:
    """The GPUs of `nvidia-smi --query-gpu=<NVIDIA_IDENTITY> --format=csv,noheader,nounits`.

    `described` is the text of `nvidia-smi -q`, which alone names the firmware of the GPU's own processor (GSP).
    """
    found, rows = [], nvidia_rows(csv, len(NVIDIA_IDENTITY))
    versions: list[str] = re.findall(r"^\s*GSP Firmware Version\s*:\s*(\S+)", described, re.MULTILINE)
    for row, gsp in zip(rows, versions if len(versions) == len(rows) else ["N/A"] * len(rows), strict=True):
        uuid, serial, vbios, cap, ecc, mig = (None if cell.startswith("[") else cell for cell in row)
        found.append(
            GpuFacts(
                uuid=uuid,
                serial_sha256=serial_hash(serial),
                vbios=vbios,
                partition=None if mig is None else f"MIG {mig.lower()}",
                power_cap_w=_number(cap),
                ecc=None if ecc is None else ecc == "Enabled",
                firmware=() if gsp == "N/A" else (f"GSP={gsp}",),
            )
        )
    return tuple(found)


def cuda_version(described: str) -> str | None:
    """The CUDA version of `nvidia-smi -q`; None where it says none."""
    found = re.search(r"^CUDA Version\s*:\s*(\d[\d.]*)", described, re.MULTILINE)
    return found[1] if found else None


def serial_hash(serial: str | None) -> str | None:
    """The first 16 hex digits of the SHA-256 of a serial number; None for one that names no single part."""
    if serial is None or not serial.strip("0x ") or serial.lower() in ("not specified", "default string", "none"):
        return None
    return hashlib.sha256(serial.encode()).hexdigest()[:16]


def _table(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _watts(limit: dict[str, Any]) -> float | None:
    """The cap that is set, else None; a value with a unit, or a plain number. Of several, `ppt0` is the GPU's."""
    limit = _table(limit, "ppt0") or limit
    for name in ("socket_power_limit", "socket_power", "power_cap"):
        value = limit.get(name)
        found = _number(value.get("value") if isinstance(value, dict) else value)
        if found is not None:
            return found
    return None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
