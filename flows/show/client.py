"""Prints the load client's error: calibrations and cross-checks."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from bench.client_error.calibration import CalibrationTable
from bench.client_error.crosscheck import ClientRun, side_by_side
from flows.show.console import line, print_json, table

CALIBRATION_COLUMNS = (
    *("streams", "stream_tok_per_s", "ttft_mean_error_ms", "ttft_p99_error_ms", "itl_p50_error_ms", "itl_p99_error_ms"),
    *("itl_p99_error_kernel_ms", "itl_p999_error_kernel_ms", "live_streams", "load_share", "cpu_us_per_token"),
    *("core_share", "lag_p99_ms", "server_late_p99_ms", "passed"),
)


def show_calibration(found: CalibrationTable, *, as_json: bool) -> None:
    """Print one row per number of streams; JSON has every column."""
    points = json.loads(found.model_dump_json())["points"]
    if as_json:
        print_json(points)
        return
    table([{name: point[name] for name in CALIBRATION_COLUMNS} for point in points], "error of the load client")
    for point in points:
        if not point["passed"]:
            line(f"{point['streams']} streams did not pass: {'; '.join(point['reasons'])}")


CROSSCHECK_WORDS = """\
bias: what the client reported minus what the truth server wrote, in one run of the same load
left: the difference less both biases, which no known error explains. It includes what the server did differently in the
two runs, so a small value may be chance. For output_throughput it is mostly load that one client did not offer
itl_event: gaps between stream events of all successful requests; p50 and p99 are nearest-rank percentiles"""


def show_crosscheck(sides: Sequence[ClientRun], *, as_json: bool) -> None:
    """Print every client beside the meter, with the part of the difference that is its known error."""
    rows = [asdict(row) for row in side_by_side(list(sides))]
    if as_json:
        print_json({"clients": [asdict(side) for side in sides], "rows": rows})
        return
    table(rows, "the meter and other clients on one load")
    for side in sides:
        line(f"{side.client} {side.version or 'of unknown version'}: {side.requests} requests, {side.failed} failed")
    line(CROSSCHECK_WORDS)
