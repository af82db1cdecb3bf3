"""Parse the output of amd-smi and nvidia-smi. Units are bytes; a missing value is None.

amd-smi changes the shape of its JSON between versions (a list, or `{"gpu_data": [...]}`), writes warnings before it,
and calls MiB "MB".
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.errors import UnreadableResultError

MIB = 1 << 20
UNITS = {"B": 1, "KB": 1 << 10, "MB": MIB, "GB": 1 << 30}  # as amd-smi means them

NVIDIA_GPUS = ("index", "name", "driver_version", "memory.total", "memory.used")
NVIDIA_PROCESSES = ("pid", "process_name", "used_memory", "gpu_uuid")


@dataclass(frozen=True)
class InstalledGpu:
    """One GPU as its tool sees it now."""

    index: int
    name: str
    driver: str | None
    vram_bytes: int | None
    used_bytes: int | None


@dataclass(frozen=True)
class GpuProcess:
    """A process that holds memory of a GPU; one that uses several GPUs is there once for each."""

    pid: int
    name: str
    used_bytes: int | None
    gpu: str | None = None  # its index (amd-smi) or UUID (nvidia-smi)


def amd_gpus(static: str, metric: str) -> tuple[InstalledGpu, ...]:
    """The GPUs of `amd-smi static --json` with the memory of `amd-smi metric --mem-usage --json`."""
    memory = {_index(one): one.get("mem_usage") or {} for one in amd_list(metric)}
    found = []
    for one in amd_list(static):
        index = _index(one)
        used = memory.get(index, {})
        found.append(
            InstalledGpu(
                index=index,
                name=str((one.get("asic") or {}).get("market_name") or "AMD GPU"),
                driver=known_text((one.get("driver") or {}).get("version")),
                vram_bytes=_amd_bytes(used.get("total_vram")) or _amd_bytes((one.get("vram") or {}).get("size")),
                used_bytes=_amd_bytes(used.get("used_vram")),
            )
        )
    return tuple(found)


def amd_uuids(text: str) -> dict[int, str]:
    """The UUID of each GPU of `amd-smi list --json` by its index."""
    known = {_index(one): known_text(one.get("uuid")) for one in amd_list(text)}
    return {index: uuid for index, uuid in known.items() if uuid is not None}


def amd_processes(text: str) -> tuple[GpuProcess, ...]:
    """The processes of `amd-smi process --json`, each once a GPU, with the highest memory that is listed for it."""
    found: dict[tuple[int, str], GpuProcess] = {}
    for entry, gpu in _entries_with_pid(_amd_json(text)):
        pid = int(entry["pid"])
        used = _amd_bytes((entry.get("memory_usage") or {}).get("vram_mem")) or _amd_bytes(entry.get("mem_usage"))
        name = str(entry.get("name") or "unknown")
        known = found.get((pid, gpu or ""))
        if known is None or (used or 0) > (known.used_bytes or 0):
            found[pid, gpu or ""] = GpuProcess(pid, name, used, gpu)
    return tuple(found[key] for key in sorted(found))


def _entries_with_pid(value: Any, gpu: str | None = None) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Every table with a pid and its GPU's index, however deep this version of the tool hides it."""
    if isinstance(value, dict):
        gpu = str(value.get("gpu", gpu or "")) or None
        if str(value.get("pid", "")).isdigit():
            yield value, gpu
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _entries_with_pid(one, gpu)


def amd_list(text: str) -> list[dict[str, Any]]:
    """A table per GPU of an answer of amd-smi, whichever shape this version prints."""
    value = _amd_json(text)
    found = value.get("gpu_data", []) if isinstance(value, dict) else value
    return [one for one in found if isinstance(one, dict)]


def _amd_json(text: str) -> Any:
    """The JSON of an answer, which may come after warnings."""
    for start in re.finditer(r"^\s*[\[{]", text, re.MULTILINE):
        try:
            return json.loads(text[start.start() :])
        except ValueError:
            continue
    raise UnreadableResultError(f"amd-smi printed no JSON: {text[:200]!r}")


def _index(one: dict[str, Any]) -> int:
    return int(one.get("gpu", 0))


def known_text(value: Any) -> str | None:
    """A value of amd-smi as text; None where it has none."""
    return str(value) if value not in (None, "", "N/A") else None


def _amd_bytes(value: Any) -> int | None:
    if not isinstance(value, dict):
        return None
    try:
        return int(float(value["value"]) * UNITS[str(value["unit"]).upper()])
    except (KeyError, ValueError):
        return None


def nvidia_gpus(csv: str) -> tuple[InstalledGpu, ...]:
    """The GPUs of `nvidia-smi --query-gpu=<NVIDIA_GPUS> --format=csv,noheader,nounits`."""
    return tuple(
        InstalledGpu(int(index), name, _nvidia_text(driver), _nvidia_bytes(total), _nvidia_bytes(used))
        for index, name, driver, total, used in nvidia_rows(csv, len(NVIDIA_GPUS))
    )


def nvidia_processes(csv: str) -> tuple[GpuProcess, ...]:
    """The processes of `nvidia-smi --query-compute-apps=<NVIDIA_PROCESSES> --format=csv,noheader,nounits`."""
    rows = nvidia_rows(csv, len(NVIDIA_PROCESSES))
    known = [row for row in rows if row[0].isdigit()]
    return tuple(GpuProcess(int(pid), name, _nvidia_bytes(used), _nvidia_text(gpu)) for pid, name, used, gpu in known)


def nvidia_rows(csv: str, width: int) -> list[list[str]]:
    """The cells of an answer of nvidia-smi; UnreadableResultError if a row has another number than `width`."""
    rows = [[cell.strip() for cell in line.split(",")] for line in csv.splitlines() if line.strip()]
    wrong = [row for row in rows if len(row) != width]
    if wrong:
        raise UnreadableResultError(f"nvidia-smi printed {len(wrong[0])} values instead of {width}: {wrong[0]}")
    return rows


def _nvidia_text(value: str) -> str | None:
    return None if value.startswith("[") else value


def _nvidia_bytes(mib: str) -> int | None:
    return int(float(mib) * MIB) if re.fullmatch(r"[\d.]+", mib) else None
