"""The twins of telemetry CSVs: `python -m tests.data.formats.telemetry.make` writes them anew."""

from datetime import UTC, datetime
from pathlib import Path

from tests.data.formats.closed_loop import STARTED_AT_S

SECONDS = range(-5, 96)  # around a window that begins at 0
GPUS = range(2)


def watts(second: int, gpu: int) -> float:
    """Idle outside the window of 90 s, a plateau inside."""
    return 130.0 if second < 0 or second > 90 else 500.0 + 20.0 * gpu


def nvidia(hours: int = 2) -> str:
    """On a clock that is ahead of UTC by so many hours and does not say so."""
    header = "timestamp, index, power.draw [W], power.limit [W], temperature.gpu, memory.used [MiB]"
    return "".join(
        [
            f"{header}\n",
            *(
                f"{moment(second + hours * 3600)}, {gpu}, {watts(second, gpu):.2f} W, 700.00 W, 61, 71680 MiB\n"
                for second in SECONDS
                for gpu in GPUS
            ),
        ]
    )


def moment(second: float) -> str:
    return datetime.fromtimestamp(STARTED_AT_S + second, UTC).strftime("%Y/%m/%d %H:%M:%S.000")


def amd() -> str:
    header = "timestamp,gpu,socket_power,hotspot_temperature,edge_temperature,throttle_status,energy_accumulator (J)\n"
    lines = []
    energy = [1000.0 for _ in GPUS]
    for at, second in enumerate(SECONDS):
        if at % 20 == 0:
            lines.append(header)
        for gpu in GPUS:
            energy[gpu] += (watts(second - 1, gpu) + watts(second, gpu)) / 2
            now = int(STARTED_AT_S) + second
            lines.append(f"{now},{gpu},{watts(second, gpu)},71,55,UNTHROTTLED,{energy[gpu]}\n")
    return "".join(lines)


def plain() -> str:
    header = "timestamp,device,power_watts,power_cap_watts,temp_edge_celsius,temp_junction_celsius,vram_used_bytes\n"
    rows = [
        f"{int((STARTED_AT_S + second) * 1000)},gpu{gpu},{watts(second, gpu)},750,52,68,{150 * 2**30}\n"
        for second in SECONDS
        for gpu in GPUS
    ]
    return header + "".join(rows)


def files() -> dict[str, str]:
    return {"nvidia-smi.csv": nvidia(), "amd-smi.csv": amd(), "plain.csv": plain()}


if __name__ == "__main__":
    for name, text in files().items():
        (Path(__file__).parent / name).write_text(text)
