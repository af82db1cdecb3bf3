"""aiperf: about ten processes; it prints the mean ITL per request, and its records hold every gap."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clients.client import POOLED, QUIET, Client, ClientReport, ClientTask, Series, UnreadableError
from benchmarks.clients.environment import ensure_environment
from infra.reporting import Say

NAME, VERSION = "aiperf", "0.13.0"
FOLDER, RECORDS = "report", "profile_export.jsonl"


def install(cache: Path, say: Say) -> Path:
    """Install aiperf from the package registry."""
    return ensure_environment(f"aiperf-{VERSION}", ((f"aiperf=={VERSION}",),), cache, say)


def command(program: Path, task: ClientTask) -> tuple[str, ...]:
    """The command for a cell; the server counts tokens, which saves aiperf the CPU time."""
    cell, warmup = task.cell, task.warmup_count
    return (
        *(str(program), "-m", "aiperf", "profile", "-m", "truth", "--url", task.url, "--streaming"),
        *(
            "--endpoint-type",
            "chat" if task.is_chat else "completions",
            "--tokenizer",
            str(task.tokenizer),
            "--use-server-token-count",
        ),
        *("--concurrency", str(cell.streams), "--request-count", str(cell.request_count)),
        *(("--warmup-request-count", str(warmup)) if warmup else ()),
        *("--isl", "64", "--osl", str(cell.output_tokens), "--extra-inputs", "ignore_eos:true"),
        *("--no-server-metrics", "--no-gpu-telemetry", "--ui", "none"),
        *("--output-artifact-dir", str(task.folder / FOLDER)),
    )


def read(folder: Path) -> Series:
    """Read its records, one line per request."""
    try:
        lines = (folder / FOLDER / RECORDS).read_text().splitlines()
        return {NAME: report_of(json.loads(line) for line in lines)}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"its report cannot be read: {error!r}") from error


def report_of(records: Iterable[dict[str, Any]]) -> ClientReport:
    """The measured requests; a record with an error has failed."""
    measured = [row for row in records if row["metadata"]["benchmark_phase"] == "profiling"]
    good = [row["metrics"] for row in measured if not row.get("error")]
    gaps = [np.array(values(metrics, "inter_chunk_latency"), dtype=np.float64) for metrics in good]
    return ClientReport(
        ttft_ms=np.array([metrics["time_to_first_token"]["value"] for metrics in good], dtype=np.float64),
        itl_ms=np.concatenate([*gaps, np.empty(0)]),
        itl_metric=POOLED,
        ok=len(good),
        failed=len(measured) - len(good),
        output_tokens=sum(metrics["usage_completion_tokens"]["value"] for metrics in good),
    )


def values(metrics: dict[str, Any], name: str) -> list[float]:
    """The list of a metric; a response of one token has no gaps."""
    return list(metrics[name]["value"]) if name in metrics else []


# With the OFFLINE variables it rejects a tokenizer in a local folder.
CLIENT = Client(NAME, VERSION, install, command, read, (NAME,), environment=QUIET, is_slow=True)
