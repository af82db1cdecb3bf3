"""SGLang's serving client in Rust: one library of the sglang wheel, which needs no torch."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clients.client import (
    POOLED,
    Client,
    ClientReport,
    ClientTask,
    Series,
    UnavailableError,
    UnreadableError,
)
from benchmarks.clients.environment import ensure_environment
from infra.reporting import Say

NAME, VERSION = "sglang-bench", "0.5.23"
RESULT = "result.jsonl"
# `import sglang` would ask for torch; the library itself does not.
START = """
import glob, importlib.util, sys, sysconfig
place = sysconfig.get_paths()["purelib"] + "/sglang/srt/rust_extensions/_bench.*.so"
spec = importlib.util.spec_from_file_location("_bench", glob.glob(place)[0])
library = importlib.util.module_from_spec(spec)
spec.loader.exec_module(library)
library.run_argv(["sglang-bench", *sys.argv[1:]])
"""


def install(cache: Path, say: Say) -> Path:
    """Install the wheel without dependencies; its library fits one version of CPython."""
    if sys.version_info[:2] != (3, 11):
        raise UnavailableError(f"its library is for CPython 3.11, and this is {sys.version.split()[0]}")
    return ensure_environment(f"sglang-{VERSION}", (("--no-deps", f"sglang=={VERSION}"),), cache, say)


def command(program: Path, task: ClientTask) -> tuple[str, ...]:
    """The command for a cell, with one thread for its one core."""
    cell = task.cell
    return (
        *(
            str(program),
            "-c",
            START,
            "--backend",
            "vllm-chat" if task.is_chat else "vllm",
            "--base-url",
            task.url,
            "--model",
            "truth",
        ),
        *("--tokenizer", str(task.tokenizer), "--dataset-name", "random-ids", "--random-range-ratio", "1"),
        *("--random-input-len", "64", "--random-output-len", str(cell.output_tokens)),
        *("--num-prompts", str(cell.request_count), "--max-concurrency", str(cell.streams)),
        *("--warmup-requests", str(task.warmup_count), "--worker-threads", "1", "--disable-tqdm"),
        *("--output-file", str(task.folder / RESULT), "--output-details", "--disable-retokenize"),
    )


def read(folder: Path) -> Series:
    """Read its line of results: per request a TTFT and a list of gaps, or an error text."""
    try:
        return {NAME: report_of(json.loads((folder / RESULT).read_text().splitlines()[-1]))}
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise UnreadableError(f"its report cannot be read: {error!r}") from error


def report_of(raw: dict[str, Any]) -> ClientReport:
    """The requests without an error text."""
    good = [at for at, error in enumerate(raw["errors"]) if not error]
    gaps = [np.array(raw["itls"][at], dtype=np.float64) for at in good]
    return ClientReport(
        ttft_ms=np.array([raw["ttfts"][at] for at in good], dtype=np.float64) * 1e3,
        itl_ms=np.concatenate([*gaps, np.empty(0)]) * 1e3,
        itl_metric=POOLED,
        ok=len(good),
        failed=len(raw["errors"]) - len(good),
        output_tokens=sum(raw["output_lens"][at] for at in good),
    )


CLIENT = Client(NAME, VERSION, install, command, read, (NAME,))
