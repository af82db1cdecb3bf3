"""The telemetry of amd-smi: CSV after a preamble, its header once or repeated, one row a GPU each second."""

from bench.errors import UnreadableResultError
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
from bench.machine.gpu_tools import amd_uuids

_WATCH = ("-w", "1", "--csv")
# Power, clocks, temperatures and usage; then memory, ECC and energy; then violations (MI300 and later).
_MINIMAL = ("amd-smi", "metric", "-p", "-c", "-t", "-u")
_COMMANDS = (
    (*_MINIMAL, "-m", "-e", "-E", "-v", *_WATCH),
    (*_MINIMAL, "-m", "-e", "-E", *_WATCH),
    (*_MINIMAL, *_WATCH),
)


class _Reader:
    def __init__(self, uuids: dict[int, str]) -> None:
        self._uuids = uuids
        self._rows = CsvReader("gpu", "socket_power")

    def read(self, line: str) -> tuple[GpuSample, ...]:
        cells = self._rows.cells(line)
        if not cells:
            return ()
        index = index_of(cells, "gpu", line)
        throttled = throttle.of_amd(cells)
        return (
            GpuSample(
                index=index,
                uuid=self._uuids.get(index),
                power_w=number(cells, "socket_power", "average_socket_power", "current_socket_power"),
                energy_j=number(cells, "total_energy_consumption"),
                edge_c=number(cells, "edge"),
                junction_c=number(cells, "hotspot"),
                memory_c=number(cells, "mem"),
                clock_mhz=number(cells, "gfx_0_clk", "gfx_clk"),
                memory_clock_mhz=number(cells, "mem_0_clk", "mem_clk"),
                used_bytes=bytes_of_mib(cells, "used_vram"),
                busy_share=share(cells, "gfx_activity"),
                memory_busy_share=share(cells, "umc_activity"),
                is_throttled=throttled.is_throttled,
                throttle_reasons=throttled.reasons,
                ecc_corrected=count(cells, "total_correctable_count"),
                ecc_uncorrected=count(cells, "total_uncorrectable_count"),
            ),
        )


def _reader(identity: str) -> _Reader:
    """Without an identity the UUIDs are unknown."""
    try:
        return _Reader(amd_uuids(identity))
    except UnreadableResultError:
        return _Reader({})


TOOL = TelemetryTool(name="amd-smi", commands=_COMMANDS, reader=_reader, identity=("amd-smi", "list", "--json"))
