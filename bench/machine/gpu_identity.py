"""Parse what amd-smi and nvidia-smi say of each GPU itself: ids, firmware, modes and limits. Missing is None.

Serial numbers are hashed. The names of amd-smi's keys are those of ROCm 6 and 7.
"""

import hashlib
from typing import Any

from bench.host import GpuFacts
from bench.machine.gpu_tools import amd_list, known_text, nvidia_rows

NVIDIA_IDENTITY = ("uuid", "serial", "vbios_version", "power.limit", "ecc.mode.current", "mig.mode.current")


def amd_identities(static: str, listed: str) -> tuple[GpuFacts, ...]:
    """The GPUs of `amd-smi static --json`, with the ids of `amd-smi list --json`."""
    uuids = {one.get("gpu"): known_text(one.get("uuid")) for one in amd_list(listed)}
    return tuple(_amd_identity(one, uuids.get(one.get("gpu"))) for one in amd_list(static))


def _amd_identity(static: dict[str, Any], uuid: str | None) -> GpuFacts:
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
    )


def nvidia_identities(csv: str) -> tuple[GpuFacts, ...]:
    """The GPUs of `nvidia-smi --query-gpu=<NVIDIA_IDENTITY> --format=csv,noheader,nounits`."""
    found = []
    for row in nvidia_rows(csv, len(NVIDIA_IDENTITY)):
        uuid, serial, vbios, cap, ecc, mig = (None if cell.startswith("[") else cell for cell in row)
        found.append(
            GpuFacts(
                uuid=uuid,
                serial_sha256=serial_hash(serial),
                vbios=vbios,
                partition=None if mig is None else f"MIG {mig.lower()}",
                power_cap_w=_number(cap),
                ecc=None if ecc is None else ecc == "Enabled",
            )
        )
    return tuple(found)


def serial_hash(serial: str | None) -> str | None:
    """The first 16 hex digits of the SHA-256 of a serial number; None for one that names no single part."""
    if serial is None or not serial.strip("0x ") or serial.lower() in ("not specified", "default string", "none"):
        return None
    return hashlib.sha256(serial.encode()).hexdigest()[:16]


def _table(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _watts(limit: dict[str, Any]) -> float | None:
    """The cap that is set, else None; a value with a unit, or a plain number."""
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
