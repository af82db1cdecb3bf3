"""A run of a deployment measures what the settings list, and nothing else that its parameters ask for."""

from pathlib import Path

import pytest

from bench.errors import UsageError
from flows.deployed import SUITES, is_deployed, require_listed
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from infra.storage import store

LOCAL = SUITES / "local.toml"
ENDPOINT = "https://models.example.com:443"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path))
    return Settings()


def test_a_suite_of_the_checkout_is_allowed_here_and_on_rented_machines(settings: Settings) -> None:
    require_listed(settings, LOCAL, "local", None)
    require_listed(settings, LOCAL, "digitalocean", None)


@pytest.mark.parametrize("suite", ["elsewhere.toml", "link.toml", "../x/suites/elsewhere.toml"])
def test_a_suite_elsewhere_is_refused_also_by_a_link_and_by_a_path_that_leaves_the_folder(
    settings: Settings, tmp_path: Path, suite: str
) -> None:
    (tmp_path / "elsewhere.toml").touch()
    (tmp_path / "link.toml").symlink_to(tmp_path / "elsewhere.toml")
    asked = SUITES / suite if suite.startswith("..") else tmp_path / suite

    with pytest.raises(
        UsageError, match=r"is refused: a run of a deployment uses suites in .*suites only; move it there"
    ):
        require_listed(settings, asked, "local", None)


def test_a_suite_in_the_folder_that_the_settings_name_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DEPLOYED_SUITES", str(tmp_path))

    require_listed(Settings(), tmp_path / "mine.toml", "local", None)


@pytest.mark.parametrize("target", [ENDPOINT, "http://127.0.0.1:8000", "ssh:me@gpu1"])
def test_a_host_that_is_not_listed_gets_neither_the_load_nor_the_key(settings: Settings, target: str) -> None:
    with pytest.raises(UsageError, match=r"is refused: .* measures on command, digitalocean, local only"):
        require_listed(settings, LOCAL, target, None)


def test_a_listed_host_is_allowed_however_its_url_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTBENCH_DEPLOYED_TARGETS", f"local, {ENDPOINT} ssh:me@gpu1")
    settings = Settings()

    require_listed(settings, LOCAL, "https://models.example.com/", None)
    require_listed(settings, LOCAL, "ssh:me@gpu1", None)
    with pytest.raises(UsageError, match="target digitalocean is refused"):
        require_listed(settings, LOCAL, "digitalocean", None)


def test_a_night_is_resumed_only_where_it_may_measure_and_only_by_its_name(settings: Settings) -> None:
    night = make_night(LOCAL, "local", poc=True).model_copy(update={"target": ENDPOINT})
    store.write_json(store.night_file(settings.data, night.night), night)

    with pytest.raises(UsageError, match=f"target {ENDPOINT} is refused"):
        require_listed(settings, LOCAL, "local", night.night)
    with pytest.raises(UsageError, match="is not the name of a night"):
        require_listed(settings, LOCAL, "local", f"../runs/{night.night}")


def test_a_command_is_not_limited() -> None:
    assert not is_deployed()
