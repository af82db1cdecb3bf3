"""Functions in forked processes, which may kill themselves: cheap, because nothing is imported anew."""

import os
import traceback
from collections.abc import Callable
from typing import Any


def forked(work: Callable[..., object], *arguments: Any) -> int:
    """Run a function in a child of this process; returns its process id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(*arguments)
            code = 0
        except BaseException:  # noqa: BLE001  a child of a test must never go on with the tests
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    """Wait for a child: its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
