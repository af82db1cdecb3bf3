"""Every expected error: one class for each thing that a reader would do differently.

A message may quote a machine, so its control characters are removed. `exit_code`: 1 something wrong was found,
2 wrong usage, 3 the outside world failed.
"""

from collections.abc import Mapping
from traceback import format_exception

from bench.printable import printable

MESSAGE_MAX, TRACE_MAX = 500, 20_000  # characters that are kept of an exception that nothing expects


class NightbenchError(Exception):
    """An expected failure; its message says what failed, on what, why, and what to do next."""

    exit_code = 3
    stage: str | None = None
    failure: str | None = None  # the class of an engine's failure, a name of bench/engines/vllm_failures.py
    trace: str | None = None  # the traceback, where no part of Nightbench expects what happened
    ending: str | None = None  # the name of the state of a night that this ends, where no person must act

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


class UsageError(NightbenchError):
    """Wrong usage; nothing was started."""

    exit_code = 2


class BadRunsError(NightbenchError):
    """A night ended with runs that are rejected, failed or were not run; everything that it measured is loaded."""

    exit_code = 1

    def __init__(self, night: str, verdicts: Mapping[str, int]) -> None:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
        super().__init__(f"runs of night {night}: {counts}; `nightbench report {night}` writes a page with the reasons")
        self.night = night
        self.verdicts = verdicts


class SuiteError(UsageError):
    """A suite file is invalid; the message names file and line."""

    stage = "plan"


class CatalogError(UsageError):
    """A file of the catalogue is invalid; the message names file, line and column."""


class UnreadableResultError(NightbenchError):
    """A result file or run folder cannot be read."""

    exit_code = 1
    stage = "load"


class UnknownFormatError(UnreadableResultError):
    """No importer knows the format of a file; it may be no result file."""


class ToldBesideError(UnreadableResultError):
    """A file is part of the result beside it and is read with that."""


class LoadIntoWarehouseError(NightbenchError):
    """The lake or the warehouse could not be written; the run folders are untouched."""

    stage = "load"


class NoSpaceError(NightbenchError):
    """A disk has too little free space."""


class EngineBuildError(NightbenchError):
    """The engine's own environment could not be built."""

    stage = "engine"


class ModelError(NightbenchError):
    """Weights are missing, corrupt, or from a source that cannot be downloaded."""

    stage = "model"


class LeaseError(NightbenchError):
    """A machine could not be rented, or belongs to another lease."""

    stage = "provision"


class MachineInUseError(LeaseError):
    """Another night measures on this machine; nothing was started."""


class LedgerError(LeaseError):
    """The ledger cannot be read or written. Nothing is rented without it; releasing still works."""


class AccountError(LeaseError):
    """The token is of another account than the one that a machine was rented in, which shows nothing of it."""


class CloudError(LeaseError):
    """A call to a cloud failed, or its response cannot be read."""


class CloudDeniedError(CloudError):
    """The cloud rejects the token; a retry does not help. `is_scope`: it lacks the scope of one call only."""

    def __init__(self, message: str, *, is_scope: bool = False) -> None:
        super().__init__(message)
        self.is_scope = is_scope


class CloudRefusedError(CloudError):
    """The cloud rejects a request for good; nothing was rented."""


class HostInUseError(CloudRefusedError):
    """Another lease holds a host of your own; nothing was taken."""


class CloudLimitError(CloudError):
    """The account's limit is reached; nothing was rented."""


class CloudUnknownError(CloudError):
    """The cloud has nothing of this name or id now."""


class NoCapacityError(CloudError):
    """The cloud has no capacity there; nothing was rented. `regions` are the alternatives that it names."""

    ending = "No capacity"

    def __init__(self, message: str, regions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.regions = regions


class NotAskedError(CloudError):
    """A call did not arrive or was rejected unread: it had no effect and may be repeated after `wait_s`."""

    def __init__(self, message: str, wait_s: float = 1.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class LostReplyError(CloudError):
    """A call was sent and its response was lost; whether it had an effect must be looked up."""


class MachineUnfitError(NightbenchError):
    """A machine is reachable but does not meet the suite's needs, or is in use."""

    stage = "machine"


class MachinesEndedError(NightbenchError):
    """Machines of a night over several ended early; what the others measured stands."""


class BudgetError(NightbenchError):
    """The next stage or machine would exceed a budget, the night's or the month's; machines are still released."""

    stage = "budget"
    ending = "Out of budget"


class ObjectStoreError(NightbenchError):
    """A bucket is unreachable or refused; the run folders stay on this computer.

    `is_refusal`: a retry fails too, until the settings or the keys change.
    """

    stage = "salvage"

    def __init__(self, message: str, *, is_refusal: bool = False) -> None:
        super().__init__(message)
        self.is_refusal = is_refusal


class MissingObjectError(ObjectStoreError):
    """The bucket of the lake lacks an object that the lake's manifest names."""


class RefusedFileError(NightbenchError):
    """A machine or a bucket offers a file whose name, kind or size is refused; it was not copied."""

    stage = "salvage"


class PortInUseError(NightbenchError):
    """Another process listens on the engine's port."""

    stage = "server"


class ServerStartError(NightbenchError):
    """The engine did not become ready; the message quotes its log."""

    stage = "server"


class ServerDiedError(NightbenchError):
    """The engine exited after it was ready; the message quotes its log."""

    stage = "server"


class CalibrationError(NightbenchError):
    """The load client's error could not be measured."""

    stage = "calibrate"


class LoadDriverError(NightbenchError):
    """The load client failed or measured nothing usable."""

    stage = "load-drive"


class LmEvalError(NightbenchError):
    """A task of lm-eval ran and returned no score."""

    stage = "lm-eval"


class HostError(NightbenchError):
    """A machine failed over SSH."""

    stage = "machine"


class UnreachableHostError(HostError):
    """A machine is unreachable: refused, reset, no route, or no answer before the login."""


class HostKeyError(HostError):
    """A machine has another host key than the known one; nothing was sent to it."""


class LoginRefusedError(HostError):
    """A machine rejects the SSH key."""


class NotReadyError(HostError):
    """A machine accepts the login but runs no command: its first boot is not finished."""


class SilentHostError(HostError):
    """A connected machine did not answer within the time limit of a step."""


class LostConnectionError(HostError):
    """The connection broke during a step; whether the step finished is unknown."""


class RemoteCommandError(HostError):
    """A command failed on a machine; the message quotes its output."""


class TransferError(HostError):
    """A file did not arrive as it was sent; its final name was not created."""


class EnvironmentOnMachineError(HostError):
    """The environment of the measuring code cannot be installed on a machine; the message quotes the installer."""


class RemoteJobLostError(HostError):
    """A remote job ended without a result: killed, or out of memory."""


class RemoteJobCrashedError(Exception):
    """A bug on a machine: an exception there that nothing expects; the message has its traceback."""


class UnexpectedError(NightbenchError):
    """An exception that nothing expects ended a run or the start of its server; `trace` is its traceback."""


def unexpected(error: Exception) -> UnexpectedError:
    """An exception that nothing expects, as one of ours: with its class, its message and its traceback."""
    trace = str(error) if isinstance(error, RemoteJobCrashedError) else "".join(format_exception(error))
    lines = str(error).strip().splitlines()
    said = lines[-1 if isinstance(error, RemoteJobCrashedError) else 0] if lines else "no message"
    made = UnexpectedError(
        f"unexpected {type(error).__name__}: {said[:MESSAGE_MAX]}; report it with the traceback in record.json"
    )
    made.trace = printable(trace[-TRACE_MAX:])
    return made
