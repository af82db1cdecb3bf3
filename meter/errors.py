"""Errors that stop a run, each with its exit code."""


class MeterError(Exception):
    """The run cannot go on; the message is one sentence for the user."""

    exit_code = 1


class UsageError(MeterError):
    """The plan, the command line or the output folder is wrong; nothing was sent."""

    exit_code = 2


class OutsideWorldError(MeterError):
    """The server, the network or a limit of this host prevents the run."""

    exit_code = 3


class StoppedError(MeterError):
    """A signal arrived before anything was sent."""

    def __init__(self, number: int) -> None:
        super().__init__("Stopped before anything was sent.")
        self.exit_code = 128 + number
