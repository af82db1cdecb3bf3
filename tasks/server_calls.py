"""Calls to Prefect's server that no night waits for: one thread makes them in their order, and repeats what failed.

What a night shows is worth nothing to its machine, which bills meanwhile. So a server that is stopped or gone delays
only this thread, and a server that comes back gets everything that is still to be shown.
"""

import contextvars
import itertools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

import httpx
from prefect.client.orchestration import get_client
from prefect.context import SettingsContext, get_settings_context
from prefect.exceptions import PrefectHTTPStatusError
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, Settings

LOG = logging.getLogger("nightbench")
RETRY_S = 2.0
Call = Callable[[], object]


@dataclass(frozen=True)
class _Waiting:
    """A call in the context of the flow or task that made it."""

    what: str
    call: Call
    context: contextvars.Context


class ServerCalls:
    """Calls that are still to be made, oldest first."""

    def __init__(self, retry_s: float = RETRY_S) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[object, _Waiting] = {}
        self._numbers = itertools.count()
        self._retry_s = retry_s
        self._is_started = False
        self.is_lost = False

    def post(self, what: str, call: Call, key: object = None) -> None:
        """Have a call made later; returns at once. A call replaces one of the same key that is not made yet."""
        one = _Waiting(what, call, contextvars.copy_context())
        with self._changed:
            self._waiting[next(self._numbers) if key is None else key] = one
            if not self._is_started:
                self._is_started = True
                threading.Thread(target=self._make, name="prefect-server-calls", daemon=True).start()
            self._changed.notify_all()

    def settle(self, patience_s: float) -> bool:
        """Wait until every call is made, for so long at most; returns whether all are."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, patience_s)

    def responds(self, patience_s: float) -> bool:
        """Whether the server responds within this time, and has everything that was to be shown."""
        self.post("the end of this run", _ask_version, "version")
        return self.settle(patience_s)

    def _make(self) -> None:
        """Make every call, for as long as this process lives."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
            self._make_oldest()

    def _make_oldest(self) -> None:
        """Make one call. No frame of the thread that waits for the next one may hold it.

        Its context holds flows, and these all modules: DuckDB's library would report them as leaked when Python exits.
        """
        with self._changed:
            key, one = next(iter(self._waiting.items()))
        is_made = self._is_made(one)
        with self._changed:
            if is_made and self._waiting.get(key) is one:
                del self._waiting[key]
                self._changed.notify_all()
            elif not is_made:
                self._changed.wait(self._retry_s)

    def _is_made(self, one: _Waiting) -> bool:
        """Make a call once; False if the server did not respond, so the call must be repeated."""
        try:
            one.context.copy().run(_without_retries, one.call)
        except PrefectHTTPStatusError as error:
            if error.response.is_server_error:
                return self._lost(one, error)
            LOG.warning("Prefect does not show %s: %s", one.what, error)
        except httpx.HTTPError as error:
            return self._lost(one, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, what follows must still be shown
            LOG.warning("Prefect does not show %s: %s: %s", one.what, type(error).__name__, error)
        if self.is_lost:
            self.is_lost = False
            LOG.info("Prefect's server responds again")
        return True

    def _lost(self, one: _Waiting, error: Exception) -> bool:
        if not self.is_lost:
            self.is_lost = True
            why = str(error) or type(error).__name__
            LOG.warning("Prefect's server does not respond, so %s is shown later; the night goes on: %s", one.what, why)
        return False


def _without_retries(call: Call) -> None:
    """Make a call once: Prefect's own client would repeat it for minutes, also when it is outdated."""
    own = get_settings_context()
    with SettingsContext(profile=own.profile, settings=_MADE.without_retries(own.settings)):
        call()


class _MadeSettings:
    """The settings without retries, made once: it takes as long as ten calls, and a load is measured meanwhile."""

    def __init__(self) -> None:
        self._last: tuple[Settings, Settings] | None = None

    def without_retries(self, settings: Settings) -> Settings:
        """These settings but for the retries of Prefect's client."""
        if self._last is None or self._last[0] is not settings:
            self._last = settings, settings.copy_with_update({PREFECT_CLIENT_MAX_RETRIES: 0})
        return self._last[1]


def _ask_version() -> None:
    with get_client(sync_client=True) as client:
        client.api_version()


_MADE = _MadeSettings()
CALLS = ServerCalls()  # of this process, which has one server
post, responds = CALLS.post, CALLS.responds
