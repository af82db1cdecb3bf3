"""One deadline for a call into a library whose own timeouts count from byte to byte."""

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def finish_within(seconds: float, work: Callable[[], T]) -> T:
    """The result of this work, or its exception; TimeoutError after so many seconds.

    The work runs in a thread of its own, which is then left to itself: only for work that changes nothing elsewhere.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name="nightbench answer")
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"not finished after {seconds:g} s")
    return results[0]
