"""The program of the canary: the engine's own Python runs it, so it imports nothing but torch and the standard library.

It gets its options as JSON and prints one line of JSON, after MARK, when a test begins and when it has a result. A test
that raises has a reason in place of a value. Python 3.10 and later can run it.
"""

import importlib
import json
import mmap
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

MARK = "nightbench-canary"
MIB, GIB = 1 << 20, 1 << 30
CALLS = 3  # of the work between two readings of the clock
# Larger than the caches (256 MiB on MI300X), and matrices that fill the card; both small on a CPU, to take a moment.
GPU_BYTES, GPU_SIDE, LINK_BYTES = 2 * GIB, 8192, 256 * MIB
CPU_BYTES, CPU_SIDE = 64 * MIB, 256
DISK_BLOCK, DISK_BYTES = 8 * MIB, 4 * GIB
REASON_CHARS = 300


def say(**values: Any) -> None:
    """Print one line of the report at once, so that it outlives a crash."""
    sys.stdout.write(f"{MARK} {json.dumps(values)}\n")
    sys.stdout.flush()


def measure(work: Callable[[], float], test: str, **where: int) -> None:
    """Run one test and report its value, or why it has none."""
    say(test=test, begins=True, **where)
    try:
        value = work()
    except Exception as error:  # noqa: BLE001 - whatever a test raises is its result
        text = " ".join(str(error).split())[:REASON_CHARS]
        say(test=test, reason=f"{type(error).__name__}: {text}", **where)
    else:
        say(test=test, value=value, **where)


def per_second(work: Callable[[], object], synchronize: Callable[[], object], amount: float, seconds: float) -> float:
    """How much of `amount` a second this work does: the median of all that fit into `seconds`, after one warm-up."""
    work()
    synchronize()
    rates: list[float] = []
    until = time.perf_counter() + seconds
    while not rates or time.perf_counter() < until:
        began = time.perf_counter()
        for _ in range(CALLS):
            work()
        synchronize()
        rates.append(CALLS * amount / (time.perf_counter() - began))
    return statistics.median(rates)


def read_disk(folder: Path, seconds: float) -> float:
    """GB/s of reading the largest file below a folder in order, past the page cache."""
    file = max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    block = mmap.mmap(-1, DISK_BLOCK)  # direct reads need aligned memory
    handle = os.open(file, os.O_RDONLY | os.O_DIRECT)
    try:
        done, began = 0, time.perf_counter()
        while done < DISK_BYTES and time.perf_counter() - began < seconds:
            count = os.preadv(handle, [block], done)
            done += count
            if count < DISK_BLOCK:
                break
        return done / (time.perf_counter() - began) / 1e9
    finally:
        os.close(handle)


class Device:
    """One GPU, or the CPU, and the tests of it."""

    def __init__(self, torch: Any, index: int | None, seconds: float) -> None:
        self._torch, self._seconds = torch, seconds
        self._on = "cpu" if index is None else f"cuda:{index}"
        self._bytes, self._side = (CPU_BYTES, CPU_SIDE) if index is None else (GPU_BYTES, GPU_SIDE)
        self._index = index

    def _synchronize(self) -> None:
        if self._index is not None:
            self._torch.cuda.synchronize(self._index)

    def _rate(self, work: Callable[[], object], amount: float) -> float:
        return per_second(work, self._synchronize, amount, self._seconds)

    def _empty(self, count: int) -> Any:
        return self._torch.ones(count // 4, dtype=self._torch.float32, device=self._on)

    def memory_copy(self) -> float:
        """GB/s of its memory, read and written."""
        source, target = self._empty(self._bytes), self._empty(self._bytes)
        return self._rate(lambda: target.copy_(source), 2 * self._bytes / 1e9)

    def memory_read(self) -> float:
        """GB/s of its memory, read by a sum."""
        source = self._empty(self._bytes)
        return self._rate(source.sum, self._bytes / 1e9)

    def matmul(self, precision: str) -> float:
        """TFLOP/s of a square matrix product."""
        torch, side = self._torch, self._side
        one, other = (torch.randn(side, side, device=self._on, dtype=torch.bfloat16) for _ in range(2))
        amount = 2 * side**3 / 1e12
        if precision != "fp8":
            kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[precision]
            one, other = one.to(kind), other.to(kind)
            return self._rate(lambda: one @ other, amount)
        kind, scale = self._fp8(), torch.ones((), device=self._on)
        one, other = one.to(kind), other.to(kind).t()  # the second by columns, as the kernels want it
        return self._rate(
            lambda: torch._scaled_mm(one, other, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16),  # noqa: SLF001 - torch has no public name for it
            amount,
        )

    def _fp8(self) -> Any:
        """The FP8 of this GPU: CDNA3 has its own."""
        properties = None if self._index is None else self._torch.cuda.get_device_properties(self._index)
        is_cdna3 = str(getattr(properties, "gcnArchName", "")).startswith("gfx94")
        return self._torch.float8_e4m3fnuz if is_cdna3 else self._torch.float8_e4m3fn

    def host_to_device(self) -> float:
        """GB/s from pinned memory of the host."""
        source = self._torch.ones(LINK_BYTES // 4, dtype=self._torch.float32).pin_memory()
        target = self._empty(LINK_BYTES)
        return self._rate(lambda: target.copy_(source, non_blocking=True), LINK_BYTES / 1e9)

    def link(self, peer: int) -> float:
        """GB/s to another GPU."""
        source = self._empty(LINK_BYTES)
        target = self._torch.empty_like(source, device=f"cuda:{peer}")
        return self._rate(lambda: target.copy_(source), LINK_BYTES / 1e9)


def all_reduce(torch: Any, count: int, seconds: float) -> float:
    """GB/s of bus bandwidth, as nccl-tests count it: 2 (n - 1) / n of the bytes over the time."""
    parts = [torch.ones(LINK_BYTES // 4, dtype=torch.float32, device=f"cuda:{index}") for index in range(count)]

    def synchronize() -> None:
        for index in range(count):
            torch.cuda.synchronize(index)

    amount = 2 * (count - 1) / count * LINK_BYTES / 1e9
    return per_second(lambda: torch.cuda.nccl.all_reduce(parts), synchronize, amount, seconds)


def tests_of(device: Device, index: int | None) -> dict[str, Callable[[], float]]:
    """The tests of one device by name; a CPU has no link to its host."""
    return {
        "memory_copy": device.memory_copy,
        "memory_read": device.memory_read,
        **{f"matmul_{precision}": partial(device.matmul, precision) for precision in ("bf16", "fp16", "fp8")},
        **({} if index is None else {"host_to_device": device.host_to_device}),
    }


def run_tests(torch: Any, seconds: float) -> None:
    """Every test of every device: all GPUs, or the CPU where torch has none."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    say(torch=str(torch.__version__), gpus=[torch.cuda.get_device_name(index) for index in range(count)])
    if not count:
        for test, work in tests_of(Device(torch, None, seconds), None).items():
            measure(work, test)
    for index in range(count):
        device = Device(torch, index, seconds)
        for test, work in tests_of(device, index).items():
            measure(work, test, device=index)
            torch.cuda.empty_cache()  # the next test, or the server, has room then
        for peer in range(count):
            if peer != index:
                measure(partial(device.link, peer), "link", device=index, peer=peer)
        torch.cuda.empty_cache()
    if count > 1:
        measure(lambda: all_reduce(torch, count, seconds), "all_reduce")


def main() -> None:
    """Run every test; the options are the JSON of the first argument."""
    options = json.loads(sys.argv[1])
    seconds = float(options["seconds"])
    measure(lambda: read_disk(Path(options["folder"]), seconds), "disk_read")
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        say(reason=f"torch cannot be imported by {sys.executable}: {error}")
        return
    run_tests(torch, seconds)
    say(done=True)


if __name__ == "__main__":
    main()
