"""Which regressions stand: those that no later change and no acknowledgement has ended."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from bench.trends.judgement import Acknowledgement, SaidChange
from flows.notifying import keep_regressions, notify_of_failure
from infra.settings import Settings
from nights.durable import make_folder, write_text
from tasks.regressions import standing_regressions
from tests.emulators.tracker import tracker
from tests.warehouse.simulated_lake import write
from tests.warehouse.trends.judgements import AT, EVENT, judgement
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import STAGING
from warehouse.lake.swap import swap_in
from warehouse.trends.kept import ACKNOWLEDGED, stage_acknowledgements

NIGHT = "2026-03-01T010000Z"
WORSE = judgement(NIGHT).changes[0].model_copy(update={"until": None, "kind": "step"})
KEY = f"regression.confirmed/{EVENT}"


def say(data: Path, *changes: SaidChange, at: datetime = AT) -> None:
    """What the judgements of a lake have."""
    rows = [{"night": NIGHT, "said_at": at} | change.model_dump() for change in changes]
    write(data / "lake", "change_points", NIGHT, rows)
    build_warehouse(data)


def acknowledge(data: Path, by: str, note: str, state: str | None = None) -> None:
    said = Acknowledgement(event_id=EVENT, acknowledged_at=AT, acknowledged_by=by, note=note, state=state)
    make_folder(data / ACKNOWLEDGED)
    write_text(data / ACKNOWLEDGED / f"{by}.json", said.model_dump_json())
    stage_acknowledgements(data, data / "lake" / STAGING)
    swap_in(data / "lake")
    build_warehouse(data)


def found(data: Path, days: float = 1) -> tuple[list[str], list[str]]:
    """The keys of those that stand, and of those that are quiet."""
    stands = standing_regressions(Settings(data=data), AT + timedelta(days=days))
    return [event.key for event in stands.events], list(stands.quiet)


def test_a_confirmed_regression_stands_with_its_size_its_interval_and_its_cause(tmp_path: Path) -> None:
    other = WORSE.model_copy(update={"series": "m/bf16/1xH100/tp2", "effect_pct": 4.0, "ci_lo": 3.0, "ci_hi": 5.0})
    say(tmp_path, WORSE, other)

    (event,) = standing_regressions(Settings(data=tmp_path, pages_url="https://pages.example"), AT).events

    assert event.key == KEY
    assert event.title == "tpot_p50_ms +10.2 %, worse, confirmed: m/bf16/1xH100/tp1, and 1 more"
    assert (
        f"{WORSE.series} tpot_p50_ms +10.2 % [+8.1, +12.3] since {NIGHT}, last good night {WORSE.last_good}; only"
        in event.body
    )
    assert "m/bf16/1xH100/tp2 tpot_p50_ms +4.0 % [+3.0, +5.0]" in event.body
    assert event.link == f"https://pages.example/reports/{NIGHT}.html"


@pytest.mark.parametrize(
    "change",
    [{"direction": "better"}, {"state": "suspect"}, {"until": NIGHT}, {"source": "an import"}],
    ids=["improvement", "suspect", "excursion that is over", "history"],
)
def test_what_is_no_regression_of_ours_or_is_over_does_not_stand(tmp_path: Path, change: dict[str, str]) -> None:
    say(tmp_path, WORSE.model_copy(update=change))

    assert found(tmp_path) == ([], [])


def test_a_regression_is_over_once_a_later_change_of_its_series_is_for_the_better(tmp_path: Path) -> None:
    later = {"direction": "better", "event_id": "other", "first_bad_at": AT + timedelta(days=1), "effect_pct": -9.0}
    elsewhere = WORSE.model_copy(update=later | {"series": "another"})
    say(tmp_path, WORSE, elsewhere)
    before = found(tmp_path)
    say(tmp_path, WORSE, WORSE.model_copy(update=later))

    assert before == ([KEY], [])
    assert found(tmp_path) == ([], [])


def test_an_acknowledged_or_old_regression_is_quiet_and_one_that_is_explained_is_over(tmp_path: Path) -> None:
    say(tmp_path, WORSE)
    assert found(tmp_path, days=31) == ([], [KEY])
    acknowledge(tmp_path, "nightbench bisect", "0.13.0 is the first one")
    assert found(tmp_path) == ([KEY], [])

    acknowledge(tmp_path, "lee", "known")
    noted = found(tmp_path)
    acknowledge(tmp_path, "mo", "driver upgrade", "explained")

    assert noted == ([], [KEY])
    assert found(tmp_path) == ([], [])


def test_the_issue_of_a_regression_has_the_answer_of_a_bisect_and_is_closed_once_it_is_explained(
    tmp_path: Path,
) -> None:
    say(tmp_path, WORSE, at=datetime.now(UTC))
    with tracker("github") as site:
        settings = Settings(data=tmp_path, tracker_url=site.url, tracker_token=SecretStr(site.token))

        def check() -> None:
            keep_regressions(settings, pytest.fail)
            with notify_of_failure(settings, "check", pytest.fail):
                pass

        check()
        acknowledge(tmp_path, "nightbench bisect", "0.13.0 is the first one")
        check()
        noted, states = site.text(0), site.states
        acknowledge(tmp_path, "lee", "accepted", "explained")
        check()

        assert "\n0.13.0 is the first one\n" in noted
        assert [state for _title, state in states] == ["open"]
        assert [state for _title, state in site.states] == ["closed"]
