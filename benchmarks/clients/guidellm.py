"""guidellm: it keeps only the first and last token's time of a request, so its ITL is a mean per request."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.metrics import Floats
from benchmarks.clients.client import MEANS, OFFLINE, QUIET, Client, ClientReport, ClientTask, Series, UnreadableError
from benchmarks.clients.environment import TORCH, ensure_environment
from infra.reporting import Say

NAME, VERSION = "guidellm", "0.8.1"
RESULT = "result.json"


def install(cache: Path, say: Say) -> Path:
    """Install a CPU build of torch first, so that pip downloads none with CUDA, and then guidellm."""
    return ensure_environment(f"guidellm-{VERSION}", ((TORCH,), (f"guidellm=={VERSION}",)), cache, say)


def command(program: Path, task: ClientTask) -> tuple[str, ...]:
    """The command for a cell; guidellm measures its warm-up too."""
    cell, file = task.cell, task.folder / RESULT
    target = f"kind=openai_http,target={task.url},model=truth,request_format={task.path}"
    return (
        *(str(program), "-m", "guidellm", "run", "--backend", target, "--disable-console-interactive"),
        *("--profile", f"kind=concurrent,streams={cell.streams}"),
        *("--constraint", f"kind=max_requests,count={cell.request_count}"),
        *("--data", f"kind=synthetic_text,prompt_tokens=64,output_tokens={cell.output_tokens}"),
        *("--tokenizer", f"kind=huggingface_auto,model={task.tokenizer}", "--output", f"kind=json,path={file}"),
    )


def read(folder: Path) -> Series:
    """Read its JSON report: one entry per request, good and failed ones apart."""
    try:
        (benchmark,) = json.loads((folder / RESULT).read_bytes())["benchmarks"]
        return {NAME: report_of(benchmark["requests"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"its report cannot be read: {error!r}") from error


def report_of(requests: dict[str, list[dict[str, Any]]]) -> ClientReport:
    """The good requests' times; incomplete requests count as failed."""
    good = requests["successful"]
    return ClientReport(
        ttft_ms=numbers(good, "time_to_first_token_ms"),
        itl_ms=numbers(good, "inter_token_latency_ms"),
        itl_metric=MEANS,
        ok=len(good),
        failed=len(requests["errored"]) + len(requests["incomplete"]),
        output_tokens=sum(row["output_tokens"] or 0 for row in good),
    )


def numbers(rows: list[dict[str, Any]], key: str) -> Floats:
    """The values that are not null."""
    return np.array([row[key] for row in rows if row[key] is not None], dtype=np.float64)


# Without this variable guidellm starts up to ten processes on one core.
ENVIRONMENT = {**QUIET, **OFFLINE, "GUIDELLM__MAX_WORKER_PROCESSES": "1"}
CLIENT = Client(NAME, VERSION, install, command, read, (NAME,), environment=ENVIRONMENT, has_warmup=False, is_slow=True)
