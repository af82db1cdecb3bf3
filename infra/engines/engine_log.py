"""Read an engine's log, and explain from it why the engine exited."""

from pathlib import Path

from bench.engines.by_name import EngineModule

TAIL_LINES = 15


def read_log(log: Path, start: int = 0) -> str:
    """The log from byte `start` on."""
    with log.open("rb") as source:
        source.seek(start)
        return source.read().decode(errors="replace")


def explain_log(engine: EngineModule, log: Path, start: int = 0) -> tuple[str, str | None]:
    """Why the engine exited, for a person, and the class of its failure; None where the log shows no known cause."""
    text = read_log(log, start)
    failure = engine.find_failure(text)
    if failure is not None:
        return f"{failure.line} [{failure.kind}: {failure.is_a.remedy}; whole log: {log}]", failure.kind
    tail = [line for line in text.splitlines() if line.strip()][-TAIL_LINES:]
    return ("its log ends with: " + " | ".join(tail) if tail else "its log is empty") + f" [whole log: {log}]", None
