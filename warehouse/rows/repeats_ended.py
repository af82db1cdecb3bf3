"""Why a night added no further repeat to a scenario, from the rows of its runs."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from bench.added_repeats import Repeat, ended_by
from warehouse.schema.row import Row


def with_end_of_repeats(rows: Sequence[Row]) -> list[Row]:
    """The rows with `repeats_ended_by`; NULL where the suite plans how many repeats there are."""
    of_scenario: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        of_scenario[row["scenario_id"]].append(row)
    said = {scenario_id: _said(repeats) for scenario_id, repeats in of_scenario.items()}
    return [row | {"repeats_ended_by": said[row["scenario_id"]]} for row in rows]


def _said(rows: Iterable[Row]) -> str | None:
    ran = [row for row in rows if row["started_at"] is not None and row["ended_at"] is not None]
    asked = next((row["half_width_max"] for row in ran), None)
    if asked is None or len(ran) < 2 or ran[0]["is_control"]:  # noqa: PLR2004 - one run repeats nothing
        return None
    return ended_by([_repeat(row) for row in ran], asked, ran[0]["scenario_s"]) or "stopped"


def _repeat(row: Row) -> Repeat:
    seconds = (row["ended_at"] - row["started_at"]).total_seconds()
    value = row["output_throughput_tok_per_s" if row["arrivals"] == "closed" else "e2el_p50_ms"]
    is_measured = row["outcome"] == "measured"
    return Repeat(value if is_measured else None, seconds, bool(row["is_first_after_start"]))
