"""What `nightbench doctor` says of the tokens of a cloud, asked of the emulated one."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from flows.cli import app
from flows.doctor.token_checks import examine_tokens
from infra.clouds.digitalocean.token_scopes import READING
from infra.settings import Settings
from tests.emulators.digitalocean import Emulator
from tests.emulators.tracker import tracker
from tests.flows.deployed import ROOT


@pytest.fixture
def cloud() -> Iterator[Emulator]:
    with Emulator() as found:
        yield found


def settings(data: Path, cloud: Emulator, token: str, switch: str | None = None) -> Settings:
    own = None if switch is None else SecretStr(switch)
    return Settings(data=data, do_token=SecretStr(token), do_endpoint=cloud.url, do_ca=cloud.ca, do_dead_man_token=own)


def test_a_token_with_every_scope_is_good_and_is_only_read_with(tmp_path: Path, cloud: Emulator) -> None:
    (check,) = examine_tokens(settings(tmp_path, cloud, cloud.add_token(*READING)))

    assert check.is_good
    assert check.found == "digitalocean: has every scope that a harmless call shows"


def test_each_missing_scope_is_named(tmp_path: Path, cloud: Emulator) -> None:
    (check,) = examine_tokens(
        settings(tmp_path, cloud, cloud.add_token(*(READING.keys() - {"image:read", "tag:read"})))
    )

    assert not check.is_good
    assert check.found == "digitalocean: lacks tag:read, image:read"


def test_a_rejected_token_is_a_fault_and_a_cloud_without_an_answer_is_none(tmp_path: Path, cloud: Emulator) -> None:
    (rejected,) = examine_tokens(settings(tmp_path, cloud, "unknown"))

    assert (rejected.is_good, rejected.found) == (False, "digitalocean: rejected")
    assert "unknown" not in rejected.advice


def test_a_machines_token_that_can_do_more_than_delete_is_a_fault(tmp_path: Path, cloud: Emulator) -> None:
    token, narrow = cloud.add_token(*READING), cloud.add_token("droplet:read", "droplet:delete")

    _, good = examine_tokens(settings(tmp_path, cloud, token, narrow))
    _, wide = examine_tokens(settings(tmp_path, cloud, token, cloud.add_token("droplet:delete", *READING)))

    assert (good.is_good, wide.is_good) == (True, False)
    assert "can do more than droplet:read and droplet:delete" in wide.found


def test_the_page_lists_each_scope_that_is_checked() -> None:
    page = (ROOT / "docs" / "how-to" / "rent-a-gpu.md").read_text()

    assert set(READING) <= set(re.findall(r"`(\w+:\w+)`", page))


def test_without_a_cloud_nothing_is_called(tmp_path: Path) -> None:
    assert examine_tokens(Settings(data=tmp_path)) == []


def test_a_tracker_that_shows_the_token_its_issues_is_good_and_one_that_does_not_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tracker("gitlab") as site:
        monkeypatch.setenv("NIGHTBENCH_TRACKER_URL", site.url)
        outputs = []
        for token in (site.token, "glpat-another", "of two words"):
            monkeypatch.setenv("NIGHTBENCH_TRACKER_TOKEN", token)
            (check,) = examine_tokens(Settings(data=tmp_path))
            tried = CliRunner().invoke(app, ["--data", str(tmp_path), "check", "--test"])
            outputs.append((check.is_good, check.found, check.advice, tried.exit_code))
            assert check.found in tried.stdout
            assert token not in tried.output

    good, refused, impossible = outputs
    assert good == (True, "GitLab at 127.0.0.1 shows its issues", "", 0)
    assert refused[:2] + refused[3:] == (False, "cannot be used", 1)
    assert "refuses NIGHTBENCH_TRACKER_TOKEN (HTTP 401: 401 Unauthorized)" in refused[2]
    assert "NIGHTBENCH_TRACKER_TOKEN is not set, or has spaces" in impossible[2]
