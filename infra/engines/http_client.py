"""Requests to a server outside of a load: on loopback, or to a server that already runs, with TLS and its API key."""

import http.client
from dataclasses import dataclass
from urllib.parse import urlsplit

from infra.engines.secret_environment import api_key
from meter.api_key import hide
from meter.connection import PORTS
from meter.errors import UsageError
from meter.tls import client_context, explain

CA_SOURCE = "[endpoint] ca_file of the suite, or in SSL_CERT_FILE"


@dataclass(frozen=True)
class Origin:
    """Where requests go. The key is read from the environment for each of them, and kept nowhere."""

    url: str
    ca_file: str | None = None
    api_key_env: str | None = None

    @property
    def host(self) -> str:
        """The host that the URL names."""
        return urlsplit(self.url).hostname or ""

    def headers(self) -> dict[str, str]:
        """What each request has beside its own headers."""
        key = api_key(self.api_key_env)
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def connect(self, timeout_s: float) -> http.client.HTTPConnection:
        """A connection that is not open yet; it uses no proxy. OSError where the CA's file cannot be read."""
        parts = urlsplit(self.url)
        port = parts.port or PORTS[parts.scheme]
        if parts.scheme == "http":
            return http.client.HTTPConnection(self.host, port, timeout=timeout_s)
        try:
            context = client_context(self.ca_file)
        except UsageError as error:
            raise OSError(str(error)) from error
        return http.client.HTTPSConnection(self.host, port, timeout=timeout_s, context=context)

    def ask(self, method: str, path: str, body: str | None, timeout_s: float) -> tuple[int, str]:
        """Status and text of the response to a request; OSError if there is none in time."""
        connection = self.connect(timeout_s)
        try:
            heads = {"Content-Type": "application/json"} if body else {}
            connection.request(method, path, body, heads | self.headers())
            answer = connection.getresponse()
            return answer.status, self.hide(answer.read().decode(errors="replace"))
        except http.client.HTTPException as error:
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()

    def hide(self, text: str) -> str:
        """A text of the server, without the key that it may quote."""
        return hide(text, api_key(self.api_key_env))

    def explain(self, error: OSError) -> str:
        """Why there was no connection, in plain words."""
        return explain(error, self.host, CA_SOURCE)
