"""A judgement of a night in which every field has a value."""

from datetime import UTC, datetime
from pathlib import Path

from bench.trends.judgement import NightJudgement, SaidChange, SeriesVerdict

EVENT = "3f2a9c01de"
AT = datetime(2026, 3, 1, 2, tzinfo=UTC)


def judgement(night: str) -> NightJudgement:
    """One series, whose night was suspect and was measured again."""
    said = {"source": "nightbench", "series": "m/bf16/1xH100/tp1", "metric": "tpot_p50_ms", "unit": "ms"}
    verdict = SeriesVerdict(
        **said,
        night=night,
        measured_at=AT,
        judgement="confirmed",
        reason="both nights are off",
        baseline_nights=30,
        last_good="2026-02-28T010000Z",
        effect_pct=10.2,
        ci_lo=8.1,
        ci_hi=12.3,
        p=1e-5,
        mde_pct=4.0,
        min_effect_pct=3.0,
        control_slope=0.9,
        rerun="2026-03-01T030000Z",
    )
    change = SaidChange(
        **said,
        kind="excursion",
        last_good="2026-02-28T010000Z",
        first_bad=night,
        first_bad_at=AT,
        until=night,
        effect_pct=10.2,
        ci_lo=8.1,
        ci_hi=12.3,
        state="confirmed",
        direction="worse",
        cause="engine",
        cause_value="0.13.0",
        why="only engine_version changed from 0.12.0 to 0.13.0",
        event_id=EVENT,
    )
    return NightJudgement(night=night, said_at=AT, rerun_of=night, verdicts=(verdict,), changes=(change,))


def write_judgement(data: Path, night: str) -> None:
    """Write it into the folder of a night, before that is loaded."""
    (data / "runs" / night / "judgement.json").write_text(judgement(night).model_dump_json())
