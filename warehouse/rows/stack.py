"""What ran, in columns: the engine's variables and flags, the GPUs, and the identity of the host."""

import hashlib
import json
from collections.abc import Iterable, Sequence

from bench.engines.config import parallel_sizes, parse_flags
from bench.host import HostFacts
from bench.machine.canary import CanaryRecord
from bench.server_facts import ServerFacts
from warehouse.rows.lease_rows import LeaseRows
from warehouse.schema.row import Row

# What differs between two servers that are alike.
ADDRESS = ("--host", "--port")
COMMAND = "serve"  # of the engine, before its model and flags


def of_server(server: ServerFacts) -> Row:
    """The columns of how the engine was started; values of secret variables are in no record."""
    variables = sorted(f"{name}={value}" for name, value in server.environment.items())
    # In a container, docker's own words stand before the engine's.
    command = server.argv[server.argv.index(COMMAND) :] if COMMAND in server.argv else ()
    flags = {name: value for name, value in parse_flags(command).items() if name not in ADDRESS}
    named = sorted(f"{name}={value}" if value else name for name, value in flags.items())
    return {
        "attention_backend": server.attention_backend,
        "engine_environment": variables,
        "engine_environment_sha256": _digest(variables),
        "engine_flags_found": named if command else None,
        "engine_flags_sha256": _digest(named) if command else None,
        **(server.parallel or parallel_sizes(parse_flags(server.argv))).model_dump(exclude={"is_dp_inside_tp"}),
    }


def of_host(host: HostFacts) -> Row:
    """The columns of the host's firmware and GPUs."""
    gpus = host.gpu_details
    caps = [gpu.power_cap_w for gpu in gpus if gpu.power_cap_w is not None]
    ecc = [gpu.ecc for gpu in gpus]
    return {
        **host.model_dump(
            include={"numa_balancing", "cpu_microcode", "bios_version", "serial_sha256", "rocm_version", "cuda_version"}
        ),
        "gpu_uuids": _known(gpu.uuid for gpu in gpus),
        "gpu_serials_sha256": _known(gpu.serial_sha256 for gpu in gpus),
        "gpu_firmware": sorted({version for gpu in gpus for version in gpu.firmware}) or None,
        "gpu_vbios": _distinct(gpu.vbios for gpu in gpus),
        "gpu_partition": _distinct(gpu.partition for gpu in gpus),
        "gpu_memory_partition": _distinct(gpu.memory_partition for gpu in gpus),
        "gpu_power_cap_w": min(caps, default=None),
        "gpu_ecc": None if not ecc or None in ecc else all(ecc),
    }


def with_lease(row: Row, leases: Sequence[LeaseRows], canaries: Sequence[CanaryRecord]) -> Row:
    """The row with the facts of its lease: the identity of the host, and the version of torch."""
    lease_id = row["lease_id"]
    if lease_id is None:
        return row
    lease = next((rows.lease for rows in leases if rows.lease["lease_id"] == lease_id), None)
    torch = next((one.torch_version for one in canaries if one.lease_id == lease_id and one.torch_version), None)
    return row | {"torch_version": torch, "host_id": None if lease is None else _host_id(row, lease)}


def _host_id(row: Row, lease: Row) -> str | None:
    """Equal for the same machine under another hostname; None if nothing distinguishes it from others of its kind."""
    ids = [row["serial_sha256"], sorted(row["gpu_uuids"] or [])]
    return _digest([lease["cloud"], lease["region"], lease["kind"], *ids]) if any(ids) else None


def _known(values: Iterable[str | None]) -> list[str] | None:
    return [value for value in values if value is not None] or None


def _distinct(values: Iterable[str | None]) -> str | None:
    return ", ".join(sorted({value for value in values if value is not None})) or None


def _digest(value: object) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
