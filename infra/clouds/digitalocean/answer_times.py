"""The cloud's own time, read off the answers of its API."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from azure.core.pipeline.policies import SansIOHTTPPolicy

from infra.clock import Clock


class AnswerTimes(SansIOHTTPPolicy):  # type: ignore[type-arg]  # its types of requests are not used here
    """The cloud's own time, by the Date header of its latest answer and the time that has passed since."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest: tuple[datetime, float] | None = None

    def on_response(self, request: Any, response: Any) -> None:
        """Keep the time of an answer, where it states one."""
        del request
        with suppress(ValueError, OverflowError, TypeError):
            stated = parsedate_to_datetime(response.http_response.headers.get("date"))
            self._latest = stated.astimezone(UTC), self._clock.monotonic()

    def now(self) -> datetime | None:
        """The cloud's time, to the second; None where no answer has stated it."""
        if self._latest is None:
            return None
        stated, at_s = self._latest
        return stated + timedelta(seconds=self._clock.monotonic() - at_s)
