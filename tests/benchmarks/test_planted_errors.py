"""Errors that are planted in a table are named, and the table without them raises no doubt."""

from pathlib import Path

from benchmarks.accounted_tables import tables_about_speed
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


HAS_THEM_ITSELF = """# Results

Throughput by precision:

| Model | Quantization | Batch | Speed (tokens/s) | P99 TTFT (ms) |
|---|---|---|---|---|
| Qwen3-8B | BF16 | 1 | 81.73 | 31.2 |
| Qwen3-8B | FP8 | 1 | 150.32 | 25.4 |
| Qwen3-8B | BF16 | 8 | 525.70 | 52.8 |
| Qwen3-8B | FP8 | 8 | 832.65 | 44.9 |
| Qwen3-8B | BF16 | 16 | 960.50 | 77.5 |
| Qwen3-8B | FP8 | 16 | 1347.8 | 63.1 |
"""


def test_an_error_is_planted_beside_what_the_table_says_of_the_same_thing(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text(HAS_THEM_ITSELF)

    tally = measure(tmp_path)

    assert (tally.planted["label"], tally.named["label"]) == (1, 1)
    assert (tally.planted["percentile order"], tally.named["percentile order"]) == (1, 1)


def test_each_kind_of_error_is_named_in_a_table_that_is_right(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text(TABLE)

    tally = measure(tmp_path)

    assert (tally.tables, tally.accounted, tally.numbers, tally.doubted) == (1, 1, 6, 0)
    assert tally.named == tally.planted
    assert len(tally.planted) == 12


def test_a_table_about_speed_counts_as_read_if_each_of_its_numbers_is(tmp_path: Path) -> None:
    (tmp_path / "odd.md").write_text("# Findings\n\n| System | Wattage |\n|---|---|\n| a | 31 |\n| b | 35 |\n")
    page = tmp_path / "report.md"
    page.write_text(f"{TABLE}\n## Odd\n\n| Setting | Odd tok/s |\n|---|---|\n| a | 33 |\n| b | 35 |\n")

    tally = measure(tmp_path)

    assert (tally.tables, tally.accounted) == (2, 2)
    assert list(tables_about_speed("report.md", page.read_bytes(), ())) == [False, False]
