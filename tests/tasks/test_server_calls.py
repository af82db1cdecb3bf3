"""What a night shows in Prefect never holds the night up, whatever Prefect's server does."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from uuid import uuid4

import httpx
import pytest
from prefect.exceptions import PrefectHTTPStatusError
from prefect.settings import PREFECT_API_URL, Settings, get_current_settings, temporary_settings

from bench.night_progress import LoadProgress
from tasks import artifacts
from tasks.artifacts import NightProgress
from tasks.server_calls import ServerCalls

PATIENCE_S = 60.0


@pytest.fixture
def calls() -> ServerCalls:
    return ServerCalls(retry_s=0.01)


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A server that accepts and never responds, as one that is stopped."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=64)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/api"


def test_progress_waits_for_no_server_and_only_its_newest_value_is_still_to_be_shown(
    silent_server: str, calls: ServerCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "post", calls.post)
    shown: list[float] = []
    release = threading.Event()
    bar = uuid4()
    monkeypatch.setitem(artifacts.BARS, bar, uuid4())
    monkeypatch.setattr(artifacts, "update_progress_artifact", lambda _bar, percent, _line: shown.append(percent))

    with temporary_settings({PREFECT_API_URL: silent_server}):
        calls.post("its version", lambda: release.wait(PATIENCE_S))
        progress = NightProgress(total=10, done=0, artifact=bar)
        for _ in range(10):
            progress.within_run(LoadProgress(0.5))
            progress.run_is_over()
        assert not calls.settle(0.0)
        release.set()

    assert calls.settle(PATIENCE_S)
    assert shown == [100.0]


def test_a_server_that_never_responds_is_not_waited_for(silent_server: str, calls: ServerCalls) -> None:
    with temporary_settings({PREFECT_API_URL: silent_server}):
        assert not calls.responds(0.1)
    calls.post("nothing", lambda: None, "version")  # in its place, or a thread asks this port until the tests end


def test_an_answer_that_is_not_prefects_ends_no_thread(calls: ServerCalls) -> None:
    made: list[str] = []

    calls.post("the plan", failing_once(json.JSONDecodeError("Expecting value", "<html>", 0), made))
    calls.post("the results", lambda: made.append("second"))

    assert calls.settle(PATIENCE_S)
    assert made == ["second"]


def failing_once(error: Exception, made: list[str]) -> Callable[[], None]:
    failures = [error]

    def call() -> None:
        if failures:
            raise failures.pop()
        made.append("first")

    return call


def test_what_a_lost_server_did_not_get_is_shown_in_order_when_it_is_back(calls: ServerCalls) -> None:
    made: list[str] = []

    calls.post("the plan", failing_once(httpx.ConnectError("refused"), made))
    calls.post("the results", lambda: made.append("second"))

    assert calls.settle(PATIENCE_S)
    assert made == ["first", "second"]
    assert not calls.is_lost


def test_what_a_server_refuses_is_not_repeated(calls: ServerCalls) -> None:
    made: list[str] = []
    request = httpx.Request("POST", "http://server/api/artifacts")
    refusal = PrefectHTTPStatusError("no", request=request, response=httpx.Response(404, request=request))

    calls.post("the plan", failing_once(refusal, made))

    assert calls.settle(PATIENCE_S)
    assert made == []


def test_the_calls_of_a_run_share_settings_without_retries_and_those_of_another_run_have_their_own(
    calls: ServerCalls,
) -> None:
    seen: list[Settings] = []
    urls = ("http://one.example/api", "http://other.example/api")

    for url in urls:
        with temporary_settings({PREFECT_API_URL: url}):
            for _ in range(2):
                calls.post("the progress", lambda: seen.append(get_current_settings()))
    assert calls.settle(PATIENCE_S)

    assert [settings.api.url for settings in seen] == [url for url in urls for _ in range(2)]
    assert {settings.client.max_retries for settings in seen} == {0}
    assert (seen[0] is seen[1], seen[2] is seen[3]) == (True, True)  # to make them costs more than a call
