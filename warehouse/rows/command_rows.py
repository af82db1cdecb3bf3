"""The metrics of a command become rows of `command_metrics`."""

import pyarrow as pa

from bench.loadgen.drivers.command import CommandMetric
from warehouse.rows.row_ids import run_ids
from warehouse.rows.run_folder import RunId
from warehouse.schema.columns import PARTITION, arrow_schema


def command_table(place: RunId, metrics: tuple[CommandMetric, ...]) -> pa.Table:
    """A row for each metric of one run."""
    ids = {name: value for name, value in run_ids(place).items() if name != PARTITION}
    rows = [
        {
            **ids,
            "metric": one.name,
            "unit": one.unit,
            "value": one.value,
            "samples": one.samples,
            "mean": one.mean,
            "stdev": one.stdev,
            "min": one.low,
            "max": one.high,
        }
        for one in metrics
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema("command_metrics"))
