"""The client of DigitalOcean takes proxies and authorities from the environment, and nothing else."""

import ssl
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest
import requests
import trustme
from azure.core.exceptions import ServiceRequestError
from pydantic import SecretStr
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError, SSLError

from bench.errors import CloudError, CloudRefusedError, LostReplyError, NotAskedError
from infra.clock import SystemClock
from infra.clouds.digitalocean.client import CA_VARIABLES, Calls, make_client
from tests.emulators.strange_server import strange_server
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


HEAD = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 9999999999\r\n\r\n"
ANSWER_S, DROP_S = 0.5, 0.02
ANSWERS = {
    "drips its headers": (DROP_S, [b"HTTP/1.1 201 Created\r\n"], b"a"),
    "drips its body": (DROP_S, [HEAD], b" "),
    "sends nothing after its headers": (10 * ANSWER_S, [HEAD], b""),
    "sends without end": (0.0, [HEAD], b" " * (1 << 20)),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_reply_of_a_cloud_is_lost_that_is_not_whole_in_time_or_too_large(tmp_path: Path, name: str) -> None:
    """Lost and not unsent: the machine that was requested may be there."""
    pause_s, begin, piece = ANSWERS[name]
    authority, ca, sent = trustme.CA(), tmp_path / "ca.pem", list[bytes]()
    authority.cert_pem.write_to_path(str(ca))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)

    def answer(_request: bytes) -> Iterator[bytes]:
        for each in chain(begin, repeat(piece)):
            sent.append(each)
            yield each

    with strange_server(answer, pause_s, tls) as url:
        client = make_client(SecretStr("token"), url, ca, read_timeout_s=ANSWER_S)
        create = lambda: client.droplets.create(body={"name": "one"})  # noqa: E731
        with pytest.raises(LostReplyError):
            Calls("digitalocean", SystemClock()).once("droplet:create", create, "droplet")

    assert len(sent) < 10 * ANSWER_S / DROP_S


def of_library(reason: Exception, outer: type[requests.ConnectionError]) -> ServiceRequestError:
    """An error of requests as the cloud's library passes it on."""
    inner = outer(MaxRetryError(POOL, "/v2/droplets", reason))
    return ServiceRequestError(inner, error=inner)


POOL = HTTPConnectionPool("127.0.0.1")


@pytest.mark.parametrize(
    ("reason", "outer", "kind"),
    [
        (NewConnectionError(POOL, "refused"), requests.ConnectionError, NotAskedError),  # type: ignore[arg-type]  # as urllib3 itself passes it
        (ConnectTimeoutError("slow"), requests.ConnectTimeout, NotAskedError),
        (SSLError("decryption failed or bad record mac"), requests.exceptions.SSLError, LostReplyError),
        (SSLError("CERTIFICATE_VERIFY_FAILED"), requests.exceptions.SSLError, CloudRefusedError),
    ],
)
def test_only_a_connection_that_was_not_made_proves_that_a_request_did_not_arrive(
    reason: Exception, outer: type[requests.ConnectionError], kind: type[CloudError]
) -> None:
    def fail() -> None:
        raise of_library(reason, outer)

    with pytest.raises(CloudError) as raised:
        Calls("digitalocean", SystemClock()).once("droplet:create", fail)

    assert type(raised.value) is kind
