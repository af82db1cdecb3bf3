"""Run the newest releases of other load tools, and the engine's own client, against the truth server; audit each.

`python -m benchmarks.peers [--tools guidellm,aiperf] [--keep FOLDER] [--twins FOLDER]`. Each run is clean, so a
rejected one is a fault of an importer or of a rule: exit 1. So is a count or a setting that was not read right.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.audit.judge import Judged
from bench.client_error.truth import Truth, read_truth
from bench.errors import CalibrationError, UnreadableResultError
from benchmarks.clients.client import UnavailableError
from benchmarks.peers.tool import Load, Task, Tool, ensure_tool, newest_version
from benchmarks.peers.tools import TOOLS
from benchmarks.peers.twins import keep_twin
from benchmarks.peers.values import Value, values_of
from benchmarks.process_tree import ClientFailedError, run_tree
from infra.loadgen.truth.run import build_server, truth_server
from infra.models.models import prepare_model
from infra.settings import Settings
from warehouse.audit import Audit, AuditOptions, audit

INPUT_TOKENS, OUTPUT_TOKENS, REQUESTS, WARMUP = 64, 32, 16, 2
LOADS = (
    Load("closed", 2, None, REQUESTS, WARMUP, INPUT_TOKENS, OUTPUT_TOKENS),
    Load("open", None, 4.0, REQUESTS, 0, INPUT_TOKENS, OUTPUT_TOKENS),
)
SERVER = ("--ttft-us", "200000", "--itl-us", "10000", "--jitter", "30", "--prompt-tokens", str(INPUT_TOKENS))
TIMEOUT_S = 240.0  # a tool may take a minute to start
REASONS = (UnavailableError, ClientFailedError, CalibrationError, UnreadableResultError)


@dataclass(frozen=True)
class Rig:
    """What every run needs."""

    server: Path
    tokenizer: Path
    cache: Path
    folder: Path  # of what the tools write
    logs: Path


def say(line: str) -> None:
    """Print progress to stderr; the table goes to stdout."""
    print(line, file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> int:
    """Print a line per tool and load; 1 where a clean run is rejected, not read right, or did not run."""
    options = read_arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` ends every started process
    tools = [tool for tool in TOOLS if not options.tools or tool.name in options.tools.split(",")]
    with tempfile.TemporaryDirectory(prefix="nightbench-peers-") as name:
        scratch = Path(name)
        cache = Settings().cache.absolute()
        model = prepare_model("generated:tiny?seed=0", scratch / "models", say).path
        rig = Rig(build_server(cache), model, cache, options.keep or scratch / "runs", scratch / "logs")
        passed = [is_right for tool in tools for is_right in run_tool(tool, rig)]
        if options.twins:
            keep_twins(rig, options.twins, (rig.folder, scratch))
    return 0 if passed and all(passed) else 1


def keep_twins(rig: Rig, into: Path, places: Sequence[Path]) -> None:
    """Keep a small copy of the folder of each run."""
    for folder in sorted(rig.folder.glob("*/")):
        keep_twin(folder, into / folder.name, places)


def read_arguments(argv: list[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--tools", default="", help=f"only these: {', '.join(tool.name for tool in TOOLS)}")
    parser.add_argument("--keep", type=Path, help="a new folder for what the tools write")
    parser.add_argument("--twins", type=Path, help="a folder for small copies of it, such as tests/data/peers")
    return parser.parse_args(argv)


def run_tool(tool: Tool, rig: Rig) -> Iterator[bool]:
    """Install the release and run every load; whether each run passed."""
    try:
        version = tool.version or newest_version(tool)
        program = ensure_tool(tool, version, rig.cache, say)
    except REASONS as error:
        print(f"{tool.name:15} not run: {error}", flush=True)
        yield False
        return
    for load in LOADS:
        head = f"{tool.name:15} {version:9} {load.name:7}"
        try:
            found, truth = run_load(tool, program, load, rig)
        except REASONS as error:
            print(f"{head} not run: {error}", flush=True)
            yield False
        else:
            values = [[*values_without(tool, judged, truth, load)] for judged in found.judged]
            print("\n".join(lines_of(head, found, values)), flush=True)
            yield is_clean(found) and all(value.is_right or not value.is_exact for row in values for value in row)


def run_load(tool: Tool, program: Path, load: Load, rig: Rig) -> tuple[Audit, Truth]:
    """Run one load, and audit every file of its folder; raises the errors of tool and server."""
    name = f"{tool.folder or tool.package}-{load.name}"
    folder, logs = rig.folder / name, rig.logs / name
    for each in (folder, logs):
        each.mkdir(parents=True)
    log = logs / "truth.log"
    load = load if tool.has_warmup else replace(load, warmup_count=0)
    with truth_server(rig.server, log, SERVER, None) as port:
        argv = tool.command(program, Task(load, f"http://127.0.0.1:{port}", rig.tokenizer, folder, logs))
        run_tree(argv, tool.environment, None, TIMEOUT_S, logs)
    return audit([str(folder)], AuditOptions()), read_truth(log.read_bytes())


def is_clean(found: Audit) -> bool:
    """Whether the files were read, and none of their rows is rejected, failed or unchecked."""
    return bool(found.judged) and found.is_clean and not found.unchecked_count


def values_without(tool: Tool, judged: Judged, truth: Truth, load: Load) -> Iterator[Value]:
    """The values of a row that the tool writes."""
    return (value for value in values_of(judged.claim, truth, load) if value.name not in tool.unwritten)


def lines_of(head: str, found: Audit, read: Sequence[Sequence[Value]]) -> Iterator[str]:
    """A line per row of the files, with the values that were not read right and the rules that failed."""
    if not found.judged:
        yield f"{head} no file was read: {'; '.join(found.left_out)}"
    for judged, values in zip(found.judged, read, strict=True):
        wrong = [value for value in values if not value.is_right]
        yield f"{head} {judged.verdict:9} {len(values) - len(wrong)} of {len(values)} values right, {row_of(judged)}"
        yield from (f"    {value_line(value)}" for value in wrong)
        yield from (f"    FAIL {each.code}: {each.message}" for each in judged.findings if each.status == "FAIL")


def row_of(judged: Judged) -> str:
    """The file of a row without its folder, and the place in it."""
    return f"{Path(judged.claim.lineage.file).name} {judged.claim.lineage.place}".strip()


def value_line(value: Value) -> str:
    """What a value was read as, and what it was."""
    read = "was not read" if value.read is None else f"was read as {value.read:g}"
    return f"{value.name} {read}, and is {value.true:g}"


if __name__ == "__main__":
    sys.exit(main())
