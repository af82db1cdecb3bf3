"""Export measurements to other tools' formats: one module per format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from bench.errors import UsageError
from warehouse.exporters import inferencex, llmd, nvidia, pytorch
from warehouse.exporters.exporter import Exporter
from warehouse.exporters.measurement import Measurement
from warehouse.lake.query import run_sql
from warehouse.sql import sql

EXPORTERS: Mapping[str, Exporter] = {
    each.name: each
    for each in (llmd.EXPORTER, inferencex.EXPORTER, nvidia.JSON_EXPORTER, nvidia.CSV_EXPORTER, pytorch.EXPORTER)
}

NEAREST_MAX = 3
_OWN = """
FROM standing WHERE is_control IS NOT TRUE
{% if accepted_only %}AND verdict = 'accepted'
{% elif not with_failed %}AND outcome = 'measured' AND verdict <> 'failed'
{% endif %}
{% if nights %}AND list_contains({{ nights }}, night){% endif %}
ORDER BY night, "order", "repeat", run_id
"""


@dataclass(frozen=True)
class Exported:
    """The text of each file by name, and a message for each measurement that the format cannot represent."""

    files: Mapping[str, str]
    left_out: Sequence[str]


def require_nights(data: Path, nights: Sequence[str]) -> None:
    """UsageError for a night that the warehouse does not have, with the nearest ones."""
    known = [
        row["night"] for row in run_sql(data, "SELECT DISTINCT night FROM measurements ORDER BY night DESC").dicts()
    ]
    for night in nights:
        if night not in known:
            near = get_close_matches(night, known, n=NEAREST_MAX, cutoff=0.0)
            hint = f"the nearest nights are: {', '.join(near)}" if near else "the warehouse has no night"
            raise UsageError(f"{night} is not a night of the warehouse: {hint}")


def read_measurements(
    data: Path, nights: Sequence[str], *, accepted_only: bool = True, with_failed: bool = False
) -> list[Measurement]:
    """The measurements of these nights, or of all nights; of failed runs, only where both flags say so."""
    query = sql(_OWN, nights=list(nights), accepted_only=accepted_only, with_failed=with_failed)
    return [Measurement(row) for row in run_sql(data, query).dicts()]


def takes_failed(format_name: str) -> bool:
    """Whether a format has rows for runs that failed."""
    return _exporter(format_name).takes_failed


def _exporter(format_name: str) -> Exporter:
    exporter = EXPORTERS.get(format_name)
    if exporter is None:
        raise UsageError(f"{format_name!r} is not an export format; formats: {', '.join(EXPORTERS)}")
    return exporter


def export(format_name: str, measurements: Sequence[Measurement]) -> Exported:
    """Export measurements; raises UsageError if the format is unknown or nothing can be exported."""
    exporter = _exporter(format_name)
    reasons = [(one, exporter.lacking(one)) for one in measurements]
    left_out = [f"{one['run_id']} cannot be exported as {format_name}: {why}" for one, why in reasons if why]
    told = [one for one, why in reasons if why is None]
    if not told:
        said = "; ".join(left_out) or "these nights have no accepted measurement; --all also exports the others"
        raise UsageError(f"nothing to export: {said}")
    return Exported(exporter.files(told), left_out)
