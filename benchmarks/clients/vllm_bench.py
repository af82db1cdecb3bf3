"""`vllm bench serve` in Python, from the engine's own environment."""

from pathlib import Path

from bench.errors import EngineBuildError, NoSpaceError, UnreadableResultError
from bench.loadgen.vllm_report import read_vllm_bench
from benchmarks.clients.client import (
    POOLED,
    Client,
    ClientReport,
    ClientTask,
    Series,
    UnavailableError,
    UnreadableError,
)
from infra.engines.venv import LOCK, ensure_engine, locked_release
from infra.reporting import Say

NAME, RESULT = "vllm bench", "result.json"


def install(cache: Path, say: Say) -> Path:
    """Find the engine's environment, or build it."""
    try:
        return ensure_engine(LOCK, cache, say).vllm
    except (EngineBuildError, NoSpaceError) as error:
        raise UnavailableError(str(error)) from error


def options(task: ClientTask) -> tuple[str, ...]:
    """The options that `vllm bench serve` and its Rust version share."""
    cell = task.cell
    return (
        *("bench", "serve", "--backend", "openai-chat" if task.is_chat else "openai"),
        *("--base-url", task.url, "--endpoint", task.path),
        *("--model", "truth", "--tokenizer", str(task.tokenizer), "--dataset-name", "random"),
        *("--random-input-len", "64", "--random-output-len", str(cell.output_tokens), "--ignore-eos"),
        *("--num-prompts", str(cell.request_count), "--max-concurrency", str(cell.streams)),
        # Its ready check would be one more request that no report counts.
        *("--num-warmups", str(task.warmup_count), "--ready-check-timeout-sec", "0", "--disable-tqdm"),
        *("--save-result", "--save-detailed", "--result-dir", str(task.folder), "--result-filename", RESULT),
    )


def command(program: Path, task: ClientTask) -> tuple[str, ...]:
    """The command for a cell."""
    return (str(program), *options(task))


def report_of(folder: Path) -> ClientReport:
    """Read its result file: per request a TTFT and a list of gaps."""
    try:
        requests = read_vllm_bench((folder / RESULT).read_bytes()).requests
    except (OSError, UnreadableResultError) as error:
        raise UnreadableError(str(error)) from error
    ok = int(requests.is_ok.sum())
    return ClientReport(
        ttft_ms=requests.ttft_s[requests.is_ok] * 1e3,
        itl_ms=requests.ok_gap_s * 1e3,
        itl_metric=POOLED,
        ok=ok,
        failed=len(requests) - ok,
        output_tokens=int(requests.output_tokens.sum()),
    )


def read(folder: Path) -> Series:
    """Its one row."""
    return {NAME: report_of(folder)}


CLIENT = Client(NAME, locked_release(LOCK), install, command, read, (NAME,), is_slow=True)
