"""One call to DigitalOcean at a time: every failure becomes one of ours, and only what is harmless is repeated.

pydo by itself repeats a POST, raises nothing on a 404, and takes `timeout` for something else; so its retries are off,
and every answer goes through `unwrap`.
"""

import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    DecodeError,
    HttpResponseError,
    ServiceRequestError,
)
from azure.core.pipeline.policies import SansIOHTTPPolicy
from pydantic import SecretStr
from pydo import Client

from bench.errors import (
    CloudDeniedError,
    CloudError,
    CloudLimitError,
    CloudRefusedError,
    CloudUnknownError,
    LostReplyError,
    NoCapacityError,
    NotAskedError,
)
from infra.clock import Clock

PER_PAGE = 200
_RANDOM = secrets.SystemRandom()
TRIES_MAX = 6
BACKOFF_S, BACKOFF_MAX_S = 1.0, 30.0
BUSY_WAIT_S = 5.0
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, UNPROCESSABLE, TOO_MANY, SERVER_ERROR = 401, 403, 404, 422, 429, 500
NO_CAPACITY = ("not available", "unavailable", "capacity", "sold out", "out of stock")
OVER_LIMIT = ("limit", "quota")
# What pydo hands over as a plain answer where it does not raise.
STATUS_OF_ID = {
    "not_found": NOT_FOUND,
    "unauthorized": UNAUTHORIZED,
    "forbidden": FORBIDDEN,
    "too_many_requests": TOO_MANY,
    "server_error": SERVER_ERROR,
    "service_unavailable": 503,
    "unprocessable_entity": UNPROCESSABLE,
    "conflict": 409,
}


def make_client(
    token: SecretStr, endpoint: str, ca: Path | None, *, connect_timeout_s: float = 10.0, read_timeout_s: float = 60.0
) -> Client:
    """A pydo client that repeats nothing, waits for no silent server for long, and logs no header."""
    return Client(
        token.get_secret_value(),
        endpoint=endpoint,
        retry_total=0,
        connection_timeout=connect_timeout_s,
        read_timeout=read_timeout_s,
        connection_verify=str(ca) if ca else True,
        http_logging_policy=SansIOHTTPPolicy(),
    )


class Calls:
    """Calls to one account. `what` is the scope that a call needs, which also says what it does: droplet:create."""

    def __init__(
        self,
        cloud: str,
        clock: Clock,
        *,
        patience_s: float = 600.0,
        jitter: Callable[[], float] = _RANDOM.random,
    ) -> None:
        self._cloud = cloud
        self._clock = clock
        self._patience_s = patience_s  # how long one repeated call may wait for its turn, all waits together
        self._jitter = jitter  # from 0 to 1, so that many who were turned away do not come back together

    def once(self, what: str, call: Callable[[], Any], key: str | None = None) -> Any:
        """Make a call once; what its answer holds under `key`, or None for an answer that should hold nothing."""
        try:
            answer = call()
        except AzureError as error:
            raise self._ours(what, error) from error
        except ValueError as error:
            raise LostReplyError(f"{self._cloud}: the answer to {what} cannot be read: {error}") from error
        return self._unwrap(what, answer, key)

    def repeat(self, what: str, call: Callable[[], Any], key: str | None = None) -> Any:
        """Make a call that may be made again, until it is answered; bounded, with growing pauses.

        Raises CloudError when patience ends, CloudDeniedError and CloudUnknownError at once.
        """
        waited_s, trouble = 0.0, "it was not asked"
        for number in range(TRIES_MAX):
            try:
                return self.once(what, call, key)
            except NotAskedError as error:
                trouble, wait_s = str(error), error.wait_s
            except LostReplyError as error:
                trouble, wait_s = str(error), min(BACKOFF_MAX_S, BACKOFF_S * 2.0**number)
            wait_s *= 1 + self._jitter() / 2
            waited_s += wait_s
            if number == TRIES_MAX - 1 or waited_s > self._patience_s:
                break
            self._clock.sleep(wait_s)
        raise CloudError(f"{self._cloud} does not answer {what} ({trouble}): try later")

    def pages(self, what: str, call: Callable[[int], Any], key: str) -> list[dict[str, Any]]:
        """Everything a list holds, page after page; `call` takes the number of a page, from 1."""
        rows: list[dict[str, Any]] = []
        page = 1
        has_next = True
        while has_next:
            answers: list[Any] = []
            rows += self.repeat(what, partial(_kept, call, page, answers), key)
            has_next = bool(((answers[-1].get("links") or {}).get("pages") or {}).get("next"))
            page += 1
        return rows

    def _unwrap(self, what: str, answer: Any, key: str | None) -> Any:
        """The part of an answer that was asked for; pydo returns some errors as if they were answers."""
        if isinstance(answer, dict) and key is not None and key in answer:
            return answer[key]
        if isinstance(answer, dict) and "id" in answer and "message" in answer:
            raise self._refusal(what, STATUS_OF_ID.get(answer["id"], 400), answer, {})
        if key is None and not answer:
            return None
        raise LostReplyError(f"{self._cloud}: the answer to {what} does not hold {key or 'what it should'}")

    def _ours(self, what: str, error: AzureError) -> CloudError:
        """A foreign failure in our words: first of all, whether the call may have had its effect."""
        if isinstance(error, ServiceRequestError):
            return self._never_sent(what, str(error))
        if isinstance(error, HttpResponseError) and not isinstance(error, DecodeError) and error.response is not None:
            status = UNAUTHORIZED if isinstance(error, ClientAuthenticationError) else int(error.status_code or 0)
            response: Any = error.response  # typed as what it is not
            return self._refusal(what, status, _body(response), dict(response.headers))
        return LostReplyError(f"{self._cloud}: the answer to {what} was lost ({type(error).__name__})")

    def _never_sent(self, what: str, said: str) -> CloudError:
        if "CERTIFICATE_VERIFY_FAILED" in said:
            return CloudRefusedError(f"{self._cloud}: its certificate is not trusted: check the endpoint and the CA")
        if "non-TLS" in said:
            return CloudRefusedError(f"{self._cloud}: its endpoint must begin with https://, or the token would leak")
        return NotAskedError(f"{self._cloud} cannot be reached for {what} ({said[:200]})")

    def _refusal(self, what: str, status: int, body: dict[str, Any], headers: dict[str, str]) -> CloudError:
        """What a status other than success means."""
        said = f"{self._cloud} answers {what} with {status}: {body.get('message', 'no reason given')}"
        if status == UNAUTHORIZED:
            return CloudDeniedError(f"{said} The token is wrong or revoked: make a new one and set NIGHTBENCH_DO_TOKEN")
        if status == FORBIDDEN:
            return CloudDeniedError(f"{said} The token lacks the scope {what}: make one that has it", is_scope=True)
        if status == NOT_FOUND:
            return CloudUnknownError(said)
        if status == TOO_MANY:
            return NotAskedError(said, self._turn_in_s({name.lower(): value for name, value in headers.items()}))
        if status >= SERVER_ERROR:
            return LostReplyError(said)
        return _classified(said, body)

    def _turn_in_s(self, headers: dict[str, str]) -> float:
        """When to come back: as the cloud says, else when the oldest of our calls is forgotten."""
        if _is_number(headers.get("retry-after")):
            return max(1.0, float(headers["retry-after"]))
        if _is_number(headers.get("ratelimit-reset")):
            return max(1.0, float(headers["ratelimit-reset"]) - self._clock.now().timestamp())
        return BACKOFF_MAX_S


def page_of(number: int) -> dict[str, int]:
    """What to ask a list for its page of this number, from 1."""
    return {"per_page": PER_PAGE, "page": number}


def _classified(said: str, body: dict[str, Any]) -> CloudError:
    """One status stands for many reasons, told apart by their words; words nobody knows are taken for final."""
    words = said.lower()
    if "pending event" in words or "in progress" in words:
        return NotAskedError(said, BUSY_WAIT_S)
    attributes = body.get("error_attributes") or {}
    if any(phrase in words for phrase in NO_CAPACITY):
        return NoCapacityError(said, tuple(attributes.get("available_regions") or ()))
    if any(phrase in words for phrase in OVER_LIMIT):
        advice = "give back what runs (nightbench leases), or ask the cloud for a higher limit"
        return CloudLimitError(f"{said}: {advice}; GPU machines have one of their own, 0 for a new account")
    return CloudRefusedError(said)


def _kept(call: Callable[[int], Any], page: int, answers: list[Any]) -> Any:
    """A page's whole answer, kept aside because its rows do not say whether there are more."""
    answers.append(call(page))
    return answers[-1]


def _body(response: Any) -> dict[str, Any]:
    try:
        body = response.json()
    except (ValueError, AzureError):
        return {}
    return body if isinstance(body, dict) else {}


def _is_number(text: str | None) -> bool:
    return text is not None and text.replace(".", "", 1).isdecimal()
