"""A check before the load: the server has the OpenAI API and serves the model."""

import http.client
import json
from urllib.parse import urlsplit

from meter.api_key import hide
from meter.bounded import Bounds, NotHttpError, exchange
from meter.connection import Endpoint, port_of, why_not
from meter.errors import OutsideWorldError
from meter.plan import Plan

PATH = "/v1/models"
ANSWER_S = 10.0  # for the whole answer of a server that should be up
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
    for name in (plan.model, *(plan.models or {"names": ()})["names"]):
        if name not in served:
            raise OutsideWorldError(f"The server {plan.url} does not serve {name!r}; it serves {', '.join(served)}.")


def _ask(endpoint: Endpoint, key: str | None) -> tuple[int, bytes, str | None]:
    connection = _connection(endpoint)
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    try:
        answer = exchange(connection, ("GET", PATH, None, headers), Bounds.within(ANSWER_S), endpoint.context)
        return answer.status, answer.body, answer.header("location")
    except NotHttpError as error:
        raise OutsideWorldError(f"The server {endpoint.url} does not speak HTTP: {error}.") from error
    except OSError as error:
        raise OutsideWorldError(why_not(endpoint, error)) from error
    finally:
        connection.close()


def _connection(endpoint: Endpoint) -> http.client.HTTPConnection:
    parts = urlsplit(endpoint.url)
    host, port = parts.hostname or "", port_of(parts)
    if endpoint.context is None:
        return http.client.HTTPConnection(host, port)
    return http.client.HTTPSConnection(host, port, context=endpoint.context)
