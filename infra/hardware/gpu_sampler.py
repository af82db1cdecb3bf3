"""Samples the GPUs once a second by their own tool while a load runs; whatever the tool does, the load goes on."""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from bench.errors import UnreadableResultError
from bench.machine.gpu_telemetry import amd_smi, nvidia_smi, rocm_smi
from bench.machine.gpu_telemetry.sample import SHOWN_MAX, GpuSample, LineReader, TelemetryTool
from bench.printable import printable
from infra.processes.command import END_PATIENCE_S, is_there, run_tool
from infra.processes.environment import TOOLS as VARIABLES
from infra.processes.environment import child_environment

TOOLS: tuple[TelemetryTool, ...] = (amd_smi.TOOL, rocm_smi.TOOL, nvidia_smi.TOOL)
PERIOD_S = 1.0
IDENTITY_TIMEOUT_S = 20.0
CHUNK_BYTES = 1 << 16
LINE_MAX_BYTES = 1 << 16
GpuRow = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """What a tool may do before it is ended, started again, and given up."""

    silent_s: float = 15.0  # without a sample
    pause_s: float = PERIOD_S  # before it is started again
    starts: int = 6  # in a row without a sample
    barren_lines: int = 1000  # in a row without a sample
    samples: int = 200_000  # seven hours of eight GPUs, in about 100 MB
    last_s: float = 3.0  # for a sample after the end of the load


def find_tools() -> tuple[TelemetryTool, ...]:
    """The tools that this machine has, the preferred one first."""
    return tuple(tool for tool in TOOLS if is_there(tool.name))


class _Lines:
    """Splits what a pipe brings into lines; a line without an end is cut."""

    def __init__(self) -> None:
        self._pending = b""

    def split(self, chunk: bytes) -> list[str]:
        """The lines that this chunk completes; an empty chunk completes the last one."""
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        if len(self._pending) > LINE_MAX_BYTES or not chunk:
            lines, self._pending = [*lines, self._pending], b""
        return [line[:LINE_MAX_BYTES].decode(errors="replace") for line in lines]


@dataclass
class _Progress:
    """How one run of a tool goes: lines in a row without a sample, and the last unknown one."""

    barren: int = 0
    words: str = ""
    sampled_at_s: float = field(default_factory=time.monotonic)

    def note(self, samples: int, unknown: str | None) -> None:
        self.barren = 0 if samples else self.barren + 1
        self.sampled_at_s = time.monotonic() if samples else self.sampled_at_s
        self.words = f": {unknown}" if unknown else self.words


class GpuSampler:
    """Samples while its `with` block runs, on a thread of its own; a tool that ends or hangs is started again.

    A tool that refuses a command gets its next simpler one. `trouble` says in one sentence what went wrong.
    """

    def __init__(self, tools: Sequence[TelemetryTool] | None = None, limits: Limits | None = None) -> None:
        found = find_tools() if tools is None else tools
        self._commands = [(tool, command) for tool in found for command in tool.commands]
        self._limits = limits or Limits()
        self._identities: dict[str, str] = {}
        self._samples: list[tuple[float, int, GpuSample]] = []
        self._news = threading.Condition()
        self._is_over = threading.Event()
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._run, name="gpu-telemetry", daemon=True)
        self._faults = 0
        self._fault: str | None = None
        self.is_given_up = False
        self.tool: str | None = None  # the one that printed a sample

    def __enter__(self) -> Self:
        """Start, if this machine has a tool."""
        if self._commands:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop after a last sample of each GPU."""
        if self._commands:
            self._wait_for_last()
            self._is_over.set()
            os.write(self._wake_write, b"\0")
            self._thread.join()
        os.close(self._wake_read)
        os.close(self._wake_write)

    @property
    def rows(self) -> list[GpuRow]:
        """The samples so far as rows of telemetry.parquet, oldest first."""
        return [
            {
                "at": datetime.fromtimestamp(at_s, UTC),
                "monotonic_ns": at_ns,
                **{f"gpu_{name}": value for name, value in asdict(sample).items()},
            }
            for at_s, at_ns, sample in self._samples
        ]

    @property
    def trouble(self) -> str | None:
        """What went wrong with the telemetry, as one sentence; None where nothing did or no tool is here."""
        if self._fault is None:
            return (
                None if self._samples or not self._commands else "the GPU tool printed no sample before the load ended"
            )
        again = f", and failed {self._faults} times in all" if self._faults > 1 else ""
        return f"{self._fault}{again}{'; it was given up' if self.is_given_up else ''}"

    def _wait_for_last(self) -> None:
        with self._news:
            known = len(self._samples)
            gpus = len({sample.index for _, _, sample in self._samples})
            if known:
                self._news.wait_for(
                    lambda: self.is_given_up or len(self._samples) >= known + gpus, timeout=self._limits.last_s
                )

    def _run(self) -> None:
        at = starts = 0
        while not self._is_over.is_set():
            tool, command = self._commands[at]
            began, known = time.monotonic(), len(self._samples)
            fault = self._follow(tool, command)
            if self._is_over.is_set():
                return
            starts = 0 if len(self._samples) > known else starts + 1
            if not self._samples:
                at = (at + 1) % len(self._commands)
            if fault is not None:
                self._fault, self._faults = fault, self._faults + 1
            if starts >= max(self._limits.starts, len(self._commands)) or len(self._samples) >= self._limits.samples:
                with self._news:
                    self.is_given_up = True
                    self._news.notify_all()
                return
            is_due_at = began + PERIOD_S if fault is None else time.monotonic() + self._limits.pause_s
            self._is_over.wait(max(0.0, is_due_at - time.monotonic()))

    def _follow(self, tool: TelemetryTool, command: Sequence[str]) -> str | None:
        """Read one run of a tool to its end; what was wrong with it, None for a run that ended as it should."""
        reader = tool.reader(self._identity(tool))
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=child_environment({"PYTHONUNBUFFERED": "1"}, also=VARIABLES),
                start_new_session=True,
            )
        except OSError as error:
            return f"{command[0]} could not be started: {error.strerror}"
        try:
            return self._read(process, tool, reader)
        finally:
            _end(process)

    def _identity(self, tool: TelemetryTool) -> str:
        if tool.identity is None:
            return ""
        if tool.name not in self._identities:
            self._identities[tool.name] = run_tool(tool.identity, timeout_s=IDENTITY_TIMEOUT_S).out
        return self._identities[tool.name]

    def _read(self, process: subprocess.Popen[bytes], tool: TelemetryTool, reader: LineReader) -> str | None:
        """Read lines until the tool ends, hangs, prints no samples, or the load is over."""
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        pipe, lines, progress = process.stdout.fileno(), _Lines(), _Progress()
        while True:
            left_s = max(0.0, progress.sampled_at_s + self._limits.silent_s - time.monotonic())
            ready, _, _ = select.select([pipe, self._wake_read], [], [], left_s)
            if self._wake_read in ready:
                return None
            if not ready:
                return f"{tool.name} printed no sample for {self._limits.silent_s:g} s{progress.words}"
            chunk = os.read(pipe, CHUNK_BYTES)
            for line in lines.split(chunk):
                progress.note(*self._take(line, tool, reader))
            if not chunk:
                return self._ended(process, tool, progress.words)
            if progress.barren > self._limits.barren_lines:
                return f"{tool.name} printed {progress.barren} lines in a row without a sample{progress.words}"
            if len(self._samples) >= self._limits.samples:
                return f"{tool.name} was ended after {self._limits.samples} samples"

    def _take(self, line: str, tool: TelemetryTool, reader: LineReader) -> tuple[int, str | None]:
        """Keep the samples of a line: their count, and what is unknown about the line."""
        try:
            found = reader.read(line)
        except UnreadableResultError as error:
            return 0, printable(str(error))[: 2 * SHOWN_MAX]
        at = (time.time(), time.monotonic_ns())
        if found and not self._samples:
            # An older tool that refused the richer commands is not at fault.
            self.tool, self._fault, self._faults = tool.name, None, 0
        with self._news:
            self._samples += [(*at, sample) for sample in found]
            self._news.notify_all()
        return len(found), None

    def _ended(self, process: subprocess.Popen[bytes], tool: TelemetryTool, words: str) -> str | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_PATIENCE_S)
        if tool.ends_each_time and process.returncode == 0:
            return None
        return f"{tool.name} ended with exit code {process.returncode}{words}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a tool and what it started; one that sleeps in the kernel on a wedged GPU is left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_PATIENCE_S)
    if process.stdout is not None:
        process.stdout.close()
