"""Columns that are named as ratios: one of the table's numbers to another, or to that of the first row."""

import pytest

from tests.warehouse.importers.reading import alarms, claims_of


def _named(header: str, rows: list[str]) -> int:
    """How many rows have a number that does not follow from the others."""
    text = "\n".join(["# Speed", header, "|-|-|-|-|", *(f"| {row} |" for row in rows), ""])
    return sum("table_arithmetic" in alarm for alarm in alarms(claims_of("report.md", text)))


@pytest.mark.parametrize(("wrong", "count"), [("443.30%", 0), ("543.30%", 1), ("536.40%", 1)])
def test_percents_say_one_thing_down_a_column(wrong: str, count: int) -> None:
    inputs, outputs = [100.0, 105.5, 113.1, 120.4, 128.8, 96.6], [543.3, 108.3, 129.9, 160.7, 150.2, 102.6]
    shown = [f"{100 * (one / other - 1):.2f}%" for one, other in zip(outputs, inputs, strict=True)]
    rows = zip("ABCDEF", inputs, outputs, [wrong, *shown[1:]], strict=True)
    header = "| Model | Input tok/s | Output tok/s | Change % |"

    assert _named(header, [" | ".join(map(str, row)) for row in rows]) == count


@pytest.mark.parametrize(("wrong", "count"), [("292.0%", 0), ("392.0%", 1)])
def test_a_percent_of_the_first_row_is_computed_in_a_long_table_too(wrong: str, count: int) -> None:
    speeds = [100.0 + 7.3 * at for at in range(60)]
    shown = [f"{100 * (speed / speeds[0] - 1):.1f}%" for speed in speeds]
    shown[40] = wrong
    rows = [
        f"{1 + at} | 128 | {speed:.1f} | {change}" for at, (speed, change) in enumerate(zip(speeds, shown, strict=True))
    ]

    assert _named("| Batch | Input | Output tok/s | Change % |", rows) == count


OF_TWO_COLUMNS = """# Kernels

| Model | Baseline | Ours | Speedup |
|-|-|-|-|
| A | 10.0 | 13.0 | 1.30x |
| B | 20.0 | 25.0 | 1.25x |
| C | 30.0 | 36.0 | {} |
"""
OVER_THE_ROW_WITHOUT_A_CHANGE = """# Kernels

| Implementation | Wall | Wall vs reference |
|-|-|-|
| reference | 12.4 | - |
| fused | 8.3 | {} |
"""
OVER_THE_BASE_OF_EACH_GROUP = """# Kernels

| Model | Kernel | Score | Speedup |
|-|-|-|-|
| A | old | 10.0 | 1.0x |
| A | new | 30.0 | 3.0x |
| B | old | 25.0 | 1.0x |
| B | new | 75.0 | 3.0x |
| C | old | 20.0 | 1.0x |
| C | new | 50.0 | {} |
"""
OF_RATES_AND_LATENCIES = """# On H100

| Metric | vLLM | SGLang | Speedup |
|-|-|-|-|
| Output tok/s | 2,400 | 2,600 | 1.08x |
| Mean TTFT (ms) | 95 | 80 | 1.19x |
| Mean TPOT (ms) | 10.0 | 5.0 | {} |
"""
OF_TWO_ROWS = """# Speed

| Engine | Llama-8B | Qwen-7B |
|-|-|-|
| HF | 100 | 110 |
| vLLM | 250 | 220 |
| Speedup | 2.5x | {} |
"""
OF_A_SCRIPT = """config,wall_clock,baseline_wall_clock,speedup
a,10,13,1.3
b,10,12,1.2
c,10,14,{}
d,20,28,1.4
"""


@pytest.mark.parametrize(
    ("table", "right", "wrong", "said"),
    [
        (OF_TWO_COLUMNS, "1.20x", "1.80x", "Speedup is 1.8, but 36 / 30 = 1.2 (Ours over Baseline)"),
        (OVER_THE_ROW_WITHOUT_A_CHANGE, "1.49x", "1.9x", "Wall vs reference is 1.9, but 12.4 / 8.3 = 1.494 (Wall)"),
        (OVER_THE_BASE_OF_EACH_GROUP, "2.5x", "5.0x", "Speedup is 5, but 50 / 20 = 2.5 (Score)"),
        (OF_RATES_AND_LATENCIES, "2.00x", "1.50x", "Speedup is 1.5, but 10 / 5 = 2 (vLLM over SGLang)"),
        (OF_TWO_ROWS, "2.0x", "3.0x", "Speedup is 3, but 220 / 110 = 2 (vLLM over HF)"),
        (OF_A_SCRIPT, "1.4", "1.9", "speedup is 1.9, but 14 / 10 = 1.4 (baseline_wall_clock over wall_clock)"),
    ],
)
def test_a_stated_ratio_is_computed_whatever_it_is_of(table: str, right: str, wrong: str, said: str) -> None:
    name = "report.md" if "|" in table else "sweep.csv"

    assert [alarm for alarm in alarms(claims_of(name, table.format(right))) if alarm.startswith("FAIL")] == []
    (alarm,) = [each for each in alarms(claims_of(name, table.format(wrong))) if each.startswith("FAIL")]
    assert alarm.startswith("FAIL table_arithmetic")
    assert alarm.endswith(said)


@pytest.mark.parametrize(("ratio", "said"), [("1.20x", 0), ("1.50x", 1)])
def test_a_ratio_in_brackets_behind_a_number_is_computed_and_the_number_is_read(ratio: str, said: int) -> None:
    rows = ["| 1 | 100 | 120 (1.20x) |", f"| 8 | 800 | 960 ({ratio}) |", "| 16 | 1600 | 2000 (1.25x) |"]
    head = "| Batch | vLLM (tok/s) | SGLang (tok/s) |\n|-|-|-|\n"

    claims = claims_of("report.md", f"# On H100\n\n{head}" + "\n".join(rows) + "\n")

    assert [claim.said.unstated_throughput_tok_per_s for claim in claims] == [100, 120, 800, 960, 1600, 2000]
    assert sum(alarm.startswith("FAIL table_arithmetic") for alarm in alarms(claims)) == 2 * said


@pytest.mark.parametrize(
    "rows",
    [
        ["A | 71.2 | 1.0x", "B | 70.9 | 1.9x", "C | 70.1 | 2.6x"],  # of a speed that the table does not print
        ["A | 10.0 | 1.4x", "B | 20.0 | 1.6x", "C | 30.0 | 1.9x"],  # over a base that it does not print
    ],
)
def test_a_ratio_of_numbers_that_are_not_printed_is_not_doubted(rows: list[str]) -> None:
    text = "\n".join(["# Quality", "| Model | Score | Speedup |", "|-|-|-|", *(f"| {row} |" for row in rows), ""])

    assert alarms(claims_of("report.md", text)) == []


def test_a_duration_is_no_ratio_of_the_columns_whose_words_it_has() -> None:
    header = "| Engine | Duration (s) | Req/s | Total Tok/s |"

    assert _named(header, ["vLLM | 155.97 | 0.41 | 186.35", "llama.cpp | 79.95 | 0.45 | 83.60"]) == 0


@pytest.mark.parametrize(("ratio", "wrong"), [("+20.1%", 0), ("+26.7%", 1)])
def test_percents_are_of_the_row_that_gives_most_of_them_where_several_state_none(ratio: str, wrong: int) -> None:
    rows = [f"FP8 Static | 120.1 ({ratio}) | 90 (-10.0%)", "FP8 Dynamic | 115.0 (+15.0%) | 95 (-5.0%)"]
    rows += ["Int4 | 103.0 | 104", "BF16 | 100.0 | 100", "AWQ | 97.0 | 108"]
    text = "# On H100\n\n| Precision | Output tok/s | Mean TTFT (ms) |\n|-|-|-|\n" + "".join(
        f"| {row} |\n" for row in rows
    )

    assert sum(alarm.startswith("FAIL table_arithmetic") for alarm in alarms(claims_of("report.md", text))) == wrong


@pytest.mark.parametrize(("change", "wrong"), [("-37.5", 0), ("-27.5", 1)])
def test_a_column_of_differences_beside_systems_is_no_system(change: str, wrong: int) -> None:
    rows = [
        "Successful requests | 50 | 50 | 0.0",
        f"Benchmark duration (s) | 1085.39 | 678.21 | {change}",
        "Output token throughput (tok/s) | 21.4 | 34.26 | 60.1",
        "Mean TTFT (ms) | 354.4 | 396.5 | 11.9",
    ]
    header = "| Metric | Plain | With a draft model | % Difference |"

    assert _named(header, rows) == wrong
    claims = claims_of("report.md", "\n".join(["# Speed", header, "|-|-|-|-|", *(f"| {row} |" for row in rows), ""]))
    assert [alarm for alarm in alarms(claims) if alarm.startswith("FAIL") and "table_arithmetic" not in alarm] == []


def test_a_speedup_above_1_is_no_part_that_is_saved() -> None:
    rows = ["CUDA graph | 53 | 18.7 | ~4.8x", "Eager | 11 | ~91 | 1.0x"]

    assert _named("| Mode | tok/s (B=1) | ms/step | Speedup |", rows) == 0


def test_a_setting_of_few_digits_is_not_what_a_ratio_is_made_of() -> None:
    # 3 / 2 is 1.0 to 2.3 where both are rounded: that gives any of these.
    rows = [
        "2 | 1.2672x | 2321.55 tok/s | 74.77%",
        "3 | 1.3124x | 2403.04 tok/s | 60.96%",
        "4 | 1.3004x | 2381.77 tok/s | 50.50%",
        "5 | 1.2156x | 2225.08 tok/s | 41.40%",
    ]

    assert _named("| Inference draft length | Speedup | PARD throughput | Acceptance |", rows) == 0


@pytest.mark.parametrize(("name", "count"), [("Step 10-δ", 0), ("Δ", 1)])
def test_a_letter_that_numbers_a_step_is_no_difference(name: str, count: int) -> None:
    steps = ["Step 8 | 21 | 17000 | 400", "Step 9 | 28 | 900 | 100", f"{name} | 1.33x | 0.053x | 0.5x"]

    assert _named("| Kernel | Load | TTFT | Rate |", steps) == count
