"""guidellm: keeps the first and the last token's time of a request, so that its ITL is a mean a request."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.metrics import Floats
from benchmarks.clients.client import MEANS, OFFLINE, QUIET, Asked, Client, Said, Series, UnreadableError
from benchmarks.clients.environment import TORCH, ensure_environment
from infra.reporting import Say

NAME, VERSION = "guidellm", "0.8.1"
RESULT = "result.json"


def install(cache: Path, say: Say) -> Path:
    """Install a torch that serves, so that pip has no reason to fetch one with CUDA, and then guidellm."""
    return ensure_environment(f"guidellm-{VERSION}", ((TORCH,), (f"guidellm=={VERSION}",)), cache, say)


def command(program: Path, asked: Asked) -> tuple[str, ...]:
    """Drive the cell; it has no warm-up that is not measured."""
    cell, file = asked.cell, asked.folder / RESULT
    target = f"kind=openai_http,target={asked.url},model=truth,request_format={asked.path}"
    return (
        *(str(program), "-m", "guidellm", "run", "--backend", target, "--disable-console-interactive"),
        *("--profile", f"kind=concurrent,streams={cell.streams}"),
        *("--constraint", f"kind=max_requests,count={cell.request_count}"),
        *("--data", f"kind=synthetic_text,prompt_tokens=64,output_tokens={cell.output_tokens}"),
        *("--tokenizer", f"kind=huggingface_auto,model={asked.tokenizer}", "--output", f"kind=json,path={file}"),
    )


def read(folder: Path) -> Series:
    """Its JSON report: one entry a request, good and failed apart."""
    try:
        (benchmark,) = json.loads((folder / RESULT).read_bytes())["benchmarks"]
        return {NAME: said(benchmark["requests"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"its report cannot be read: {error!r}") from error


def said(requests: dict[str, list[dict[str, Any]]]) -> Said:
    """The good requests' times; what it calls incomplete has failed too."""
    good = requests["successful"]
    return Said(
        ttft_ms=numbers(good, "time_to_first_token_ms"),
        itl_ms=numbers(good, "inter_token_latency_ms"),
        itl_metric=MEANS,
        ok=len(good),
        failed=len(requests["errored"]) + len(requests["incomplete"]),
        output_tokens=sum(row["output_tokens"] or 0 for row in good),
    )


def numbers(rows: list[dict[str, Any]], key: str) -> Floats:
    """The values that are there."""
    return np.array([row[key] for row in rows if row[key] is not None], dtype=np.float64)


# Without the variable it starts up to ten processes, on one core.
ENVIRONMENT = {**QUIET, **OFFLINE, "GUIDELLM__MAX_WORKER_PROCESSES": "1"}
CLIENT = Client(NAME, VERSION, install, command, read, (NAME,), environment=ENVIRONMENT, has_warmup=False, is_slow=True)
