"""Several things at once: what each returns, what one raises, and what an interruption does to all."""

import signal
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from infra.processes.side_by_side import side_by_side

NAMED: ContextVar[str] = ContextVar("named", default="")


def test_each_call_returns_its_result_in_a_thread_with_this_context() -> None:
    NAMED.set("night")
    both = threading.Barrier(2, timeout=300)

    def call(number: int) -> Callable[[], str]:
        return lambda: f"{NAMED.get()} {number} {both.wait() >= 0}"

    assert side_by_side({"a": call(1), "b": call(2)}, 2) == {"a": "night 1 True", "b": "night 2 True"}


def test_what_one_raises_comes_after_the_others_have_ended() -> None:
    has_ended = threading.Event()

    def fail() -> None:
        raise ValueError("one")

    def end() -> None:
        has_ended.set()

    with pytest.raises(ValueError, match="one"):
        side_by_side({"fails": fail, "ends": end}, 1)

    assert has_ended.is_set()


def test_an_interruption_runs_what_each_thread_does_at_its_end_and_begins_nothing_more() -> None:
    at_work, released = threading.Barrier(3, timeout=300), list[str]()

    def rent(name: str) -> Callable[[], None]:
        def call() -> None:
            try:
                at_work.wait()
                while True:
                    time.sleep(0.01)
            finally:
                released.append(name)

        return call

    def interrupt() -> None:
        at_work.wait()
        _interrupt_main()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores SIGINT
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            side_by_side({"a": rent("a"), "b": rent("b"), "c": rent("c")}, 2)
    finally:
        signal.signal(signal.SIGINT, before)

    assert sorted(released) == ["a", "b"]


def _interrupt_main() -> None:
    import _thread  # noqa: PLC0415 - there is no other way to interrupt the main thread alone

    _thread.interrupt_main()
