"""A check before the load: the server speaks the OpenAI API and serves the model."""

import http.client
import json
from urllib.parse import urlsplit

from meter.api_key import hide
from meter.connection import FIRST_CONNECT_S, Endpoint, port_of, why_not
from meter.errors import OutsideWorldError
from meter.plan import Plan

PATH = "/v1/models"
_REDIRECT = range(300, 400)


def check_speaks_openai(plan: Plan, endpoint: Endpoint, key: str | None) -> None:
    """Request the list of models; raises OutsideWorldError with the answer, or with the models that are served."""
    status, body, moved_to = _ask(endpoint, key)
    if status in _REDIRECT:
        raise OutsideWorldError(
            f"The server {plan.url} redirects GET {PATH} to {moved_to} (HTTP {status}): the meter follows no redirect, "
            "so name the address that answers."
        )
    if status in {http.client.UNAUTHORIZED, http.client.FORBIDDEN}:
        said = "was sent no API key" if key is None else "does not accept the API key"
        raise OutsideWorldError(f"The server {plan.url} {said}: GET {PATH} returned HTTP {status}.")
    try:
        served = [model["id"] for model in json.loads(body)["data"]] if status == http.client.OK else None
    except (ValueError, KeyError, TypeError):
        served = None
    if served is None:
        excerpt = hide(body.decode(errors="replace"), key)[:200].strip()
        raise OutsideWorldError(
            f"The server {plan.url} does not speak the OpenAI API: GET {PATH} returned HTTP {status}: {excerpt}"
        )
    if plan.model not in served:
        raise OutsideWorldError(f"The server {plan.url} does not serve {plan.model!r}; it serves {', '.join(served)}.")


def _ask(endpoint: Endpoint, key: str | None) -> tuple[int, bytes, str | None]:
    connection = _connection(endpoint)
    try:
        connection.request("GET", PATH, headers={} if key is None else {"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers.get("location")
    except http.client.HTTPException as error:
        raise OutsideWorldError(f"The server {endpoint.url} does not speak HTTP: {error!r}.") from error
    except OSError as error:
        raise OutsideWorldError(why_not(endpoint, error)) from error
    finally:
        connection.close()


def _connection(endpoint: Endpoint) -> http.client.HTTPConnection:
    parts = urlsplit(endpoint.url)
    host, port = parts.hostname or "", port_of(parts)
    if endpoint.context is None:
        return http.client.HTTPConnection(host, port, timeout=FIRST_CONNECT_S)
    return http.client.HTTPSConnection(host, port, timeout=FIRST_CONNECT_S, context=endpoint.context)
