"""What a night measures if nobody says."""

import pytest
from pydantic import SecretStr

from flows.defaults import choose
from infra.settings import Settings

NIGHTLY, LOCAL = "suites/nightly.toml", "suites/local.toml"


@pytest.mark.parametrize(
    ("has_token", "asked", "chosen"),
    [
        (False, ("default", "default"), (LOCAL, "local")),
        (True, ("default", "default"), (NIGHTLY, "digitalocean")),
        (True, ("default", "local"), (LOCAL, "local")),
        (True, ("default", "digitalocean"), (NIGHTLY, "digitalocean")),
        (True, ("default", "ssh:ann@gpu"), (LOCAL, "ssh:ann@gpu")),
        (True, ("suites/own.toml", "default"), ("suites/own.toml", "local")),
        (True, ("suites/own.toml", "digitalocean"), ("suites/own.toml", "digitalocean")),
    ],
)
def test_a_token_alone_rents_for_the_nightly_suite_only(
    has_token: bool, asked: tuple[str, str], chosen: tuple[str, str]
) -> None:
    settings = Settings(do_token=SecretStr("dop_v1_0") if has_token else None)

    assert choose(settings, *asked) == chosen
