"""The console of a flow run that outlives whoever reads it: a worker that is killed ends no night."""

import logging
import os
import sys

from prefect.logging.handlers import PrefectConsoleHandler


class LastingConsole(PrefectConsoleHandler):
    """Prints each line of the log for the worker, and drops it once the worker is gone.

    A worker reads the output of its runs through a pipe. Rich, which Prefect's console prints by, ends the program by
    SystemExit(1) where the reader of a pipe has gone: a night would end as crashed at its next line.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line; the server and the file of the night get it all the same."""
        try:
            super().emit(record)
        except SystemExit:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in (sys.stdout, sys.stderr):  # whatever prints, such as a library's progress bar
                os.dup2(nowhere, stream.fileno())
