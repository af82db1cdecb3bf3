"""The samples taken during a run as tables: the host's telemetry and the server's counters."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.loadgen.server_view import Scrapes
from bench.metrics import Floats
from warehouse.rows.records import reading
from warehouse.rows.row_ids import id_arrays, in_schema
from warehouse.rows.run_folder import RunFiles, RunId
from warehouse.rows.units import MS_PER_S, S_PER_NS
from warehouse.schema.columns import Table, arrow_schema


def telemetry_table(place: RunId, content: bytes, origin_s: float | None) -> pa.Table:
    """The rows of `telemetry` of one run, host and GPUs, on the client's clock."""
    with reading("telemetry.parquet"):
        found = pq.read_table(io.BytesIO(content))
        if "monotonic_ns" not in found.column_names or origin_s is None:
            return _sampled_table("telemetry", place, found, {})
        at_s = _seconds(found["monotonic_ns"]) - origin_s
        return _sampled_table("telemetry", place, found, {"at_s": pa.array(at_s, from_pandas=True)})


def server_samples_table(place: RunId, files: RunFiles, origin_s: float | None) -> pa.Table | None:
    """The server's metrics during the load, on the client's clock; None for runs recorded without them."""
    if files.server_samples is None:
        return None
    with reading("server-samples.parquet"):
        found = pq.read_table(io.BytesIO(files.server_samples))
        asked_s, answered_s = _seconds(found["asked_ns"]), _seconds(found["answered_ns"])
        at_s = (asked_s + answered_s) / 2 - (np.nan if origin_s is None else origin_s)
        placed = {
            "at_s": pa.array(at_s, from_pandas=True),
            "took_ms": pa.array((answered_s - asked_s) * MS_PER_S, from_pandas=True),
        }
        return _sampled_table("server_samples", place, found, placed)


def _seconds(nanoseconds: pa.ChunkedArray) -> Floats:
    return np.asarray(nanoseconds.cast(pa.float64()).to_numpy() * S_PER_NS, dtype=np.float64)


def _sampled_table(table: Table, place: RunId, found: pa.Table, made: dict[str, pa.Array]) -> pa.Table:
    """A file of samples as rows of a table; a column missing in the file is NULL."""
    schema = arrow_schema(table)
    columns = {name: found[name].cast(schema.field(name).type) for name in schema.names if name in found.column_names}
    absent = {name: pa.nulls(len(found), schema.field(name).type) for name in schema.names if name not in columns}
    return in_schema(table, absent | columns | made | id_arrays(place, len(found)))


def scrapes_of(samples: pa.Table | None) -> Scrapes | None:
    """The running and waiting requests in these samples, as the audit reads them."""
    if samples is None:
        return None
    at_s, took_ms, running, waiting = (
        np.asarray(samples[name].to_numpy(), dtype=np.float64)
        for name in ("at_s", "took_ms", "requests_running", "requests_waiting")
    )
    return Scrapes(at_s, took_ms / MS_PER_S, running + waiting)
