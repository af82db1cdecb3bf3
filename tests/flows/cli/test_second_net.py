"""Nothing is rented that would be billed without end if this computer fails, unless somebody accepts that."""

import base64
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.errors import LeaseError, UsageError
from bench.machine.names import MachineName
from flows.cli import app
from infra.bootstrap import nets, require_second_net, unguarded
from infra.clouds.digitalocean.dead_man_token import FILE, read_token
from infra.clouds.digitalocean.opening import first_boot
from infra.leases.nets import Unguarded
from infra.remote.ssh_keys import keys_of
from infra.settings import Settings
from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock
from tests.infra.rented import Rig

SUITE = "suites/llama-3.3-70b-mi300x.toml"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    with Emulator() as emulator:
        monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))
        monkeypatch.setenv("NIGHTBENCH_DO_TOKEN", emulator.token)
        monkeypatch.setenv("NIGHTBENCH_DO_ENDPOINT", emulator.url)
        monkeypatch.setenv("NIGHTBENCH_DO_CA", str(emulator.ca))
        monkeypatch.setenv("NIGHTBENCH_ACCEPT_RISK", "0")
        yield emulator


def files_of(user_data: str) -> str:
    """The content of the files that a first boot writes, which are base64 in its script."""
    found = re.findall(r"printf %s ([A-Za-z0-9+/=]+) [|] base64", user_data)
    return "".join(base64.b64decode(one).decode() for one in found)


def fix(answer: str) -> str:
    done = CliRunner().invoke(app, ["doctor", "--fix"], input=f"{answer}\n")
    return done.output + done.stderr + (str(done.exception) if done.exception else "")


def test_a_night_without_a_second_net_is_refused_before_anything_is_written(cloud: Emulator, tmp_path: Path) -> None:
    suite = tmp_path / "pinned.toml"
    text = (ROOT / SUITE).read_text().replace("@main", f"@{40 * '0'}")
    suite.write_text(re.sub(r'(image = "[^"]+/[^"]+):[^"]+"', rf'\1@sha256:{64 * "0"}"', text))

    done = CliRunner().invoke(app, ["run", str(suite), "--target", "digitalocean"])

    assert isinstance(done.exception, UsageError)
    assert "run `nightbench doctor --fix`, or set NIGHTBENCH_DO_DEAD_MAN_TOKEN, or accept" in str(done.exception)
    assert not (tmp_path / "data" / "runs").exists()
    assert cloud.requests("POST") == []


@pytest.mark.usefixtures("cloud")
def test_the_risk_is_accepted_by_a_flag_and_by_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["prepare", "no-such-suite.toml", "--accept-risk"]

    refused = CliRunner().invoke(app, arguments)

    assert "no-such-suite.toml" in str(refused.exception)
    assert unguarded(Settings(), "digitalocean") is None
    monkeypatch.setenv("NIGHTBENCH_ACCEPT_RISK", "0")
    limit = unguarded(Settings(), "digitalocean")
    assert limit is not None
    assert limit.usd_max == 0
    assert unguarded(Settings(), "local") is None


def test_the_doctor_finds_that_nothing_can_be_rented_and_fixes_it(cloud: Emulator, tmp_path: Path) -> None:
    token = cloud.add_token("droplet:read", "droplet:delete")
    before = CliRunner().invoke(app, ["doctor"]).output

    output = fix(token)

    path = tmp_path / "data" / FILE
    assert "BAD nets" in before
    assert "droplet:read, droplet:delete" in output
    assert "ok  nets" in output
    assert token not in output
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == (token, 0o600)
    require_second_net(Settings(), "digitalocean")
    assert {net.net: net.is_up for net in nets(Settings(), "digitalocean")}["machine's own switch"]
    assert "is set already" in fix("another")


def test_a_token_that_can_do_more_is_stored_with_a_warning(cloud: Emulator) -> None:
    output = fix(cloud.token)

    assert "this token can do more than droplet:read and droplet:delete" in output
    assert cloud.token not in output
    assert read_token(Settings()) is not None


@pytest.mark.parametrize(
    ("scopes", "said"), [(("droplet:read",), "droplet:delete"), (("droplet:delete",), "droplet:read")]
)
def test_a_token_without_a_scope_is_named_and_not_stored(cloud: Emulator, scopes: tuple[str, ...], said: str) -> None:
    token = cloud.add_token(*scopes)

    output = fix(token)

    assert f"lacks the scope {said}" in output
    assert token not in output
    assert read_token(Settings()) is None


def test_a_token_that_others_can_read_is_not_used(cloud: Emulator, tmp_path: Path) -> None:
    fix(cloud.add_token("droplet:read", "droplet:delete"))
    (tmp_path / "data" / FILE).chmod(0o644)

    with pytest.raises(UsageError, match="other users can read: run chmod 600"):
        read_token(Settings())


def test_a_machine_gets_the_stored_token_for_its_switch(cloud: Emulator, tmp_path: Path) -> None:
    token = cloud.add_token("droplet:read", "droplet:delete")
    keys = keys_of(tmp_path / "keys", "0af3")
    name = MachineName.parse("nb-0af3-a1-x1795248000")
    assert name is not None
    without = first_boot(Settings(), name, keys)

    fix(token)

    assert token not in files_of(without)
    assert token in files_of(first_boot(Settings(), name, keys))


def test_an_offer_is_taken_up_to_the_price_that_is_allowed_without_a_switch(tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock")
    with Emulator(clock) as emulator:
        rig = Rig(emulator, clock, tmp_path)
        with pytest.raises(LeaseError, match=r"costs up to 2\.59 USD .* allows 2\.58 USD without it"):
            rig.take(unguarded=Unguarded(2.58, "arm the switch"))
        assert rig.posts() == 0

        lease = rig.take(unguarded=Unguarded(2.59, "arm the switch"))

        rig.release_lease(lease)


@pytest.mark.usefixtures("cloud")
def test_a_plan_says_that_the_night_would_be_refused_and_which_nets_stand() -> None:
    done = CliRunner().invoke(app, ["plan", str(ROOT / SUITE), "--target", "digitalocean", "--json"])

    assert "the night would be refused: the lease costs up to" in done.output
    assert '"net": "machine\'s own switch"' in done.output
