"""The canary: a machine's own speed, measured for seconds before its servers start and after the last has stopped.

Reads what infra/engines/canary_program.py prints, and compares it with the catalogue's peaks and floors.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import AwareDatetime

from bench.catalog.rows import CanaryFloor, Gpu
from bench.frozen import StoredValue
from bench.machine.canary_history import HistoryFloor

MARK = "nightbench-canary"  # before each line of the program's report
Position = Literal["before", "after"]
FindGpu = Callable[[str], Gpu | None]
# The unit of each test, as in catalog/canary_floors.csv.
BANDWIDTH, PRODUCT = "GB/s", "TFLOP/s"
UNITS: Mapping[str, str] = {
    **dict.fromkeys(("memory_copy", "memory_read", "host_to_device", "link", "all_reduce", "disk_read"), BANDWIDTH),
    **dict.fromkeys(("matmul_bf16", "matmul_fp16", "matmul_fp8"), PRODUCT),
}
KEPT_SHARE_MIN = 0.9  # a machine that became 10 % slower may have been slow during the runs
SPEED_MAX = 1e9  # a million times the fastest GPU
TAIL_CHARS = 300
NAMED = 3  # results that a sentence names; the table has all


class CanaryResult(StoredValue):
    """One test of the GPU `device` (None: the CPU, or the whole machine); without a value it has a reason."""

    test: str
    device: int | None = None
    peer: int | None = None  # the other GPU of a link
    value: float | None = None  # in the test's unit, see UNITS
    reason: str | None = None


class CanaryRecord(StoredValue):
    """One canary of a lease: a file `canaries/<lease_id>-<position>.json` in the night's folder."""

    lease_id: str
    position: Position
    started_at: AwareDatetime
    duration_s: float
    torch_version: str | None = None
    gpus: tuple[str, ...] = ()  # their names as torch has them, by device
    results: tuple[CanaryResult, ...] = ()
    floors: tuple[HistoryFloor, ...] = ()  # from earlier nights, in the place of the catalogue's
    reason: str | None = None  # why the canary did not run to its end
    unfit: str | None = None  # why the machine must not be used

    @classmethod
    def not_run(cls, lease_id: str, position: Position, started_at: datetime, reason: str) -> Self:
        """The record of a canary that did not start."""
        return cls(lease_id=lease_id, position=position, started_at=started_at, duration_s=0.0, reason=reason)


@dataclass(frozen=True)
class CanaryReport:
    """What the program printed, and how it ended; `reason` is None if it ran to its end."""

    torch_version: str | None
    gpus: tuple[str, ...]
    results: tuple[CanaryResult, ...]
    reason: str | None


def read_report(output: str, ending: str) -> CanaryReport:
    """Read the program's output, whatever is printed between its lines; `ending` says how the program ended.

    A test that began and has no result gets that ending as its reason.
    """
    head: dict[str, Any] = {}
    results: dict[tuple[str, int | None, int | None], CanaryResult] = {}
    for line in _lines(output):
        result = _result(line)
        if result is not None:
            results[(result.test, result.device, result.peer)] = result
        elif "test" not in line:
            head |= line
    is_done = head.get("done") is True
    reason = None if is_done else str(head.get("reason") or f"{ending}: {_tail(output)}")
    return CanaryReport(
        torch_version=str(head["torch"]) if "torch" in head else None,
        gpus=tuple(map(str, head["gpus"])) if isinstance(head.get("gpus"), list) else (),
        results=tuple(_ended(result, ending) for result in results.values()),
        reason=reason,
    )


def _lines(output: str) -> Iterator[dict[str, Any]]:
    """Every line of the report; a driver may print before it, or after it without a line break."""
    for line in output.splitlines():
        _, mark, text = line.partition(f"{MARK} ")
        try:
            value, _ = json.JSONDecoder().raw_decode(text) if mark else (None, 0)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _result(line: Mapping[str, Any]) -> CanaryResult | None:
    """The result, or the begin, of one test; None for a line of another kind."""
    test, value = line.get("test"), line.get("value")
    device, peer = (line.get(name) for name in ("device", "peer"))
    if test not in UNITS or not all(one is None or type(one) is int for one in (device, peer)):
        return None
    reason = None if line.get("reason") is None else str(line["reason"])
    if reason is None and "value" in line:
        is_speed = isinstance(value, (int, float)) and value is not True and 0 < value < SPEED_MAX
        reason = None if is_speed else f"the program printed {value!r}, which is not a speed"
    return CanaryResult(
        test=test, device=device, peer=peer, value=value if "value" in line and reason is None else None, reason=reason
    )


def _ended(result: CanaryResult, ending: str) -> CanaryResult:
    if result.value is not None or result.reason is not None:
        return result
    return result.model_copy(update={"reason": f"{ending} during this test"})


def _tail(output: str) -> str:
    """The last words of the output that are not the report."""
    text = " ".join(line.strip() for line in output.splitlines() if MARK not in line and line.strip())
    return f"its output ends with {text[-TAIL_CHARS:]}" if text else "it printed nothing else"


def peak_of(test: str, gpu: Gpu | None) -> float | None:
    """The catalogue's peak of a test in its unit; None where the catalogue has none, as for a CPU."""
    if gpu is None:
        return None
    bandwidth = gpu.bw_tb_s * 1000
    peaks = {"memory_copy": bandwidth, "memory_read": bandwidth}
    peaks |= {"matmul_bf16": gpu.bf16_tflops, "matmul_fp16": gpu.fp16_tflops}
    return peaks.get(test) or (gpu.fp8_tflops if test == "matmul_fp8" else None)


@dataclass(frozen=True)
class Compared:
    """One result beside the catalogue's peak and its floor; None where there is none."""

    result: CanaryResult
    gpu: str | None  # as torch names it
    peak: float | None
    floor: CanaryFloor | HistoryFloor | None

    @property
    def share_of_peak(self) -> float | None:
        """The value over the peak."""
        return None if self.result.value is None or self.peak is None else self.result.value / self.peak

    @property
    def over_floor(self) -> float | None:
        """The value over the floor; below 1 the machine is unfit."""
        return None if self.result.value is None or self.floor is None else self.result.value / self.floor.floor

    @property
    def title(self) -> str:
        """The test, its device, and what it reached, for a sentence."""
        place = "" if self.result.device is None else f" of GPU {self.result.device} ({self.gpu})"
        return f"{self.result.test}{place} reached {self.result.value or 0:,.4g} {UNITS[self.result.test]}"


def compare(record: CanaryRecord, find_gpu: FindGpu, floors: Sequence[CanaryFloor]) -> tuple[Compared, ...]:
    """Each result of a canary beside the peak and the floor of its GPU; the record's own floors replace `floors`."""
    known: dict[tuple[str, str], CanaryFloor | HistoryFloor] = {(row.gpu, row.test): row for row in floors}
    known |= {(row.gpu, row.test): row for row in record.floors}
    compared = []
    for result in record.results:
        is_named = result.device is not None and result.device < len(record.gpus)
        name = record.gpus[result.device or 0] if is_named else None
        gpu = None if name is None else find_gpu(name)
        floor = None if gpu is None else known.get((gpu.gpu, result.test))
        compared.append(Compared(result, name, peak_of(result.test, gpu), floor))
    return tuple(compared)


def with_verdict(record: CanaryRecord, find_gpu: FindGpu, floors: Sequence[CanaryFloor]) -> CanaryRecord:
    """The record, marked as of an unfit machine where a result is below the floor of its GPU."""
    below = [one for one in compare(record, find_gpu, floors) if (one.over_floor or 1.0) < 1]
    if record.unfit is not None or not below:
        return record
    below.sort(key=lambda one: one.over_floor or 0.0)
    named = "; ".join(f"{one.title}, the floor is {_floor_text(one.floor)}" for one in below[:NAMED])
    more = f"; {len(below) - NAMED} more results are below" if len(below) > NAMED else ""
    return record.model_copy(update={"unfit": f"the canary is below its floor: {named}{more}; use another machine"})


def _floor_text(floor: CanaryFloor | HistoryFloor | None) -> str:
    if floor is None:
        return "unknown"
    if isinstance(floor, HistoryFloor):
        source = f"from {floor.night_count} nights on this kind of machine, median {floor.median:,.4g}"
    else:
        source = "catalog/canary_floors.csv" + ("" if floor.is_verified else ", not verified")
    return f"{floor.floor:,.4g} {UNITS[floor.test]} ({source})"
