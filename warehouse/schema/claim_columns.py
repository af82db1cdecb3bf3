"""The columns of imported claims, from the fields of a Claim; lengths of time are told in ms, as people read them."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from bench.audit.claim import ClaimedConfig, ClaimedTotals, Device, Metric
from warehouse.schema.column import Column, Type
from warehouse.schema.shared_columns import WITHDRAWN

CLAIM_IDS = (
    Column("night", "text", "the import: `import-` and the beginning of the file's sha256", nullable=False),
    Column("claim_id", "text", "the import and the place of the claim in its file, from 0", nullable=False),
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
# Where its samples begin and how many are blank is for the audit; what a GPU drew is for comparing.
DEVICE_FIELDS = tuple(
    each.name for each in fields(Device) if each.name.startswith(("power", "energy", "joules", "temp", "used"))
)

_LINEAGE = (
    Column("file", "text", "the file as it was named when it was imported", nullable=False),
    Column("sha256", "text", "of its bytes, which stand under `imports/`", nullable=False),
    Column("place", "text", "the claim's place inside the file", nullable=False),
    Column("format", "text", "the format it was read as", nullable=False),
    Column("importer_version", "integer", "of the importer that read it", nullable=False, low=1),
    Column("tool", "text", "that wrote the file"),
    Column("tool_version", "text", "its version"),
    Column("label", "text", "the row as a person would name it", nullable=False),
    Column("kind", "text", "measured, derived, interpolated, expected or quoted", nullable=False),
    Column("outcome", "text", "measured, failed or not-run", nullable=False),
    Column("verdict", "text", "accepted, suspect, rejected, failed or not-run", nullable=False),
    WITHDRAWN,
)


def _fields(of: type, what: str, names: tuple[str, ...] | None = None) -> Iterator[Column]:
    hints = get_type_hints(of)
    for name in names or [each.name for each in fields(of)]:
        unit = next((unit for ending, unit in _UNITS if name.endswith(ending)), None)
        yield Column(name, _type(hints[name]), f"{what}: {name.replace('_', ' ')}", unit)


def _type(hint: Any) -> Type:
    """The column's type of a field that may be None; words out of a fixed list are text."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return _TYPES.get(kinds[0], "text")


def _latencies() -> Iterator[Column]:
    for metric in METRICS:
        for statistic in STATISTICS.values():
            yield Column(f"{metric}_{statistic}_ms", "number", f"said: {statistic} of {metric}", "ms")


CLAIM_COLUMNS = (
    *CLAIM_IDS,
    *_LINEAGE,
    *_fields(ClaimedConfig, "asked"),
    *_fields(ClaimedTotals, "said"),
    *_latencies(),
    *_fields(Device, "telemetry", DEVICE_FIELDS),
    Column("unread", "text", "what the file says beside that, as a JSON object", nullable=False),
)

CLAIM_REQUEST_COLUMNS = (
    *CLAIM_IDS,
    Column("importer_version", "integer", "of the importer that read it", nullable=False, low=1),
    Column("request_index", "integer", "place in the file among the measured requests", nullable=False, low=0),
    Column("is_ok", "flag", "whether it was answered; NULL where the file does not say of any request"),
    Column("error", "text", "the failure in the file's words; NULL where it has none"),
    Column("start_s", "number", "when it was sent, on the clock of the file", "s"),
    Column("ttft_ms", "number", "request sent to first token; NULL for a failed request", "ms"),
    Column("tpot_ms", "number", "(E2EL - TTFT) / (tokens - 1); NULL for a failed request and a one-token answer", "ms"),
    Column("e2el_ms", "number", "request sent to last token; where the file does not say, TTFT and the gaps", "ms"),
    Column("input_tokens", "integer", "prompt tokens; NULL where a failed request has none", "tokens"),
    Column("output_tokens", "integer", "output tokens; NULL where a failed request has none", "tokens"),
    Column(
        "itl_ms", "gaps", "gaps between stream events; NULL for a failed request, and where the file has none", "ms"
    ),
)
