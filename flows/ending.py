"""How the process of a command or night ends: at once, the same way for every signal, and without noise on stderr."""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from infra.processes import detached

INTERRUPTED, TERMINATED = 130, 143
THREAD_PATIENCE_S = 10.0  # for what is still to be sent to a server that may be lost
_AT_ONCE = threading.Event()


def handle_stop_signals(data: Path) -> None:
    """Make SIGINT, SIGTERM and SIGHUP run the `finally` blocks and the exit handlers.

    Without this, SIGTERM or a closed terminal ends Python at once, and the API server that Prefect started for this run
    keeps running. A shell without job control makes background processes ignore SIGINT; a night still stops on it.
    What this process starts is marked as that of the data folder, for whoever tidies up if it is killed.
    """
    silence_stderr_at_exit()
    detached.own_children(data)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit())
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup: the night continues without its terminal
        signal.signal(signal.SIGHUP, lambda _number, _frame: sys.exit())


def exit_code_of(stop: KeyboardInterrupt | SystemExit) -> int:
    """The exit code of a stopped night, as a shell reports it for the signal."""
    return INTERRUPTED if isinstance(stop, KeyboardInterrupt) else TERMINATED


def run_program(main: Callable[[], None]) -> None:
    """Run the main function of this process, which ends after its exit handlers and frees nothing one by one.

    To free all modules of a night takes a second of CPU time. Call this before anything registers an exit handler.
    An exception other than SystemExit ends the process as usual, and so does an output that cannot be written.
    """
    codes: list[int] = []
    atexit.register(_exit_now, codes)
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            codes.append(end.code or 0)
        _end_if_at_once(codes)
        raise
    codes.append(0)
    _end_if_at_once(codes)


def end_at_once() -> None:
    """Make `run_program` wait for no thread: Prefect's would send their log to a lost server for minutes."""
    _AT_ONCE.set()


def _end_if_at_once(codes: list[int]) -> None:
    if codes and _AT_ONCE.is_set():
        atexit._run_exitfuncs()  # noqa: SLF001 - what Python itself calls, after it has waited for threads


def _exit_now(codes: list[int]) -> None:
    if not codes:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # Python tries it again, says so, and ends with another exit code
        return
    os._exit(codes[0])


def end_prefects_thread_at_exit() -> None:
    """Wait at the exit for Prefect's thread of background work, which has then sent every line of the log.

    Prefect itself only asks it to end. It holds the flow, and by it all modules, so that DuckDB's library would print
    80 lines of objects that it takes for leaked.
    """
    from prefect._internal.concurrency.threads import wait_for_global_loop_exit  # noqa: PLC0415 - Prefect is slow

    atexit.register(wait_for_global_loop_exit, THREAD_PATIENCE_S)


def silence_stderr_at_exit() -> None:
    """Close stderr after the last exit handler; call this before Prefect registers its own.

    Afterwards DuckDB's binding prints a page about objects that Prefect's threads still hold.
    """
    atexit.register(_silence_stderr)


def _silence_stderr() -> None:
    with Path(os.devnull).open("w") as null:
        os.dup2(null.fileno(), 2)
