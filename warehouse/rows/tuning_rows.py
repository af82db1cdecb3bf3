"""What a night of a search for flags showed becomes rows of `tuning`."""

from collections.abc import Iterator

from bench.search.halving import Round, Trial, Tuning, TuningNight, dropped_for, kept, next_step, ranked
from warehouse.rows.records import reading
from warehouse.schema.columns import PARTITION
from warehouse.schema.row import Row


def tuning_rows(night: str, text: bytes) -> list[Row]:
    """A row for each candidate that this night measured, from tuning.json."""
    with reading("tuning.json"):
        found = TuningNight.model_validate_json(text)
        search = found.search
        shared = {
            PARTITION: night,
            "suite": search.suite_name,
            "scenario": search.scenario,
            "kind": found.kind,
            "round": len(search.rounds) + len(search.confirmations),
            "metric": search.metric,
            "slo": None if search.slo is None else str(search.slo),
            "is_over": found.is_over,
            "next_step": found.next_step,
        }
        own = _round_rows(search, search.rounds[-1]) if found.kind == "round" else _confirmation_rows(search)
        return [shared | row for row in own]


def _round_rows(search: Tuning, last: Round) -> Iterator[Row]:
    places = {one.candidate: place for place, one in enumerate(ranked(search, last.trials), start=1)}
    going_on = kept(search, last)
    for one in last.trials:
        why = dropped_for(search, one)
        is_kept = one.candidate in going_on
        slower = "" if is_kept else f"place {places.get(one.candidate)} of {len(last.trials)}"
        yield _row(search, one) | {
            "request_count": last.request_count,
            "place": places.get(one.candidate),
            "is_kept": is_kept,
            "dropped_for": why or slower or None,
        }


def _confirmation_rows(search: Tuning) -> Iterator[Row]:
    last = search.confirmations[-1]
    winner = next_step(search).winner
    for one, is_own in zip(last.trials, (True, False), strict=True):
        ratios = (None, None, None) if is_own else (last.ratio, last.ratio_low, last.ratio_high)
        yield _row(search, one) | {
            "request_count": search.full_count,
            "is_kept": one.candidate == winner,
            "dropped_for": dropped_for(search, one, is_final=True) or None,
            "ratio": ratios[0],
            "ratio_low": ratios[1],
            "ratio_high": ratios[2],
            "verdict": None if is_own else last.verdict or None,
        }


def _row(search: Tuning, trial: Trial) -> Row:
    share = None if trial.within_slo is None else trial.within_slo / trial.request_count
    return {
        "candidate": trial.candidate,
        "flags": " ".join(search.candidate(trial.candidate).flags),
        "value": trial.value,
        "runs": trial.runs,
        "within_slo_share": share,
        "place": None,
        "ratio": None,
        "ratio_low": None,
        "ratio_high": None,
        "verdict": None,
    }
