"""A canary becomes rows of `canary`; with what its machine offered, it is evidence about the runs of its lease."""

from collections.abc import Sequence
from itertools import groupby

from bench import evidence_columns as ev
from bench.audit.evidence.canary import canary_evidence
from bench.audit.evidence.evidence import EvidenceByColumn, Observed
from bench.machine.canary import UNITS, CanaryRecord, Compared, compare
from bench.machine.canary_history import HistoryFloor
from bench.machine_nights import RefusedResults
from catalog.read import find_gpu, read_canary_floors
from warehouse.rows.records import reading
from warehouse.schema.columns import COLUMNS, PARTITION
from warehouse.schema.row import Row

NAMED = 3  # results in a finding; the night's file has more of them


def read_canary(text: bytes) -> CanaryRecord:
    """Parse the record of one canary."""
    with reading("the canary"):
        return CanaryRecord.model_validate_json(text)


def read_refused(text: bytes) -> RefusedResults:
    """Parse the record of what a machine offered and the plan did not give it."""
    with reading("the list of refused results"):
        return RefusedResults.model_validate_json(text)


def canary_rows(night: str, record: CanaryRecord) -> list[Row]:
    """A row for each test, and one with the reason of a canary that did not run to its end."""
    empty = dict.fromkeys(column.name for column in COLUMNS["canary"])
    shared = record.model_dump(exclude={"gpus", "results", "floors"})
    rows = [_result_row(one) for one in compare(record, find_gpu, read_canary_floors())]
    rows += [{}] if record.reason is not None else []
    return [{**empty, PARTITION: night, **shared, **row} for row in rows]


def _result_row(one: Compared) -> Row:
    row: Row = {**one.result.model_dump(), "gpu": one.gpu, "unit": UNITS[one.result.test], "peak": one.peak}
    row |= {"share_of_peak": one.share_of_peak, "over_floor": one.over_floor}
    if one.floor is None:
        return row
    nights = one.floor.night_count if isinstance(one.floor, HistoryFloor) else None
    return row | {"floor": one.floor.floor, "floor_night_count": nights, "is_floor_verified": one.floor.is_verified}


def machine_evidence_by_run(
    rows: Sequence[Row], canaries: Sequence[CanaryRecord], refused: Sequence[RefusedResults]
) -> dict[str, EvidenceByColumn]:
    """The evidence of each run by its id, from the canaries of its lease and from what its machine offered."""
    ordered = sorted(canaries, key=lambda canary: canary.lease_id)
    by_lease = {
        lease_id: canary_evidence(list(group), find_gpu, read_canary_floors())
        for lease_id, group in groupby(ordered, key=lambda canary: canary.lease_id)
    }
    for each in refused:
        named = ", ".join(map(repr, each.names[:NAMED])) + (", …" if each.count > NAMED else "")
        by_lease.setdefault(each.lease_id, {})[ev.FOREIGN_RESULTS] = Observed(float(each.count), named)
    return {row["run_id"]: by_lease[row["lease_id"]] for row in rows if row["lease_id"] in by_lease}
