"""TLS over a socket that the meter itself reads and writes, so that the kernel's timestamps stay those of the reads.

The certificate and the host's name are always verified.
"""

import socket
import ssl

from meter.errors import UsageError

RECORD_BYTES = 16_384  # the most that one record holds
# OpenSSL's codes of a certificate that is refused; {} is the host, and what it says more precisely follows.
_CODES = {
    9: "the certificate of {} is not valid yet",
    10: "the certificate of {} has expired",
    62: "the certificate is not for {}",
    64: "the certificate is not for {}",
}
_UNKNOWN_CA = frozenset({2, 18, 19, 20, 21})
CA_SOURCE = "SSL_CERT_FILE, or ca_file of the plan"


def client_context(ca_file: str | None) -> ssl.SSLContext:
    """How servers are verified: by the CAs in `ca_file`, else by SSL_CERT_FILE or the system's; UsageError."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"The CA file {ca_file} cannot be used: {error}.") from error
    context.set_alpn_protocols(["http/1.1"])
    return context


def explain(error: OSError, host: str, ca_source: str = CA_SOURCE) -> str:
    """Say in plain words why a connection failed, a certificate that is refused included."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _UNKNOWN_CA:
            return f"the certificate of {host} is signed by an unknown CA: name the CA's file in {ca_source}"
        said = _CODES.get(error.verify_code, "the certificate of {} is refused").format(host)
        return f"{said} ({error.verify_message})"
    if isinstance(error, ssl.SSLError) and error.reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"}:
        return f"{host} does not speak TLS on this port: use http://"
    return error.strerror or str(error)


class Tls:
    """The TLS of one connection: bytes of the socket in, plaintext out, and the other way round."""

    __slots__ = ("_incoming", "_object", "_outgoing", "is_closed")

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self.is_closed = False  # the server has announced that it sends no more

    def shake(self, sock: socket.socket) -> bool:
        """Go on with the handshake: True once it is done, False if a socket that does not block has no more bytes.

        Raises OSError if it fails.
        """
        while True:
            try:
                self._object.do_handshake()
            except ssl.SSLWantReadError:
                is_done = False
            except ssl.SSLError:
                self._flush(sock)  # the alert says the server why
                raise
            else:
                is_done = True
            self._flush(sock)
            if is_done:
                return True
            try:
                data = sock.recv(RECORD_BYTES)
            except BlockingIOError:
                return False
            if not data:
                raise ConnectionResetError("the server closed the connection during the TLS handshake")
            self._incoming.write(data)

    def _flush(self, sock: socket.socket) -> None:
        data = self._outgoing.read()
        if data:
            sock.sendall(data)  # a handshake fits into the buffer of a new socket

    def seal(self, data: bytes) -> bytes:
        """Encrypt bytes to send."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._object.write(rest) :]
        return self._outgoing.read()

    def open(self, data: bytes) -> bytes:
        """Decrypt what was read; empty while a record is incomplete. Raises OSError if it cannot be decrypted."""
        self._incoming.write(data)
        plain = b""
        try:
            while self._incoming.pending:
                part = self._object.read(RECORD_BYTES)
                if not part:
                    self.is_closed = True
                    break
                plain += part
        except ssl.SSLWantReadError:
            pass  # the rest of a record is still to come
        return plain

    def describe(self) -> dict[str, str | None]:
        """Name the version and the cipher that both sides agreed on."""
        cipher = self._object.cipher()
        return {"version": self._object.version(), "cipher": None if cipher is None else cipher[0]}
