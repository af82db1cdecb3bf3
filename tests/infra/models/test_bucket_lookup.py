"""A bucket that a suite leaves optional: where the settings name none, no part of the night has it."""

from pathlib import Path

import pytest

from bench.record import NightRecord
from infra.loadgen.suite_file import make_night
from infra.models.bucket_lookup import require_bucket, without_unset_bucket
from infra.settings import Settings

SUITES = Path(__file__).parents[3] / "suites"


def _minutes(night: NightRecord) -> set[int | None]:
    runs = (run.scenario.model for run in night.runs)
    return {one.cache_bucket_minutes for one in (night.suite.model, *night.suite.models, *runs)}


def test_without_a_bucket_neither_suite_nor_runs_cache_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTBENCH_S3_BUCKET", raising=False)
    night = make_night(SUITES / "nightly.toml", "digitalocean", poc=False, is_draft=True)
    assert _minutes(night) == {30}

    found = without_unset_bucket(Settings(), night)

    assert _minutes(found) == {None}
    require_bucket(Settings(), found.suite.model)
    assert [run.scenario.scenario_id for run in found.runs] == [run.scenario.scenario_id for run in night.runs]
    assert NightRecord.model_validate_json(found.model_dump_json()) == found


def test_with_a_bucket_the_night_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTBENCH_S3_BUCKET", "ours")
    night = make_night(SUITES / "nightly.toml", "digitalocean", poc=False, is_draft=True)

    assert without_unset_bucket(Settings(), night) is night
