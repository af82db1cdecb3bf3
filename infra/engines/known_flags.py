"""Ask an engine of this computer which flags it knows, and refuse those of a suite that it does not."""

import os
from pathlib import Path

from bench.engines.help_flags import flags_in_help, unknown_flags
from bench.engines.module import EngineModule
from bench.errors import ServerStartError
from infra.processes.command import run_tool

HELP_TIMEOUT_S = 300.0  # vLLM imports torch first: 11 s of CPU time


def require_known_flags(module: EngineModule, executable: Path, flags: tuple[str, ...]) -> None:
    """Raise ServerStartError if the engine does not list one of these flags, with the nearest that it lists.

    Its help is cached beside the executable, so it runs once. An engine without a help text refuses unknown flags by
    itself.
    """
    known = flags_in_help(_help(module, executable)) if flags else frozenset()
    wrong = list(unknown_flags(flags, known)) if known else []
    if wrong:
        error = ServerStartError(f"engine.flags: {'; '.join(wrong)} [{executable}]; mend the flag in the suite")
        error.failure = "bad_configuration"
        raise error


def _help(module: EngineModule, executable: Path) -> str:
    kept = executable.with_name(f"{executable.name}.help")
    if kept.exists():
        return kept.read_text("utf-8")
    asked = run_tool([str(executable), *module.HELP], timeout_s=HELP_TIMEOUT_S)
    if not asked.is_good:
        return ""
    unfinished = kept.with_name(f".{kept.name}.{os.getpid()}")
    unfinished.write_text(asked.out, "utf-8")
    unfinished.replace(kept)
    return asked.out
