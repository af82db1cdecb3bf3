"""The client of DigitalOcean takes proxies and authorities from the environment, and nothing else."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from bench.errors import CloudError
from infra.clouds.digitalocean.client import CA_VARIABLES, make_client
from tests.infra.rented import KIND, Rig

PROXY = "http://127.0.0.1:9"  # nothing listens there


def test_the_login_of_a_netrc_is_not_sent_in_place_of_the_token(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    assert KIND in {one.kind for one in rig.cloud_with().offers()}


@pytest.mark.parametrize(("no_proxy", "is_answered"), [("127.0.0.1", True), ("example.com", False)])
def test_the_proxy_of_the_environment_is_used_except_for_the_hosts_that_it_names(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, no_proxy: str, is_answered: bool
) -> None:
    for name in ("https_proxy", "no_proxy"):
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("https_proxy", PROXY)
    monkeypatch.setenv("no_proxy", no_proxy)
    cloud = rig.cloud_with()

    if is_answered:
        assert KIND in {one.kind for one in cloud.offers()}
    else:
        with pytest.raises(CloudError, match="cannot be reached"):
            cloud.offers()


@pytest.mark.parametrize("name", CA_VARIABLES)
def test_the_authorities_of_the_environment_are_trusted(rig: Rig, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for each in CA_VARIABLES:
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, str(rig.emulator.ca))

    answer = make_client(SecretStr(rig.emulator.token), rig.emulator.url, None).sizes.list()

    assert KIND in {size["slug"] for size in answer["sizes"]}
