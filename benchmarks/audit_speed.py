"""Wall time and peak memory of `nightbench audit`: of a million requests, ten thousand published rows, one small file.

Each audit is the whole command, and its baseline runs right after it: the standard library that reads the same file, or
an import of pandas.
"""

import csv
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TextIO

import numpy as np

from benchmarks.bars import Bar, Benchmark, Measured
from benchmarks.process_use import GIB, ProcessUse, run
from benchmarks.recorded import ROOT

SMALL = ROOT / "tests" / "data" / "vllm-results" / "vllm_bench_serve.json"
READ_JSON = "import json, sys; json.load(open(sys.argv[1]))"
IMPORT = "import pandas"
READ_CSV = "import csv, sys; list(csv.DictReader(open(sys.argv[1])))"
REQUESTS, GAPS, ROWS = 1_000_000, 8, 10_000
STREAMS, BLOCK = 1000, 50_000
TABLES, WIDTH, WIDE_ROWS = 20, 32, 400
REPEATS = 5

REQUESTS_S = Bar("audit_speed.requests_s", f"audit of {REQUESTS:,} requests", "s", 20.0, baseline="json.load")
REQUESTS_GIB = Bar("audit_speed.requests_gib", "its peak memory", "GiB", 2.0)
ROWS_S = Bar("audit_speed.rows_s", f"audit of {ROWS:,} published rows", "s", 10.0, baseline="csv.DictReader")
PAGE_S = Bar("audit_speed.page_s", f"audit of a page with {TABLES} tables", "s", 2.0, baseline="import pandas")
WIDE_S = Bar(
    "audit_speed.wide_s", f"audit of a table of {WIDTH} columns, {WIDE_ROWS} rows", "s", 5.0, baseline="import pandas"
)
SMALL_S = Bar(
    "audit_speed.small_s", f"audit of one small file, median of {REPEATS}", "s", 1.5, baseline="import pandas"
)
STARTUP_S = Bar(
    "audit_speed.startup_s",
    f"audit start-up: one small file, quickest of {REPEATS}",
    "s",
    0.8,
    baseline="import pandas",
)


def audit(path: Path) -> ProcessUse:
    """`nightbench audit` of one file."""
    return run(str(Path(sys.executable).with_name("nightbench")), "audit", str(path))


def write_run(path: Path, requests: int, gaps: int) -> None:
    """Write a detailed result of `vllm bench serve`: a closed loop of STREAMS in lock step, with consistent times."""
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
    """Write a table of claims with the columns of catalog/published.csv, two rows for each load."""
    with path.open("w", newline="") as out:
        table = csv.writer(out)
        table.writerow(COLUMNS)
        for at in range(rows):
            load, is_total = divmod(at, 2)
            output = 20.0 * (1 + load % 64)
            metric = "total_token_throughput" if is_total else "output_throughput"
            load_shape = ("8", "128", "2048", str(1 + load % 64), str(10 * (1 + load % 64)))
            row = ("synthetic", "2026-11-22", f"table {load}", "8x MI300X", "AMD Instinct MI300X 192GB", "8", "none")
            model = ("meta-llama/Llama-3.1-70B-Instruct", "FP8", "vLLM", "0.32.0")
            value = output * (1 + 128 / 2048) if is_total else output
            table.writerow((*row, *model, *load_shape, metric, f"{value:.2f}", "tok/s", ""))


def write_page(path: Path) -> None:
    """Write a page of TABLES tables of twelve rows: a sweep over concurrency, whose rates follow from one another."""
    head = "".join(f"<th>{name}</th>" for name in ("Concurrency", "Output tok/s", "Total tok/s", "Mean TTFT (ms)"))
    rows = "".join(
        f"<tr><td>{load}</td><td>{20 * load}</td><td>{40 * load}</td><td>{100 + load}</td></tr>"
        for load in range(1, 13)
    )
    tables = (f"<h2>Llama-3.1-8B, run {at}</h2><table><tr>{head}</tr>{rows}</table>" for at in range(TABLES))
    path.write_text(f"<html><body>{''.join(tables)}</body></html>")


def write_wide(path: Path) -> None:
    """Write a table of random numbers, of whose columns none follows from others: every relation is tried in vain."""
    random = np.random.default_rng(1)
    with path.open("w", newline="") as out:
        table = csv.writer(out)
        table.writerow(("Model", "Output tok/s", *(f"metric {at}" for at in range(2, WIDTH))))
        for numbers in random.uniform(1, 99, (WIDE_ROWS, WIDTH - 1)):
            table.writerow(("Llama-3.1-8B", *(f"{number:.2f}" for number in numbers)))


def beside(path: Path, baseline: str) -> tuple[ProcessUse, float]:
    """The audit of a file, and how many times the wall time of the baseline it takes."""
    ours, plain = audit(path), run(sys.executable, "-c", baseline, str(path))
    return ours, ours.wall_s / plain.wall_s


def measure() -> Mapping[str, Measured]:
    """Write the files and audit each."""
    with tempfile.TemporaryDirectory(prefix="nightbench-audit-") as name:
        run_file, table_file = Path(name) / "run.json", Path(name) / "claims.csv"
        write_run(run_file, REQUESTS, GAPS)
        write_table(table_file, ROWS)
        requests, requests_ratio = beside(run_file, READ_JSON)
        rows, rows_ratio = beside(table_file, READ_CSV)
        page_file, wide_file = Path(name) / "page.html", Path(name) / "wide.csv"
        write_page(page_file)
        write_wide(wide_file)
        page, page_ratio = beside(page_file, IMPORT)
        wide, wide_ratio = beside(wide_file, IMPORT)
    pairs = [(audit(SMALL).wall_s, run(sys.executable, "-c", "import pandas").wall_s) for _ in range(REPEATS)]
    ours, pandas = (sorted(each) for each in zip(*pairs, strict=True))
    middle = REPEATS // 2
    return {
        REQUESTS_S.name: Measured(requests.wall_s, requests_ratio),
        REQUESTS_GIB.name: Measured(requests.peak_bytes / GIB),
        ROWS_S.name: Measured(rows.wall_s, rows_ratio),
        PAGE_S.name: Measured(page.wall_s, page_ratio),
        WIDE_S.name: Measured(wide.wall_s, wide_ratio),
        SMALL_S.name: Measured(ours[middle], ours[middle] / pandas[middle]),
        STARTUP_S.name: Measured(ours[0], ours[0] / pandas[0]),
    }


BENCHMARK = Benchmark(
    "audit_speed", (REQUESTS_S, REQUESTS_GIB, ROWS_S, PAGE_S, WIDE_S, SMALL_S, STARTUP_S), measure, is_slow=False
)
