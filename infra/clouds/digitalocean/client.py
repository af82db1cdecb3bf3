"""Calls to DigitalOcean: every failure is raised as one of our errors, and only harmless calls are repeated.

pydo by itself repeats a POST, raises nothing on a 404, and takes `timeout` for something else. Its retries are
therefore off, and every reply goes through `_unwrap`.
"""

import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    DecodeError,
    HttpResponseError,
    ServiceRequestError,
)
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
from bench.printable import printable_strings
from infra.clock import Clock, SystemClock
from infra.clouds.digitalocean.transport import AnswerTimes, BoundedTransport

PER_PAGE = 200
_RANDOM = secrets.SystemRandom()
# Errors of requests and urllib3, by their names.
_UNCONNECTED = frozenset({"ConnectTimeout", "NewConnectionError", "ConnectTimeoutError"})
TRIES_MAX = 6
BACKOFF_S, BACKOFF_MAX_S = 1.0, 30.0
BUSY_WAIT_S = 5.0
# The longest waits that the cloud's limits can need: one counts the calls of a minute, the other those of an hour.
RETRY_AFTER_MAX_S, RESET_MAX_S = 300.0, 3600.0
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, UNPROCESSABLE, TOO_MANY, SERVER_ERROR = 401, 403, 404, 422, 429, 500
NOT_YET = ("pending event", "in progress", "invalid key identifiers")  # a new key is usable after a while
NO_CAPACITY = ("not available", "unavailable", "capacity", "sold out", "out of stock")
OVER_LIMIT = ("limit", "quota")
# Errors that pydo returns as a reply instead of raising them.
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


class TimedClient(Client):  # type: ignore[misc]  # its types are not read
    """A pydo client that keeps the times of its answers."""

    def __init__(self, token: str, times: AnswerTimes, **options: Any) -> None:
        # In place of the policy that logs headers, among them the token.
        super().__init__(token, http_logging_policy=times, **options)
        self.times = times


CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")  # in which requests looks for a file of authorities


def make_client(
    token: SecretStr,
    endpoint: str,
    ca: Path | None,
    clock: Clock | None = None,
    *,
    connect_timeout_s: float = 10.0,
    read_timeout_s: float = 60.0,
) -> TimedClient:
    """A pydo client that repeats nothing, reads a whole answer within `read_timeout_s`, and logs no header.

    The environment's proxies and authorities are read once, here: requests would look for them and for a ~/.netrc
    before each call, which is a quarter of the call's CPU time, and would send the login of a ~/.netrc in place of the
    token.
    """
    trusted = str(ca) if ca else next(filter(None, map(os.environ.get, CA_VARIABLES)), True)
    return TimedClient(
        token.get_secret_value(),
        AnswerTimes(clock or SystemClock()),
        endpoint=endpoint,
        use_env_settings=False,
        proxies={} if proxy_bypass(urlsplit(endpoint).netloc) else getproxies(),
        retry_total=0,
        transport=BoundedTransport(
            connection_timeout=connect_timeout_s,
            read_timeout=read_timeout_s,
            connection_verify=trusted,
            use_env_settings=False,
        ),
    )


class Calls:
    """Calls to one account. `what` is the scope that a call needs, which also names what it does: droplet:create."""

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
        self._patience_s = patience_s  # the most that one repeated call may wait, all its pauses together
        self._jitter = jitter  # from 0 to 1, so that many throttled clients do not return together

    def once(self, what: str, call: Callable[[], Any], key: str | None = None) -> Any:
        """Make a call once; returns what its reply holds under `key`, or None for a reply that should be empty."""
        try:
            answer = call()
        except AzureError as error:
            raise self._ours(what, error) from error
        except ValueError as error:
            raise LostReplyError(f"{self._cloud}: the reply to {what} cannot be read: {error}") from error
        return self._unwrap(what, answer, key)

    def repeat(self, what: str, call: Callable[[], Any], key: str | None = None) -> Any:
        """Make a call that may be repeated, until it has a reply; bounded, with growing pauses.

        Raises CloudError when the time is over, CloudDeniedError and CloudUnknownError at once.
        """
        waited_s, trouble = 0.0, "the call was not sent"
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
        raise CloudError(f"{self._cloud} does not answer {what} ({trouble}): try again later")

    def pages(self, what: str, call: Callable[[int], Any], key: str) -> list[dict[str, Any]]:
        """Every row of a list, page after page; `call` takes the number of a page, from 1."""
        rows: list[dict[str, Any]] = []
        page = 1
        has_next = True
        while has_next:
            answers: list[Any] = []
            rows += self.repeat(what, partial(_collect, call, page, answers), key)
            has_next = bool(((answers[-1].get("links") or {}).get("pages") or {}).get("next"))
            page += 1
        return rows

    def _unwrap(self, what: str, answer: Any, key: str | None) -> Any:
        """The requested part of a reply, fit to be printed; pydo returns some errors as if they were replies."""
        if isinstance(answer, dict) and key is not None and key in answer:
            return printable_strings(answer[key])
        if isinstance(answer, dict) and "id" in answer and "message" in answer:
            raise self._refusal(what, STATUS_OF_ID.get(answer["id"], 400), answer, {})
        if key is None and not answer:
            return None
        raise LostReplyError(f"{self._cloud}: the reply to {what} does not have the expected {key or 'empty body'}")

    def _ours(self, what: str, error: AzureError) -> CloudError:
        """A failure of the library as one of our errors, by whether the call may have had its effect."""
        if isinstance(error, ServiceRequestError):
            return self._of_connection(what, error)
        if isinstance(error, HttpResponseError) and not isinstance(error, DecodeError) and error.response is not None:
            status = UNAUTHORIZED if isinstance(error, ClientAuthenticationError) else int(error.status_code or 0)
            response: Any = error.response  # its annotation is wrong
            return self._refusal(what, status, _body(response), dict(response.headers))
        return LostReplyError(f"{self._cloud}: the reply to {what} was lost ({type(error).__name__})")

    def _of_connection(self, what: str, error: ServiceRequestError) -> CloudError:
        message = str(error)
        if "CERTIFICATE_VERIFY_FAILED" in message:
            return CloudRefusedError(
                f"{self._cloud}: its certificate is not trusted: check NIGHTBENCH_DO_ENDPOINT and NIGHTBENCH_DO_CA"
            )
        if "non-TLS" in message:
            return CloudRefusedError(
                f"{self._cloud}: NIGHTBENCH_DO_ENDPOINT must begin with https://, since the token is sent to it"
            )
        if _is_never_sent(error):
            return NotAskedError(f"{self._cloud} cannot be reached for {what} ({message[:200]})")
        # The library calls a connection that broke over the answer a request error, too.
        return LostReplyError(f"{self._cloud}: the reply to {what} was lost ({message[:200]})")

    def _refusal(self, what: str, status: int, body: dict[str, Any], headers: dict[str, str]) -> CloudError:
        """The error for a status other than success."""
        message = f"{self._cloud} answers {what} with {status}: {body.get('message', 'no reason given')}"
        if status == UNAUTHORIZED:
            return CloudDeniedError(f"{message} The token is wrong or revoked: create one and set NIGHTBENCH_DO_TOKEN")
        if status == FORBIDDEN:
            return _forbidden(message, what)
        if status == NOT_FOUND:
            return CloudUnknownError(message)
        if status == TOO_MANY:
            return NotAskedError(message, self._turn_in_s({name.lower(): value for name, value in headers.items()}))
        if status >= SERVER_ERROR:
            return LostReplyError(message)
        return _classified(message, body, what)

    def _turn_in_s(self, headers: dict[str, str]) -> float:
        """How long to wait: as the cloud states, else until the oldest of our calls no longer counts; bounded."""
        now_s = self._clock.now().timestamp()
        stated_s = _seconds(headers.get("retry-after", ""), now_s)
        if stated_s is not None:
            return min(max(1.0, stated_s), RETRY_AFTER_MAX_S)
        reset_at = _number(headers.get("ratelimit-reset", ""))
        return BACKOFF_MAX_S if reset_at is None else min(max(1.0, reset_at - now_s), RESET_MAX_S)


def page_of(number: int) -> dict[str, int]:
    """The query for a list's page of this number, from 1."""
    return {"per_page": PER_PAGE, "page": number}


def _forbidden(message: str, what: str) -> CloudError:
    """The error for a missing scope, or for a quota of volumes, which the cloud refuses with the same status."""
    if any(phrase in message.lower() for phrase in OVER_LIMIT):
        return _over_limit(message, what)
    return CloudDeniedError(
        f"{message} The token lacks the scope {what}: create one that has it and set NIGHTBENCH_DO_TOKEN", is_scope=True
    )


def _classified(message: str, body: dict[str, Any], what: str) -> CloudError:
    """The error for a status with many reasons, which only its message distinguishes; an unknown one is final."""
    lowered = message.lower()
    if any(phrase in lowered for phrase in NOT_YET):
        return NotAskedError(message, BUSY_WAIT_S)
    attributes = body.get("error_attributes") or {}
    if any(phrase in lowered for phrase in NO_CAPACITY):
        return NoCapacityError(message, tuple(attributes.get("available_regions") or ()))
    if any(phrase in lowered for phrase in OVER_LIMIT):
        return _over_limit(message, what)
    return CloudRefusedError(message)


def _over_limit(message: str, what: str) -> CloudLimitError:
    """The error for a limit of the account, with what to do about it."""
    if what.startswith("block_storage"):
        return CloudLimitError(f"{message}: delete volumes (nightbench leases lists ours), or ask for a higher limit")
    advice = "release running machines (nightbench leases lists them), or ask the cloud for a higher limit"
    return CloudLimitError(f"{message}: {advice}; GPU machines have their own limit, 0 for a new account")


def _collect(call: Callable[[int], Any], page: int, answers: list[Any]) -> Any:
    """A page's reply, also appended to `answers`: its rows alone do not show whether there is another page."""
    answers.append(call(page))
    return answers[-1]


def _body(response: Any) -> dict[str, Any]:
    try:
        body = response.json()
    except (ValueError, AzureError):
        return {}
    return body if isinstance(body, dict) else {}


def _seconds(stated: str, now_s: float) -> float | None:
    """The seconds from now that a `retry-after` header states as a number or as a date; None where it is neither."""
    with suppress(ValueError, OverflowError):
        return parsedate_to_datetime(stated).timestamp() - now_s
    return _number(stated)


def _number(text: str) -> float | None:
    """A number of ASCII digits without a sign; None for any other text."""
    return float(text) if re.fullmatch(r"\d+(\.\d*)?", text, re.ASCII) else None


def _is_never_sent(error: ServiceRequestError) -> bool:
    """Whether no connection was made, so that the request cannot have arrived."""
    inner: Any = error.inner_exception
    why = getattr(inner.args[0], "reason", inner.args[0]) if inner is not None and inner.args else None
    why = getattr(why, "original_error", why)  # of a proxy
    return any(one.__name__ in _UNCONNECTED for of in (inner, why) for one in type(of).__mro__)
