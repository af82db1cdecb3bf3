"""The ways in which a run cannot begin or go on, each with its exit code."""


class MeterError(Exception):
    """A run that cannot go on; the text is one sentence for the person who started it."""

    exit_code = 1


class UsageError(MeterError):
    """The plan, the command line or the output folder is wrong; nothing was sent."""

    exit_code = 2


class OutsideWorldError(MeterError):
    """The server, the network or this host's limits stand in the way."""

    exit_code = 3


class StoppedError(MeterError):
    """A signal came before anything was sent."""

    def __init__(self, number: int) -> None:
        super().__init__("Stopped before anything was sent.")
        self.exit_code = 128 + number
