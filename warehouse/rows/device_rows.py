"""The samples of a run's GPUs as a claim's device, and as columns of `measurements`."""

from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.audit.claim import Device
from bench.audit.device_samples import Samples, Window, device_of
from bench.audit.own_claim import gpus_of
from bench.host_use import HostUse
from bench.metrics import Floats, Requests, ratio
from bench.record import RunRecord
from warehouse.schema.claim_columns import DEVICE_FIELDS
from warehouse.schema.row import Row

_GIB = 1 << 30
_MEASURED = {
    "power_w": "gpu_power_w",
    "cap_w": "gpu_power_cap_w",
    "energy_j": "gpu_energy_j",
    "edge_c": "gpu_edge_c",
    "junction_c": "gpu_junction_c",
    "ecc": "gpu_ecc_uncorrected",
    "ecc_corrected": "gpu_ecc_corrected",
    "clock_mhz": "gpu_clock_mhz",
    "busy_share": "gpu_busy_share",
}


def run_device(record: RunRecord, requests: Requests, telemetry: pa.Table | None, row: Row) -> Device | None:
    """What telemetry says of the GPUs that a measured run used; None without GPUs, or from before they were sampled.

    `row` has the run's totals. Energy per token is by the device's own counter where it has one, else by its power.
    """
    if record.endpoint is not None:
        return None  # its GPUs are not on this host
    use = record.host_use or HostUse()
    found = None if telemetry is None else _of_gpus(telemetry, gpus_of(record))
    if found is None or not len(found):
        return Device(was_asked=True, sample_count=0) if "gpu_telemetry" in use.unknown else None
    window = _window(requests) if found["at_s"].null_count == 0 else None
    device = device_of(_samples(found, is_placed=window is not None), window)
    joules = device.energy_counter_j if device.energy_counter_j is not None else device.energy_j
    inputs, outputs = row["total_input_tokens"], row["total_output_tokens"]
    total = None if inputs is None or outputs is None else inputs + outputs
    return replace(
        device,
        load_s=window,
        begin_s=device.begin_s if window else None,
        end_s=device.end_s if window else None,
        joules_per_output_token=None if joules is None else ratio(joules, outputs),
        joules_per_total_token=None if joules is None else ratio(joules, total),
        foreign_gib_at_start=None if use.other_gpu_bytes is None else use.other_gpu_bytes / _GIB,
        kernel_errors=use.gpu_kernel_errors,
    )


def device_columns(device: Device | None, use: HostUse | None) -> Row:
    """The columns of a run's GPUs."""
    known = {} if device is None else asdict(device)
    names = (*DEVICE_FIELDS, "throttled_share")
    return {name: known.get(name) for name in names} | {"gpu_telemetry": None if use is None else use.gpu_telemetry}


def _of_gpus(telemetry: pa.Table, used: tuple[int, ...] | None) -> pa.Table:
    """The samples of these GPUs; of all where it is unknown which the run used."""
    if used is None:
        return telemetry.filter(pc.is_valid(telemetry["gpu_index"]))
    return telemetry.filter(pc.is_in(telemetry["gpu_index"], pa.array(used, telemetry["gpu_index"].type)))


def _window(requests: Requests) -> Window | None:
    good = requests.is_ok
    if not good.any():
        return None
    begin, end = float(np.nanmin(requests.send_s)), float(np.max(requests.last_token_s[good]))
    return (begin, end) if begin < end else None


def _samples(found: pa.Table, *, is_placed: bool) -> Samples:
    at_s = _numbers(found, "at_s") if is_placed else _numbers(found, "at") / 1e6
    names = zip(found["gpu_uuid"].to_pylist(), found["gpu_index"].to_pylist(), strict=True)
    used = _numbers(found, "gpu_used_bytes") / _GIB
    return Samples(
        at_s=at_s,
        device=tuple(uuid or str(index) for uuid, index in names),
        measured={what: _numbers(found, column) for what, column in _MEASURED.items()} | {"used_gib": used},
        throttled=_numbers(found, "gpu_is_throttled"),
        blank_count=0,
        has_zone=True,
    )


def _numbers(found: pa.Table, name: str) -> Floats:
    """A column as numbers, NaN for NULL; a moment in microseconds."""
    column = found[name]
    whole = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    return np.asarray(whole.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
