"""TLS: the same requests and stamps under a certificate that is verified, and plain words where it is refused."""

import contextlib
import socket
import ssl
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from meter.tls import Tls, client_context
from tests.meter.conftest import RunMeter, StartTruth

LARGE_PROMPTS = {"kind": "random", "input_tokens": 20_000, "token_low": 1000, "token_high": 9999, "seed": 1}


@dataclass(frozen=True)
class Served:
    """A CA, its file, and what it signs."""

    authority: trustme.CA
    folder: Path

    @property
    def ca_file(self) -> str:
        path = self.folder / "ca.pem"
        self.authority.cert_pem.write_to_path(path)
        return str(path)

    def certificate(self, name: str, days: int = 1) -> str:
        """A PEM file with key and certificate for this name, valid for so many more days."""
        path, now = self.folder / "server.pem", datetime.now(UTC)
        ends = {"not_before": now - timedelta(days=9), "not_after": now + timedelta(days=days)}
        issued = self.authority.issue_cert(name, **ends)  # type: ignore[arg-type]  # its keywords are of several types
        issued.private_key_and_cert_chain_pem.write_to_path(path)
        return str(path)


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(trustme.CA(), tmp_path)


def test_requests_over_tls_are_answered_and_keep_the_kernels_stamps(
    start_truth: StartTruth, run_meter: RunMeter, served: Served
) -> None:
    truth = start_truth("", "--max-model-len", "100000", TRUTH_TLS=served.certificate("127.0.0.1"))

    report = run_meter(truth.url, ca_file=served.ca_file, prompts=LARGE_PROMPTS)

    assert set(report.outcomes) == {"ok"}, report.stderr
    network = report.summary["network"]
    assert network["tls"]["version"] == "TLSv1.3"
    address = truth.url.removeprefix("https://")
    assert network["addresses"] == {address: {"connections": 2, "requests": 6}}
    for row in report.rows:
        written, seen = truth.written_at(row["request_id"]), row["event_at_ns"]
        assert len(written) == len(seen) == 8
        assert row["event_kernel_ns"] is not None
        assert row["reused"] or row["connect_end_ns"] > row["connect_start_ns"]


def test_a_fresh_connection_for_each_request_shakes_hands_each_time(
    start_truth: StartTruth, run_meter: RunMeter, served: Served
) -> None:
    truth = start_truth("close_unsaid", TRUTH_TLS=served.certificate("127.0.0.1"))

    report = run_meter(truth.url, ca_file=served.ca_file, connections="fresh")

    assert set(report.outcomes) == {"ok"}, report.stderr
    assert report.summary["network"]["addresses"].popitem()[1] == {"connections": 6, "requests": 6}


@pytest.mark.parametrize(
    ("name", "days", "words"),
    [
        ("127.0.0.1", -1, "the certificate of 127.0.0.1 has expired"),
        ("other.example", 1, "the certificate is not for 127.0.0.1"),
    ],
    ids=["expired", "another host"],
)
def test_a_certificate_that_is_wrong_is_refused_in_plain_words(
    start_truth: StartTruth, run_meter: RunMeter, served: Served, name: str, days: int, words: str
) -> None:
    truth = start_truth(TRUTH_TLS=served.certificate(name, days))

    report = run_meter(truth.url, ca_file=served.ca_file)

    assert (report.exit_code, words in report.stderr) == (3, True), report.stderr
    assert truth.log("received") == []


def test_an_unknown_ca_is_refused_with_what_to_do(
    start_truth: StartTruth, run_meter: RunMeter, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = start_truth(TRUTH_TLS=served.certificate("127.0.0.1"))

    report = run_meter(truth.url)

    assert report.exit_code == 3
    assert "is signed by an unknown CA: name the CA's file in SSL_CERT_FILE" in report.stderr
    monkeypatch.setenv("SSL_CERT_FILE", served.ca_file)
    assert client_context(None).get_ca_certs() == client_context(served.ca_file).get_ca_certs() != []


def test_a_server_without_tls_is_named(run_meter: RunMeter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        refusing = threading.Thread(target=refuse, args=[server])
        refusing.start()

        report = run_meter(f"https://127.0.0.1:{server.getsockname()[1]}")

        refusing.join()
    assert report.exit_code == 3
    assert "127.0.0.1 does not speak TLS on this port: use http://" in report.stderr


def test_a_ca_file_that_is_none_is_a_wrong_plan(run_meter: RunMeter, tmp_path: Path) -> None:
    report = run_meter("https://127.0.0.1:9", ca_file=str(tmp_path / "missing.pem"))

    assert report.exit_code == 2
    assert "missing.pem cannot be used" in report.stderr


def refuse(server: socket.socket) -> None:
    """Answer a handshake as a server does that awaits HTTP."""
    connection, _peer = server.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize("step", [1, 7, 5000], ids=lambda step: f"{step} bytes a read")
def test_any_split_of_the_bytes_over_reads_gives_the_same_text(served: Served, step: int) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.authority.issue_cert("server.example").configure_cert(context)
    near, far = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(near, far, server_side=True)
    client = Tls(client_context(served.ca_file), "server.example")

    class Pipe:
        """The server as a socket that does not block."""

        def sendall(self, data: bytes) -> None:
            near.write(data)
            with contextlib.suppress(ssl.SSLWantReadError):
                server.do_handshake()

        def recv(self, _most: int) -> bytes:
            if not far.pending:
                raise BlockingIOError
            return far.read(step)

    pipe = Pipe()
    while not client.shake(pipe):  # type: ignore[arg-type]  # as much of a socket as a handshake needs
        pass
    near.write(client.seal(b"x" * 100_000))
    assert b"".join(iter(lambda: _read(server), b"")) == b"x" * 100_000
    sent = [b"a" * 30_000, b"b", b"c" * 200]
    for part in sent:
        server.write(part)
    with pytest.raises(ssl.SSLWantReadError):
        server.unwrap()
    said = far.read()

    found = b"".join(client.open(said[at : at + step]) for at in range(0, len(said), step))

    assert found == b"".join(sent)
    assert client.is_closed


def _read(server: ssl.SSLObject) -> bytes:
    try:
        return server.read(1 << 16)
    except ssl.SSLWantReadError:
        return b""
