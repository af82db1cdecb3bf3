"""The telemetry of rocm-smi: one JSON object for each call, all of its values texts."""

import json
import re
from collections.abc import Mapping

from bench.errors import UnreadableResultError
from bench.machine.gpu_telemetry.sample import GpuSample, TelemetryTool, index_of, number, share, unreadable

_MINIMAL = ("rocm-smi", "--showpower", "--showtemp", "--showuse", "--showclocks", "--showmeminfo", "vram")
_COMMANDS = (
    (*_MINIMAL, "--showmemuse", "--showuniqueid", "--showenergycounter", "--showmaxpower", "--json"),
    (*_MINIMAL, "--json"),
)
_POWER = ("Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)")
_MICRO = 1e-6


class _Reader:
    def __init__(self, _: str) -> None:
        """Its output names the UUIDs itself."""

    def read(self, line: str) -> tuple[GpuSample, ...]:
        if not line.strip():
            return ()
        try:
            cards = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise unreadable(line) from error
        if not isinstance(cards, dict):
            raise UnreadableResultError(f"unknown JSON {line[:60]!r}")
        return tuple(
            _sample(name, {key: str(value) for key, value in card.items()})
            for name, card in cards.items()
            if re.fullmatch(r"card\d+", name) and isinstance(card, dict)
        )


def _sample(name: str, card: Mapping[str, str]) -> GpuSample:
    energy_uj, used = number(card, "Accumulated Energy (uJ)"), number(card, "VRAM Total Used Memory (B)")
    uuid = card.get("Unique ID", "")
    return GpuSample(
        index=index_of({"card": name}, "card", name),
        uuid=uuid if uuid.startswith("0x") else None,
        power_w=number(card, *_POWER),
        power_cap_w=number(card, "Max Graphics Package Power (W)"),
        energy_j=None if energy_uj is None else energy_uj * _MICRO,
        edge_c=number(card, "Temperature (Sensor edge) (C)"),
        junction_c=number(card, "Temperature (Sensor junction) (C)"),
        memory_c=number(card, "Temperature (Sensor memory) (C)"),
        clock_mhz=number(card, "sclk clock speed:"),
        memory_clock_mhz=number(card, "mclk clock speed:"),
        used_bytes=None if used is None else int(used),
        busy_share=share(card, "GPU use (%)"),
        memory_busy_share=share(card, "GPU Memory Read/Write Activity (%)"),
    )


TOOL = TelemetryTool(name="rocm-smi", commands=_COMMANDS, reader=_Reader, ends_each_time=True)
