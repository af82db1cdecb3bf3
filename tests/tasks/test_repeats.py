"""A night's repeats, planned from the nights of its data folder."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.record import NightRecord
from bench.repeats import PILOT, NightPrecision
from flows.show.night_end import show_night
from flows.show.plan import show_plan
from infra.leases.forecast import forecast_night
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from infra.storage import store
from tasks.loading import report
from tasks.planning import plan_night
from tasks.repeats import plan_repeats
from tests.flows.without_prefect import without_prefect
from tests.warehouse.lake.test_repeats import FIRST, write
from warehouse.lake.lake import partition

LOCAL = Path(__file__).parents[2] / "suites" / "local.toml"


@dataclass
class House:
    suite: Path
    settings: Settings

    @property
    def data(self) -> Path:
        return self.settings.data

    def plan(self) -> NightRecord:
        return plan_repeats(self.settings, make_night(self.suite, "local", poc=False))

    def spend(self, nights: int, seconds: float = 30.0) -> None:
        """Load so many nights of the suite's first scenario; their throughput varies by 2.9 %."""
        scenario_id = make_night(self.suite, "local", poc=True).runs[0].scenario.scenario_id
        for day in range(nights):
            write(self.data, [FIRST], f"2026-03-{day + 1:02}", scenario_id=scenario_id, seconds=seconds)


@pytest.fixture
def house(tmp_path: Path) -> House:
    suite = tmp_path / "local.toml"
    suite.write_text(LOCAL.read_text().replace("repeats = 7", 'repeats = "plan"'))
    data = tmp_path / "data"
    return House(suite, Settings(data=data, ledger=data / "ledger.sqlite"))


def repeats_of(night: NightRecord) -> dict[str, int]:
    return {one.scenario: one.repeats for one in night.repeats}


def test_the_first_night_runs_the_default(house: House) -> None:
    night = house.plan()

    assert set(repeats_of(night).values()) == {PILOT}
    assert len(night.runs) == PILOT * len(night.suite.scenarios)


def test_a_suite_with_a_number_of_repeats_keeps_it(house: House) -> None:
    house.suite.write_text(LOCAL.read_text())
    house.spend(12)

    night = house.plan()

    assert (night.repeats, len(night.runs)) == ((), 7 * len(night.suite.scenarios))


def test_a_plan_shows_the_repeats_that_history_needs_and_the_precision_they_are_expected_to_give(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    house.spend(12, seconds=1.0)
    night = house.plan()

    show_plan(night, forecast_night(house.settings, night, None), (), as_json=False)

    first, *others = repeats_of(night)
    assert repeats_of(night) == {first: 30} | dict.fromkeys(others, PILOT)
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{first}: 30 repeats: output_throughput_tok_per_s varies by 2.87% between repeats" in shown
    assert "expected half-widths of 95 % intervals: output_throughput_tok_per_s ±1.03%" in shown
    assert (
        f"{len(others)} scenarios: {PILOT} repeats: the default, because earlier nights give 0 of 30 degrees of freedom"
        in shown
    )


def test_the_lease_limits_the_repeats(house: House) -> None:
    house.spend(12, seconds=100.0)

    night = house.plan()

    first, *_ = night.repeats
    assert 1 < first.repeats < 18
    assert "of machine.lease_minutes = 30" in first.reason


TWO_MACHINES = """
[[machines]]
name = "long"
kind = "gpu-mi300x1-192gb"
lease_minutes = 600

[[machines]]
name = "short"
kind = "gpu-mi325x1-256gb"
lease_minutes = 60

[[sweeps]]
name = "users"
isl = 16
osl = 8
concurrency_max = 4
probes_max = 3
"""
LIMITS = {
    # Eight minutes are not measured, and a repeat takes 106 s.
    1000.0: (29, "on short: the next one would take 61 of machine.lease_minutes = 60"),
    # 600 minutes at 2.59 USD/h and 60 at 3.80 share 10 USD: 20.2 minutes of the second are 6 repeats.
    10.0: (6, "on short: the next one would cost 1.31 USD of short's share of budget_usd = 1.28"),
}


def test_the_tightest_machine_limits_the_repeats_of_all(house: House) -> None:
    text = house.suite.read_text()
    one = text[text.index("[model]") : text.index('[[scenarios]]\nname = "four-streams"')]

    def draft(budget: float) -> NightRecord:
        house.suite.write_text(f"budget_usd = {budget}\n{text[: text.index('[machine]')]}{one}{TWO_MACHINES}")
        return make_night(house.suite, "digitalocean", poc=False, is_draft=True)

    ids = {run.scenario.name: run.scenario.scenario_id for run in draft(10.0).runs}
    for month, machine in ((3, "long"), (4, "short")):
        for day in range(12):
            night = f"2026-{month:02}-{day + 1:02}"
            write(house.data, [FIRST], night, scenario_id=ids[f"single-stream@{machine}"], seconds=100.0)

    for budget, (most, why) in LIMITS.items():
        planned = plan_repeats(house.settings, draft(budget))

        assert repeats_of(planned) == {"single-stream@long": most, "single-stream@short": most}
        assert all(why in one.reason for one in planned.repeats)
        counts = Counter(run.scenario.name for run in planned.runs)
        assert counts == repeats_of(planned) | {"users@long": 1, "users@short": 1}  # a sweep has repeats of its own


def test_a_resumed_night_keeps_its_repeats_whatever_was_loaded_meanwhile(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(house.data))
    night = house.plan()
    store.write_json(store.night_file(house.data, night.night), night)
    house.spend(12)

    resumed = plan_night.fn(house.suite, "local", poc=False, resume=night.night)

    assert resumed == night
    assert repeats_of(house.plan()) != repeats_of(night)


def test_a_night_says_what_its_repeats_reached_in_its_record_its_summary_and_on_its_page(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(house.data))
    night = house.plan()
    store.write_json(store.night_file(house.data, night.night), night)
    write(house.data, [FIRST], night.night, scenario_id=night.repeats[0].scenario_id)
    validation = partition(house.data / "lake", "validation", night.night)
    validation.mkdir(parents=True)
    (validation / "validation.json").write_text('{"success": true, "checks": []}')

    with without_prefect():
        page = report.fn(night.night)
    show_night(house.data, night.night)

    record = NightPrecision.model_validate_json((house.data / "runs" / night.night / "repeats.json").read_bytes())
    first = record.reached[0]
    assert (first.scenario, first.repeats, first.is_reached) == (night.repeats[0].scenario, 4, False)
    assert first.half_width_reached == pytest.approx(0.0457, rel=0.01)  # Student's t of three degrees of freedom
    said = f"{first.scenario}: 4 repeats give the mean of output_throughput_tok_per_s with ±4.57%; requested: ±1.00%"
    assert said in " ".join(capsys.readouterr().out.split())
    html = page.read_text()
    assert "<h3>Planned repeats</h3>" in html
    assert night.repeats[0].reason in html
