"""Read an engine's log, and explain from it and the kernel's log why the engine exited."""

import re
from pathlib import Path

from bench.engines.failures import Failure
from bench.engines.module import EngineModule
from infra.engines.kernel_log import KernelMark, failure_since

TAIL_LINES = 15
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def read_log(log: Path, start: int = 0) -> str:
    """The log from byte `start` on, without colours: some releases of vLLM write them into files, too."""
    with log.open("rb") as source:
        source.seek(start)
        return _COLOUR.sub("", source.read().decode(errors="replace"))


def explain_log(
    engine: EngineModule, log: Path, start: int = 0, mark: KernelMark | None = None
) -> tuple[str, str | None]:
    """Why the engine exited, for a person, and the class of its failure; None where the log shows no known cause.

    `mark`: since when the kernel's log counts, where the engine's own shows only that a process ended.
    """
    text = read_log(log, start)
    failure = engine.find_failure(text)
    if mark is not None and _only_ended(failure):
        failure = failure_since(mark) or failure
    if failure is not None:
        return f"{failure.line} [{failure.kind}: {failure.is_a.remedy}; whole log: {log}]", failure.kind
    tail = [line for line in text.splitlines() if line.strip()][-TAIL_LINES:]
    return ("its log ends with: " + " | ".join(tail) if tail else "its log is empty") + f" [whole log: {log}]", None


def _only_ended(failure: Failure | None) -> bool:
    """Whether a log shows no more than the end of a process: nothing, an echo, or SIGKILL."""
    return failure is None or failure.is_a.weight == "echo" or failure.kind == "killed"
