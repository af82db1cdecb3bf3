"""Errors that are planted in a table are named, and the table without them raises no doubt."""

from pathlib import Path

from benchmarks.planted_errors import measure

TABLE = """# Results

Throughput by length:

| Model | Input Length | Speed (tokens/s) | Note |
|---|---|---|---|
| Qwen3-8B | 1 | 81.73 | |
| Qwen3-8B | 6144 | 296.25 | |
| Qwen3-8B | 14336 | 524.70 | |
| Qwen3-8B | 30720 | 832.65 | |
| Qwen3-8B | 63488 | 1060.50 | |
| Qwen3-8B | 129024 | 1147.80 | |
"""


def test_each_kind_of_error_is_named_in_a_table_that_is_right(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text(TABLE)

    tally = measure(tmp_path)

    assert (tally.tables, tally.accounted, tally.numbers, tally.doubted) == (1, 1, 6, 0)
    assert tally.named == tally.planted
    assert len(tally.planted) == 12
