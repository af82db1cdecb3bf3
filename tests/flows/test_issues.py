"""A night and a check have the tracker show which regressions stand, also where no address gets messages."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from flows.cli import app
from flows.notifying import notify_of_night
from infra.settings import Settings
from infra.storage import store
from tests.emulators.tracker import TrackerEmulator, tracker
from tests.tasks.test_regressions import NIGHT, WORSE, acknowledge, say
from tests.warehouse.folders import Shape, write_night


def settings_of(data: Path, site: TrackerEmulator) -> Settings:
    return Settings(data=data, tracker_url=site.url, tracker_token=SecretStr(site.token))


def test_a_night_opens_the_issue_of_a_regression_and_a_check_closes_it_once_it_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_night(tmp_path, NIGHT, {"chat": Shape()})
    say(tmp_path, WORSE, at=datetime.now(UTC))
    with tracker("github") as site:
        monkeypatch.setenv("NIGHTBENCH_TRACKER_URL", site.url)
        monkeypatch.setenv("NIGHTBENCH_TRACKER_TOKEN", site.token)
        with notify_of_night(settings_of(tmp_path, site), "a suite", pytest.fail) as notice:
            notice.night = store.read_night(tmp_path, NIGHT)
        opened = list(site.states)
        acknowledge(tmp_path, "lee", "accepted", "explained")
        CliRunner().invoke(app, ["--data", str(tmp_path), "check"])

        assert [state for title, state in opened if title.startswith("tpot_p50_ms +10.2 %")] == ["open"]
        assert [state for title, state in site.states if title.startswith("tpot_p50_ms +10.2 %")] == ["closed"]
        assert not [title for title, _state in site.states if title.startswith("a suite, night")]
