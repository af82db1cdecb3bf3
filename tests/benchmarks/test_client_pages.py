"""Tables, the page and the drawing: everybody is in them, what is wrong is marked, nothing is made up."""

import xml.etree.ElementTree as ET
from pathlib import Path

from benchmarks import client_plot
from benchmarks.client_plot import DOCS, draw, page, points
from benchmarks.client_result import FLOOR_MS, Result, summarise
from benchmarks.client_table import ROWS, bar_table, cell_tables, fault_cells, ratio_tables
from benchmarks.clients.client import MEANS
from benchmarks.table import as_markdown, as_text
from tests.benchmarks.results import fault, meter_run, numbers, peer_run, result, run

RUNS = (
    meter_run(ttft_ms=0.1, itl_ms=0.0),
    peer_run("vllm bench", 20.0, -3.0),
    run("guidellm", {"guidellm": numbers(itl_metric=MEANS, itl_p99_error_ms=-1.0)}),
    run("aiperf", {}, reason="its wheel | is gone"),
)


def test_a_ratio_table_has_every_peer_over_the_meter() -> None:
    (table,) = ratio_tables(summarise(RUNS, ROWS))

    found = {row[0]: row[1:] for row in table.rows}
    assert set(found) == {"vllm bench", "guidellm", "aiperf"}
    assert found["vllm bench"] == ("200 x", "1.00 x", "600 x", "1.00 x", "1.00 x")
    assert found["guidellm"][2] == "200 x\\*"
    assert found["aiperf"] == ("-",) * 5


def test_no_ratio_is_given_where_the_meter_did_not_run() -> None:
    assert ratio_tables(summarise(RUNS[1:], ROWS)) == ()


def test_several_runs_are_a_median_and_a_range_and_one_is_itself() -> None:
    (table,) = cell_tables(summarise([*RUNS, meter_run(ttft_ms=0.3, repeat=1)], ROWS))

    kernel, *_others = table.rows
    assert kernel[1:3] == ("2", "+0.20 [+0.10, +0.30]")
    assert {row[0]: row[2] for row in table.rows}["vllm bench"] == "+20.00"


def test_another_metric_is_marked_and_a_reason_stands_below() -> None:
    (table,) = cell_tables(summarise(RUNS, ROWS))

    assert {row[0]: row[5] for row in table.rows}["guidellm"] == "-1.000\\*"
    assert table.notes == ("aiperf: its wheel | is gone",)
    assert "aiperf: its wheel | is gone" in as_text([table])
    assert "\\*" not in as_text([table])


def test_a_bar_that_is_missed_is_bold_and_one_that_was_not_measured_says_so() -> None:
    said = as_markdown(bar_table(summarise([meter_run(ttft_ms=0.25)], ROWS), ()))

    assert "| ≤ 0.2 | +0.25 | **no** |" in said
    assert "| ≤ 0.05 | - | not measured |" in said


def test_the_bar_on_faults_is_met_when_every_account_of_the_meter_is_the_truth() -> None:
    truth, right = fault("truth", 9, 3, 900), fault("meter", 9, 3, 900)

    ends = [
        bar_table([], faults).rows[-1][-2:]
        for faults in ((truth, right), (truth, fault("meter", 12, 0, 1200)), (fault("meter", reason="hung"),), (truth,))
    ]

    assert ends == [("1 of 1", "yes"), ("0 of 1", "**no**"), ("0 of 1", "**no**"), ("-", "not measured")]


def test_an_account_that_is_not_the_truth_is_bold() -> None:
    table = fault_cells(
        (
            fault("truth", 9, 3, 900),
            fault("meter", 9, 3, 900),
            fault("vllm bench", 12, 0, 1200),
            fault("guidellm", 9, 3, 899),
            fault("vllm-rs bench", 9, 3, 900, ttft_ms=1.0),
            fault("aiperf", reason="not | done"),
        )
    )

    (row,) = table.rows
    said = dict(zip(table.head, row, strict=True))
    assert said["truth"] == "9 good, 3 failed, 900 tokens, TTFT 100 ms"
    assert said["meter, kernel stamps"] == "9 good, 3 failed, 900 tokens, TTFT 100 ms"
    assert said["vllm bench"] == "**12 good, 0 failed, 1,200 tokens, TTFT 100 ms**"
    assert said["vllm-rs bench"] == "**9 good, 3 failed, 900 tokens, TTFT 1 ms**"
    assert said["guidellm"].startswith("**")
    assert (said["aiperf"], said["sglang-bench"]) == ("not | done", "-")
    assert "not \\| done" in as_markdown(table)


def test_a_point_is_the_size_of_an_error_and_never_below_the_floor() -> None:
    found = {(point["client"], point["panel"]): point for point in points(summarise(RUNS, ROWS))}

    assert found["vllm bench", "error of p99 ITL"]["value"] == 3.0
    assert found["meter, own stamps", "error of p99 ITL"]["value"] == FLOOR_MS
    assert found["guidellm", "error of p99 ITL"]["metric"] == MEANS
    assert not [key for key in found if key[0] == "aiperf"]


def test_cells_of_another_pace_are_not_drawn_beside_the_others() -> None:
    slow = run("meter", meter_run().rows, itl_ms=50.0, streams=4000)

    assert points(summarise([slow], ROWS)) == []


def test_the_drawing_is_whole_and_names_every_client_that_ran_and_the_bars() -> None:
    picture = draw(summarise([*RUNS, meter_run(streams=1000)], ROWS))

    words = "".join(ET.fromstring(picture).itertext())  # noqa: S314 -- our own
    assert all(name in words for name in ("meter, kernel stamps", "meter, own stamps", "vllm bench", "guidellm"))
    assert all(name in words for name in ("streams", "error of mean TTFT", "error of p99 ITL", "bar at 1,000"))
    assert "aiperf" not in words


def test_the_page_says_how_and_where_it_was_made_and_keeps_its_tables_whole() -> None:
    said = page(result(*RUNS, faults=(fault("truth", 9, 3, 900),)))

    assert "python -m benchmarks.client_error --made-by-hand" in said
    assert all(part in said for part in ("2026-03-01", "A | CPU", "seed 7", "## Broken answers"))
    tables = [block.splitlines() for block in said.split("\n\n") if block.startswith("|")]
    assert all(len({line.count("|") for line in table}) == 1 for table in tables)
    assert "- aiperf: its wheel | is gone" in said


def test_a_page_without_cells_has_its_faults_and_no_picture(tmp_path: Path) -> None:
    result(faults=(fault("truth", 9, 3, 900),)).save(tmp_path / "result.json")

    client_plot.main([str(tmp_path / "result.json"), "--out", str(tmp_path)])

    said = (tmp_path / "client-error.md").read_text()
    assert ("## Broken answers" in said, "client-error.svg" in said, "## Errors" in said) == (True, False, False)
    assert not (tmp_path / "client-error.svg").exists()


def test_the_page_in_the_reference_is_that_of_its_results() -> None:
    kept = Result.model_validate_json((DOCS / "client-error.json").read_bytes())

    assert (DOCS / "client-error.md").read_text("utf-8") == page(kept)


def test_both_files_come_from_the_result_file(tmp_path: Path) -> None:
    result(*RUNS).save(tmp_path / "result.json")

    client_plot.main([str(tmp_path / "result.json"), "--out", str(tmp_path)])

    assert (tmp_path / "client-error.md").read_text() == page(result(*RUNS))
    assert (tmp_path / "client-error.svg").read_text().startswith("<svg")
