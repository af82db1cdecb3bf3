"""A night keeps its log and the times of its stages in its folder, and later nights of its suite expect these."""

import logging
from contextlib import suppress
from pathlib import Path

import pytest

from bench.night_progress import StageTimes
from bench.record import NightRecord
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from infra.storage import store
from tasks import kept_progress
from tasks.kept_progress import expected_repeats, expected_stages, keep_progress, read_stages
from tasks.progress import ProgressStream
from tests.flows.deployed import ROOT

LOG = logging.getLogger("nightbench")


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> ProgressStream:
    made = ProgressStream()
    monkeypatch.setattr(kept_progress, "STREAM", made)
    return made


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path))
    return Settings()


def plan(settings: Settings, name: str = "2026-03-01T010000Z") -> NightRecord:
    night = make_night(ROOT / "suites" / "local.toml", "local", poc=False).model_copy(update={"night": name})
    store.write_json(store.night_file(settings.data, name), night)
    return night


def folder(settings: Settings, night: NightRecord) -> Path:
    return store.night_folder(settings.data, night.night)


def test_the_log_of_a_night_gets_its_name_when_the_night_ends_also_by_an_error(
    stream: ProgressStream, settings: Settings
) -> None:
    del stream
    night = plan(settings)

    with suppress(KeyboardInterrupt), keep_progress(settings, night):
        LOG.warning("a machine wrote %s", "\x07ding")
        assert not (folder(settings, night) / "night.log").exists()
        raise KeyboardInterrupt

    written = (folder(settings, night) / "night.log").read_text()
    assert written.endswith("WARNING nightbench: a machine wrote ding\n")


def test_a_resumed_night_goes_on_in_its_log(stream: ProgressStream, settings: Settings) -> None:
    del stream
    night = plan(settings)
    for line in ("first", "second"):
        with keep_progress(settings, night):
            LOG.warning(line)

    lines = (folder(settings, night) / "night.log").read_text().splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == ["first", "second"]


def test_the_newest_night_of_the_suite_that_timed_a_stage_tells_how_long_it_takes(
    stream: ProgressStream, settings: Settings
) -> None:
    del stream
    for name, suite, stage, seconds in (
        ("2026-03-01T010000Z", "local", "calibrate", 1.0),
        ("2026-03-02T010000Z", "local", "load", 3.0),
        ("2026-03-02T020000Z", "local", "load", 4.0),
        ("2026-03-03T010000Z", "other", "load", 9.0),
    ):
        earlier = plan(settings, name)
        one = {"stage": stage, "began_at": "2026-03-01T01:00:00Z", "seconds": seconds}
        times = StageTimes.model_validate({"suite": suite, "target": "local", "stages": [one, one]})
        store.write_json(folder(settings, earlier) / "stages.json", times)

    assert expected_stages(settings.data, plan(settings, "2026-03-04T010000Z")) == {"calibrate": 1.0, "load": 4.0}


def test_a_night_expects_as_many_added_repeats_as_the_newest_night_before_it(settings: Settings) -> None:
    night = plan(settings, "2026-03-04T010000Z")
    planned = sum(run.scenario.name == "poisson" for run in night.runs)
    for name, runs in (("2026-03-01T010000Z", planned + 5), ("2026-03-02T010000Z", planned + 2)):
        one = {"stage": "measure poisson", "began_at": "2026-03-01T01:00:00Z", "seconds": 1.0}
        times = StageTimes.model_validate({"suite": "local", "target": "local", "stages": [one] * runs})
        store.write_json(folder(settings, plan(settings, name)) / "stages.json", times)

    assert expected_repeats(settings.data, night) == {"measure poisson": 2}


def test_a_night_keeps_the_times_of_its_stages(stream: ProgressStream, settings: Settings) -> None:
    night = plan(settings)

    with keep_progress(settings, night), stream.stage(f"load {night.night}"):
        pass

    kept = read_stages(folder(settings, night) / "stages.json")
    assert (kept.suite, kept.target, [one.stage for one in kept.stages]) == ("local", "local", ["load"])


def test_a_disk_that_takes_no_log_is_a_warning(
    stream: ProgressStream, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    del stream
    night = plan(settings)
    (folder(settings, night) / ".night.log").mkdir()

    with keep_progress(settings, night):
        pass

    assert "the log is not kept in" in caplog.text


def test_the_first_night_on_a_rented_machine_expects_what_its_plan_estimates(settings: Settings) -> None:
    night = make_night(ROOT / "suites" / "llama-3.3-70b-mi300x.toml", "digitalocean", poc=False, is_draft=True)

    expected = expected_stages(settings.data, night)

    names = {f"measure {run.scenario.name}" for run in night.runs}
    assert expected.keys() >= {"reach", "calibrate", "server", f"engine and model {night.suite.model.source}", *names}
    assert all(seconds > 0 for seconds in expected.values())


def test_the_first_night_on_this_computer_expects_nothing(settings: Settings) -> None:
    assert expected_stages(settings.data, plan(settings)) == {}
