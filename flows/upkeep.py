"""What else runs on a schedule: measure the load client's error, compact the lake, and write the site again."""

import time
from pathlib import Path

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact

from flows.deployed import is_deployed
from flows.ending import end_prefects_thread_at_exit
from infra.loadgen.calibration import calibrate as measure_cells
from infra.loadgen.calibration import cells, keep_table, table_of
from infra.processes.machine_lock import MachineLock
from infra.settings import Settings
from tasks.artifacts import table_rows
from warehouse.lake.compact import compact_months
from warehouse.site.write import write_site

SHOWN = ("streams", "ttft_mean_error_ms", "ttft_p99_error_ms", "itl_p99_error_ms", "core_share", "passed")


@flow(name="calibrate", flow_run_name="calibrate the load client")
def calibrate(streams: tuple[int, ...] = (1, 10, 100), ttft_ms: float = 200.0, itl_ms: float = 20.0) -> str:
    """Measure the timing error of the load client on this computer; waits while a night measures on it.

    Args:
        streams: Concurrent streams of each measurement
        ttft_ms: Time to first token of the test server, in milliseconds
        itl_ms: Time between two tokens of the test server, in milliseconds

    """
    settings, log = _begin(), get_run_logger()
    with MachineLock(settings.machine_lock, settings.data).hold(log.warning, wait=True):
        began = time.monotonic()
        table = table_of(tuple(measure_cells(cells(streams, ttft_ms, itl_ms), settings.cache, log.info)), began)
    keep_table(settings.data, table)
    rows = table_rows([{name: getattr(point, name) for name in SHOWN} for point in table.points])
    description = f"Error of the load client, calibration {table.calibration_id}"
    create_table_artifact(rows, key="calibration", description=description)  # nothing is rented: the server can be slow
    return table.calibration_id


@flow(name="compact", flow_run_name="compact the lake")
def compact() -> int:
    """Copy the nights of each complete month into one file a table and return how many files changed.

    A load does the same once there are two months of nights; run folders and answers stay as they are.
    """
    changed = compact_months(_begin().data.absolute())
    get_run_logger().info("%d files of the lake changed", len(changed))
    return len(changed)


@flow(name="site", flow_run_name="write the site")
def site() -> Path:
    """Write the static site again, as it is served, and return its start page."""
    data = _begin().data.absolute()
    return write_site(data, data / "site").index


def _begin() -> Settings:
    if is_deployed():
        end_prefects_thread_at_exit()
    return Settings()
