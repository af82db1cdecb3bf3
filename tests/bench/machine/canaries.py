"""Canaries for tests: real output of the program, and records of an MI300X."""

from datetime import UTC, datetime
from pathlib import Path

from bench.machine.canary import CanaryRecord, CanaryResult, Position

DATA = Path(__file__).parents[2] / "data" / "canary"
MI300X = "AMD Instinct MI300X VF"
STARTED = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)


def whole(name: str) -> str:
    """A recorded output."""
    return (DATA / name).read_text()


def record(values: dict[str, float], position: Position = "before", lease_id: str = "lease-1") -> CanaryRecord:
    """The record of a canary that reached these values on GPU 0."""
    results = tuple(CanaryResult(test=test, device=0, value=value) for test, value in values.items())
    return CanaryRecord(
        lease_id=lease_id,
        position=position,
        started_at=STARTED,
        duration_s=9.5,
        torch_version="2.9.0+rocm7.0",
        gpus=(MI300X,),
        results=results,
    )
