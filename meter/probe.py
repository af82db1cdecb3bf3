"""A check before the load: the server speaks the OpenAI API and serves the model."""

import http.client
import json
from urllib.parse import urlsplit

from meter.connection import FIRST_CONNECT_S
from meter.errors import OutsideWorldError
from meter.plan import Plan

PATH = "/v1/models"


def check_speaks_openai(plan: Plan) -> None:
    """Request the list of models; raises OutsideWorldError with the answer, or with the models that are served."""
    status, body = _ask(plan.url)
    try:
        served = [model["id"] for model in json.loads(body)["data"]] if status == http.client.OK else None
    except (ValueError, KeyError, TypeError):
        served = None
    if served is None:
        excerpt = body[:200].decode(errors="replace").strip()
        raise OutsideWorldError(
            f"The server {plan.url} does not speak the OpenAI API: GET {PATH} returned HTTP {status}: {excerpt}"
        )
    if plan.model not in served:
        raise OutsideWorldError(f"The server {plan.url} does not serve {plan.model!r}; it serves {', '.join(served)}.")


def _ask(url: str) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=FIRST_CONNECT_S)
    try:
        connection.request("GET", PATH)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as error:
        raise OutsideWorldError(f"The server {url} does not speak HTTP: {error!r}.") from error
    except OSError as error:
        raise OutsideWorldError(f"The server {url} does not answer: {error}. Is it running there?") from error
    finally:
        connection.close()
