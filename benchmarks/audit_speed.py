"""The audit of a million requests, of ten thousand published rows and of one small file: how long, in how much memory.

`python -m benchmarks.audit_speed [--requests N] [--gaps N] [--rows N]`. Each audit is the command itself, from shell to
shell, beside a baseline run right after it: the standard library reading the same file, or an import of pandas.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

SMALL = Path(__file__).parents[1] / "tests" / "data" / "vllm-results" / "vllm_bench_serve.json"
READ_JSON = "import json, sys; json.load(open(sys.argv[1]))"
READ_CSV = "import csv, sys; list(csv.DictReader(open(sys.argv[1])))"
GIB = 1 << 30
STREAMS, BLOCK = 1000, 50_000
REPEATS = 5


@dataclass(frozen=True)
class Took:
    """What one process took."""

    wall_s: float
    peak_bytes: int


def run(*argv: str) -> Took:
    """Run a process to its end; it may exit 1, which says that something failed the audit."""
    started = time.monotonic()
    with Path(os.devnull).open("wb") as nowhere:
        process = subprocess.Popen(argv, stdout=nowhere)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(argv)} exited with {process.returncode}")
    return Took(time.monotonic() - started, used.ru_maxrss * 1024)


def audit(path: Path) -> Took:
    """`nightbench audit` of one file."""
    return run(str(Path(sys.executable).with_name("nightbench")), "audit", str(path))


def write_run(path: Path, requests: int, gaps: int) -> None:
    """A detailed file of `vllm bench serve`: a closed loop of STREAMS in lock step, times that come out right."""
    random = np.random.default_rng(1)
    gap_s = 0.02 * random.uniform(0.95, 1.05, (requests, gaps))
    ttft_s = 0.2 * random.uniform(0.9, 1.1, requests)
    e2el_s = ttft_s + gap_s.sum(axis=1)
    slots = e2el_s.reshape(-1, STREAMS)
    start_s = 1000.0 + np.vstack([np.zeros(STREAMS), np.cumsum(slots, axis=0)[:-1]]).ravel()
    duration = float((start_s + e2el_s).max() - 1000.0)
    tokens = requests * (gaps + 1)
    totals = {
        "date": '"20261122-000000"', "backend": '"openai"', "model_id": '"m"', "num_prompts": requests,
        "request_rate": '"inf"', "max_concurrency": STREAMS, "duration": duration, "completed": requests, "failed": 0,
        "total_input_tokens": requests * 128, "total_output_tokens": tokens,
        "request_throughput": requests / duration, "output_throughput": tokens / duration,
        "total_token_throughput": (tokens + requests * 128) / duration,
        "mean_ttft_ms": ttft_s.mean() * 1e3, "median_ttft_ms": float(np.median(ttft_s)) * 1e3,
        "mean_e2el_ms": e2el_s.mean() * 1e3, "median_e2el_ms": float(np.median(e2el_s)) * 1e3,
    }  # fmt: skip
    with path.open("w") as out:
        out.write("{" + ", ".join(f'"{name}": {value}' for name, value in totals.items()))
        _write_list(out, "input_lens", (str(128) for _ in range(requests)))
        _write_list(out, "output_lens", (str(gaps + 1) for _ in range(requests)))
        _write_list(out, "start_times", map(repr, start_s.tolist()))
        _write_list(out, "ttfts", map(repr, ttft_s.tolist()))
        _write_list(
            out, "itls", (str(row) for at in range(0, requests, BLOCK) for row in gap_s[at : at + BLOCK].tolist())
        )
        _write_list(out, "errors", ('""' for _ in range(requests)))
        out.write("}")


def _write_list(out: TextIO, name: str, values: Iterable[str]) -> None:
    out.write(f', "{name}": [')
    out.writelines(value if at == 0 else f", {value}" for at, value in enumerate(values))
    out.write("]")


COLUMNS = (
    *("source", "source_date", "url_or_title", "system", "gpu", "gpu_count", "provider", "model", "precision"),
    *("framework", "framework_version", "tp", "isl", "osl", "concurrency_or_batch", "num_prompts", "metric", "value"),
    *("unit", "notes"),
)


def write_table(path: Path, rows: int) -> None:
    """A table of claims with the columns of catalog/published.csv; two rows a load."""
    with path.open("w", newline="") as out:
        table = csv.writer(out)
        table.writerow(COLUMNS)
        for at in range(rows):
            load, is_total = divmod(at, 2)
            output = 20.0 * (1 + load % 64)
            metric = "total_token_throughput" if is_total else "output_throughput"
            asked = ("8", "128", "2048", str(1 + load % 64), str(10 * (1 + load % 64)))
            row = ("made", "2026-11-22", f"table {load}", "8x MI300X", "AMD Instinct MI300X 192GB", "8", "nobody")
            model = ("meta-llama/Llama-3.1-70B-Instruct", "FP8", "vLLM", "0.32.0")
            value = output * (1 + 128 / 2048) if is_total else output
            table.writerow((*row, *model, *asked, metric, f"{value:.2f}", "tok/s", ""))


def main(argv: list[str] | None = None) -> None:
    """Print what each audit took, beside its bar and its baseline."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--gaps", type=int, default=8)
    parser.add_argument("--rows", type=int, default=10_000)
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="nightbench-audit-") as name:
        run_file, table_file = Path(name) / "run.json", Path(name) / "claims.csv"
        write_run(run_file, asked.requests, asked.gaps)
        write_table(table_file, asked.rows)
        _print(f"{asked.requests} requests, {run_file.stat().st_size / 1e6:.0f} MB", 20.0, run_file, READ_JSON)
        _print(f"{asked.rows} published rows", 10.0, table_file, READ_CSV)
    small = [(audit(SMALL).wall_s, run(sys.executable, "-c", "import pandas").wall_s) for _ in range(REPEATS)]
    ours, pandas = (sorted(each)[REPEATS // 2] for each in zip(*small, strict=True))
    said = "reached" if ours <= 1.5 else "missed"  # noqa: PLR2004 - the bar
    print(f"one small file: {ours:.2f} s (bar 1.5 s), {said}; import pandas {pandas:.2f} s, ratio {ours / pandas:.2f}")


def _print(what: str, bar_s: float, path: Path, baseline: str) -> None:
    ours, plain = audit(path), run(sys.executable, "-c", baseline, str(path))
    said = "reached" if ours.wall_s <= bar_s and ours.peak_bytes <= 2 * GIB else "missed"
    print(
        f"{what}: {ours.wall_s:.1f} s (bar {bar_s:.0f} s), peak {ours.peak_bytes / GIB:.2f} GiB (bar 2 GiB), {said}; "
        f"standard library alone {plain.wall_s:.1f} s, ratio {ours.wall_s / plain.wall_s:.1f}"
    )


if __name__ == "__main__":
    main()
