"""The twins of `vllm bench sweep serve`: `python -m tests.data.formats.vllm_sweep.make` writes them anew."""

import csv
import io
import json
from pathlib import Path
from typing import Any

from tests.data.formats.vllm_serve.make import plain, short_run


def runs(*seeds: int) -> list[dict[str, Any]]:
    return [{**plain(short_run(seed)), "run_number": number} for number, seed in enumerate(seeds)]


def files() -> dict[str, str]:
    """Every twin by its name."""
    out = io.StringIO()
    rows = runs(13, 14)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["", *rows[0]])
    writer.writerows(
        [number, *("" if cell is None else cell for cell in row.values())] for number, row in enumerate(rows)
    )
    return {"summary.json": json.dumps(runs(11, 12), indent=1), "summary.csv": out.getvalue()}


if __name__ == "__main__":
    for name, text in files().items():
        Path(__file__).with_name(name).write_text(text)
