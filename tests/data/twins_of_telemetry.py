"""Telemetry files on which one rule speaks: `python -m tests.data.twins_of_telemetry` writes them anew to `audit/`.

Two GPUs under a steady load, a sample a second; what such a file does not say stands in a `.context.toml` beside it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.data.formats.closed_loop import STARTED_AT_S

SECONDS = range(60)
GPUS = range(2)
HEADER = (
    "timestamp,device,power_watts,power_cap_watts,temp_edge_celsius,temp_junction_celsius,vram_used_bytes,"
    "throttle_status,energy_accumulator_j,uncorrectable_ecc"
)
PLAIN: dict[str, Any] = {"watts": 600.0, "cap": 750, "edge": 52, "junction": 68, "used": 40, "throttle": "UNTHROTTLED"}
CONTEXT = 'gpu = "MI300X"\ngpu_count = 2\ntp_size = 2\nmodel = "meta-llama/Llama-3.1-8B-Instruct"\nprecision = "bf16"\n'


def _rows(changes: dict[str, Any], seconds: range | tuple[int, ...]) -> Iterator[str]:
    said = {**PLAIN, **changes}
    counted = said.get("counted", said["watts"])
    for second in seconds:
        for gpu in GPUS:
            name = "" if gpu == 1 and second in said.get("blank", ()) else f"gpu{gpu}"
            errors = 1 if said.get("ecc") and second > SECONDS.stop // 2 else 0
            cells = [f"{int(STARTED_AT_S) + second}", name, said["watts"], said["cap"], said["edge"], said["junction"]]
            cells += [said["used"] * 2**30, said["throttle"], 1000.0 + second * counted, errors]
            yield ",".join(map(str, cells))


def telemetry(seconds: range | tuple[int, ...] = SECONDS, **changes: Any) -> str:
    """A file of such samples, otherwise than plain."""
    return "\n".join([HEADER, *_rows(changes, seconds)]) + "\n"


def files() -> dict[str, dict[str, str]]:
    """Every file by folder and name."""
    bad = {
        "device_blank.csv": telemetry(blank=(3, 4)),
        "ecc_errors.csv": telemetry(ecc=True),
        "energy_accumulator.csv": telemetry(counted=900.0),
        "power_range.csv": telemetry(watts=900.0),
        "telemetry_window.csv": telemetry((*range(20), *range(32, 60))),
        "temp_order.csv": telemetry(edge=68, junction=52),
        "throttled.csv": telemetry(throttle="THROTTLED"),
        "vram_shortfall.csv": telemetry(used=3),
        "vram_shortfall.context.toml": CONTEXT,
        "device_count.csv": telemetry(),
        "device_count.context.toml": "gpu_count = 1\n",
    }
    good = {"telemetry.csv": telemetry(), "telemetry.context.toml": CONTEXT}
    return {"audit": bad, "good/telemetry": good}


if __name__ == "__main__":
    for folder, texts in files().items():
        for name, text in texts.items():
            Path(__file__).with_name(folder).joinpath(name).write_text(text)
