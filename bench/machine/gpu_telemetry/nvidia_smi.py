"""The telemetry of nvidia-smi: CSV with units in its cells, one row a GPU each second."""

from bench.machine.gpu_telemetry import throttle
from bench.machine.gpu_telemetry.sample import (
    CsvReader,
    GpuSample,
    TelemetryTool,
    bytes_of_mib,
    count,
    index_of,
    number,
    share,
)

_MINIMAL = (
    *("index", "uuid", "power.draw", "temperature.gpu", "clocks.current.sm", "clocks.current.memory"),
    *("utilization.gpu", "utilization.memory", "memory.used"),
)
_FULL = (
    *(*_MINIMAL, "enforced.power.limit", "temperature.memory"),
    *("ecc.errors.corrected.volatile.total", "ecc.errors.uncorrected.volatile.total"),
)


def _command(*fields: str) -> tuple[str, ...]:
    return ("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv", "-l", "1")


# Drivers before 535 know the reasons by their former name only.
_COMMANDS = (
    _command(*_FULL, "clocks_event_reasons.active"),
    _command(*_FULL, "clocks_throttle_reasons.active"),
    _command(*_MINIMAL),
)


class _Reader:
    def __init__(self, _: str) -> None:
        self._rows = CsvReader("index", "power_draw")

    def read(self, line: str) -> tuple[GpuSample, ...]:
        cells = self._rows.cells(line)
        if not cells:
            return ()
        reasons = cells.get("clocks_event_reasons_active") or cells.get("clocks_throttle_reasons_active") or ""
        throttled = throttle.of_word(reasons)
        uuid = cells.get("uuid", "")
        return (
            GpuSample(
                index=index_of(cells, "index", line),
                uuid=uuid if uuid.startswith(("GPU-", "MIG-")) else None,
                power_w=number(cells, "power_draw"),
                power_cap_w=number(cells, "enforced_power_limit"),
                edge_c=number(cells, "temperature_gpu"),
                memory_c=number(cells, "temperature_memory"),
                clock_mhz=number(cells, "clocks_current_sm"),
                memory_clock_mhz=number(cells, "clocks_current_memory"),
                used_bytes=bytes_of_mib(cells, "memory_used"),
                busy_share=share(cells, "utilization_gpu"),
                memory_busy_share=share(cells, "utilization_memory"),
                is_throttled=throttled.is_throttled,
                throttle_reasons=throttled.reasons,
                ecc_corrected=count(cells, "ecc_errors_corrected_volatile_total"),
                ecc_uncorrected=count(cells, "ecc_errors_uncorrected_volatile_total"),
            ),
        )


TOOL = TelemetryTool(name="nvidia-smi", commands=_COMMANDS, reader=_Reader)
