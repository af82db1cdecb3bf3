"""Do several things at once in threads of this process, and stop all of them when this process is stopped.

A signal reaches the main thread only. What ends its wait is raised in each thread too, as the signal would be there:
every `finally` of a thread runs, and nothing is left for the main thread but to wait for it.
"""

import contextvars
import ctypes
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
LOOK_S = 0.5
STOP_PATIENCE_S = 120.0  # for the release of a machine, which first collects its results


def side_by_side(
    calls: Mapping[str, Callable[[], T]], at_once: int, stop_patience_s: float = STOP_PATIENCE_S
) -> dict[str, T]:
    """What each call returns, with at most so many at once; each has a copy of this thread's context.

    An exception of one is raised when all others have ended. Where this thread is interrupted, each running call gets
    SystemExit, at the latest when it returns from a call of the system, and none begins. The interruption goes on when
    all have ended, or after `stop_patience_s`.
    """
    threads = _Threads()
    pool = ThreadPoolExecutor(max(1, min(at_once, len(calls))), thread_name_prefix="side-by-side")
    try:
        running = {name: pool.submit(contextvars.copy_context().run, threads.run, call) for name, call in calls.items()}
        while wait(running.values(), LOOK_S).not_done:  # a wait without an end may not notice a signal
            pass
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        threads.stop(stop_patience_s)
        raise
    pool.shutdown()
    return {name: future.result() for name, future in running.items()}


class _Threads:
    """The threads that are at work, so that an exception can be raised in each of them, and in no other."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._at_work: set[int] = set()
        self._is_stopped = False

    def run(self, call: Callable[[], T]) -> T:
        """Call this, unless all are stopped."""
        me = threading.get_ident()
        with self._changed:
            if self._is_stopped:
                raise SystemExit
            self._at_work.add(me)
        try:
            return call()
        finally:
            try:
                self._leave(me)
            except SystemExit:  # raised by `stop` at this very moment
                self._leave(me)
                raise

    def _leave(self, thread: int) -> None:
        with self._changed:
            self._at_work.discard(thread)
            self._changed.notify_all()

    def stop(self, patience_s: float) -> None:
        """Raise SystemExit in each thread that is at work, and wait until all have ended, so long at most."""
        with self._changed:
            self._is_stopped = True
            for thread in self._at_work:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(SystemExit))
            self._changed.wait_for(lambda: not self._at_work, patience_s)
