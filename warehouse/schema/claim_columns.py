"""The columns of imported claims, from the fields of a Claim; latencies are in ms, as people read them."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from bench.audit.claim import ClaimedConfig, ClaimedTotals, Device, Metric
from warehouse.schema.column import Column, Type
from warehouse.schema.shared_columns import WITHDRAWN

CLAIM_IDS = (
    Column("night", "text", "id of the import: `import-` and the first digits of the file's SHA-256", nullable=False),
    Column("claim_id", "text", "id of the import and the position of the claim in its file, from 0", nullable=False),
)
METRICS: tuple[Metric, ...] = get_args(Metric)
STATISTICS = {"mean": "mean", "median": "p50", "std": "std", "min": "min", "max": "max"} | {
    name: name for name in ("p90", "p95", "p99", "p999")
}
_TYPES: dict[type, Type] = {str: "text", int: "integer", float: "number", bool: "flag"}
_UNITS = (
    *(("_tok_per_s", "tok/s"), ("_per_s", "1/s"), ("_per_hour", "USD/h"), ("_gib", "GiB"), ("_at_s", "s"), ("_s", "s")),
    *(("_share", "share"), ("_tokens", "tokens"), ("_len", "tokens"), ("_w", "W"), ("_j", "J"), ("_c", "°C")),
)
# Only the audit reads when the samples begin and how many are blank; power and use are for comparison.
DEVICE_FIELDS = tuple(
    each.name for each in fields(Device) if each.name.startswith(("power", "energy", "joules", "temp", "used"))
)

_LINEAGE = (
    Column("file", "text", "name of the file when it was imported", nullable=False),
    Column("sha256", "text", "SHA-256 of the file, which is kept under `imports/`", nullable=False),
    Column("place", "text", "location of the claim inside the file", nullable=False),
    Column("format", "text", "format of the file", nullable=False),
    Column("importer_version", "integer", "version of the importer that read the file", nullable=False, low=1),
    Column("tool", "text", "tool that wrote the file"),
    Column("tool_version", "text", "version of the tool"),
    Column("label", "text", "readable name of the claim", nullable=False),
    Column("kind", "text", "measured, derived, interpolated, expected or quoted", nullable=False),
    Column("outcome", "text", "measured, failed or not-run", nullable=False),
    Column("verdict", "text", "accepted, suspect, unchecked, rejected, failed or not-run", nullable=False),
    WITHDRAWN,
)


def _fields(of: type, group: str, names: tuple[str, ...] | None = None) -> Iterator[Column]:
    hints = get_type_hints(of)
    for name in names or [each.name for each in fields(of)]:
        unit = next((unit for ending, unit in _UNITS if name.endswith(ending)), None)
        yield Column(name, _type(hints[name]), f"{group}: {name.replace('_', ' ')}", unit)


def _type(hint: Any) -> Type:
    """The column type of a field that may be None; a Literal is text."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return _TYPES.get(kinds[0], "text")


def _latencies() -> Iterator[Column]:
    for metric in METRICS:
        for statistic in STATISTICS.values():
            yield Column(f"{metric}_{statistic}_ms", "number", f"stated: {statistic} of {metric}", "ms")


DEVICE_COLUMNS = tuple(_fields(Device, "telemetry", DEVICE_FIELDS))
CLAIM_COLUMNS = (
    *CLAIM_IDS,
    *_LINEAGE,
    *_fields(ClaimedConfig, "requested"),
    *_fields(ClaimedTotals, "stated"),
    *_latencies(),
    *DEVICE_COLUMNS,
    Column("unread", "text", "fields of the file that no column holds, as a JSON object", nullable=False),
)

CLAIM_REQUEST_COLUMNS = (
    *CLAIM_IDS,
    Column("importer_version", "integer", "version of the importer that read the file", nullable=False, low=1),
    Column("request_index", "integer", "position in the file among the measured requests", nullable=False, low=0),
    Column("is_ok", "flag", "whether the request completed; NULL if the file does not state it"),
    Column("error", "text", "error message from the file; NULL without one"),
    Column("start_s", "number", "time the request was sent, on the clock of the file", "s"),
    Column("ttft_ms", "number", "time from request sent to first token; NULL for a failed request", "ms"),
    Column(
        "tpot_ms",
        "number",
        "as the client timed it, else (E2EL - TTFT) / (tokens - 1); NULL for a failed request and a one-token answer",
        "ms",
    ),
    Column(
        "e2el_ms", "number", "time from request sent to last token; TTFT plus gaps if the file does not state it", "ms"
    ),
    Column("input_tokens", "integer", "prompt tokens; NULL if unknown for a failed request", "tokens"),
    Column("output_tokens", "integer", "output tokens; NULL if unknown for a failed request", "tokens"),
    Column("itl_ms", "gaps", "gaps between stream events; NULL for a failed request or without gaps in the file", "ms"),
)
