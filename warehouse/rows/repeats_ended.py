"""Why a night added no further repeat to a scenario, from the rows of its runs."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from bench.added_repeats import Repeat, ended_by, fits_night
from warehouse.schema.row import Row


def with_end_of_repeats(rows: Sequence[Row]) -> list[Row]:
    """The rows with `repeats_ended_by`; NULL where the suite plans how many repeats there are."""
    of_scenario: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        of_scenario[row["scenario_id"]].append(row)
    seconds = [took_s for row in rows if (took_s := _seconds(row)) is not None]
    said = {scenario_id: _said(repeats, seconds) for scenario_id, repeats in of_scenario.items()}
    return [row | {"repeats_ended_by": said[row["scenario_id"]]} for row in rows]


def _said(rows: Iterable[Row], seconds: Sequence[float]) -> str | None:
    """Why the repeats of these rows ended, in a night whose runs took these seconds."""
    ran = [row for row in rows if _seconds(row) is not None]
    asked = next((row["half_width_max"] for row in ran), None)
    if asked is None or len(ran) < 2 or ran[0]["is_control"]:  # noqa: PLR2004 - one run repeats nothing
        return None
    repeats = [_repeat(row) for row in ran]
    ended = ended_by(repeats, asked, ran[0]["scenario_s"])
    longest_s = max(one.seconds for one in repeats)
    return ended or ("stopped" if fits_night(seconds, 0, longest_s, ran[0]["runs_s"]) else "time")


def _seconds(row: Row) -> float | None:
    """How long a run took; None of one that did not run."""
    began, ended = row["started_at"], row["ended_at"]
    return None if began is None or ended is None else (ended - began).total_seconds()


def _repeat(row: Row) -> Repeat:
    value = row["output_throughput_tok_per_s" if row["arrivals"] == "closed" else "e2el_p50_ms"]
    is_measured = row["outcome"] == "measured"
    return Repeat(value if is_measured else None, _seconds(row) or 0.0, bool(row["is_first_after_start"]))
