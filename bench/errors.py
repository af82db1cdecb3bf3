"""Every error we raise on purpose: one class for each thing a reader would do differently.

`exit_code` follows the command line's promise: 1 found something wrong, 2 wrong usage, 3 the outside world failed.
"""


class NightbenchError(Exception):
    """A failure we understand; its message says what happened, to what, and what to do next."""

    exit_code = 3
    stage: str | None = None


class UsageError(NightbenchError):
    """The caller asked for something that cannot be; nothing was started."""

    exit_code = 2


class SuiteError(UsageError):
    """A suite file does not say what it must; the message names file and line."""

    stage = "plan"


class CatalogError(UsageError):
    """A file of the catalogue does not hold what it must; the message names file, line and column."""


class UnreadableResultError(NightbenchError):
    """A result file or run folder cannot be read as what it claims to be."""

    exit_code = 1
    stage = "load"


class UnknownFormatError(UnreadableResultError):
    """A file is of no format that any importer knows; it may well be no result file at all."""


class ToldBesideError(UnreadableResultError):
    """A file is a part of the result beside it, and no result of its own."""


class LoadIntoWarehouseError(NightbenchError):
    """The lake or the warehouse could not be written; the run folders are untouched."""

    stage = "load"


class NoSpaceError(NightbenchError):
    """A disk is too full for what comes next."""


class EngineBuildError(NightbenchError):
    """The engine's own environment could not be built."""

    stage = "engine"


class ModelError(NightbenchError):
    """Weights are missing, corrupt or of a kind we cannot fetch."""

    stage = "model"


class LeaseError(NightbenchError):
    """A machine could not be rented, or is not ours to use."""

    stage = "provision"


class LedgerError(LeaseError):
    """The ledger cannot be read or written; nothing may be rented without it, and everything may be given back."""


class CloudError(LeaseError):
    """A cloud could not be asked, or answered what we cannot read."""


class CloudDeniedError(CloudError):
    """The cloud turns our token away; asking again is of no use. A lacking scope keeps it from one thing only."""

    def __init__(self, message: str, *, is_scope: bool = False) -> None:
        super().__init__(message)
        self.is_scope = is_scope


class CloudRefusedError(CloudError):
    """The cloud will not do what was asked, today or tomorrow; nothing was rented."""


class CloudLimitError(CloudError):
    """The account may not rent more; nothing was rented."""


class CloudUnknownError(CloudError):
    """The cloud knows nothing of that name or id, now."""


class NoCapacityError(CloudError):
    """The cloud has no such machine left there; nothing was rented. `regions` are those it names instead."""

    def __init__(self, message: str, regions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.regions = regions


class NotAskedError(CloudError):
    """A call never arrived, or was turned away unread: it had no effect and may be made again after `wait_s`."""

    def __init__(self, message: str, wait_s: float = 1.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class LostReplyError(CloudError):
    """A call was sent and its answer was lost: only looking tells whether it had its effect."""


class MachineUnfitError(NightbenchError):
    """A machine was reached and is not what the suite needs, or is in use."""

    stage = "machine"


class BudgetError(NightbenchError):
    """The next stage would cost more than the night may spend; what is rented is given back all the same."""

    stage = "budget"


class ObjectStoreError(NightbenchError):
    """A bucket could not be reached, or refused; what was measured is kept on this computer.

    `is_refusal`: it will refuse the next time as well, until the settings or the keys are others.
    """

    stage = "salvage"

    def __init__(self, message: str, *, is_refusal: bool = False) -> None:
        super().__init__(message)
        self.is_refusal = is_refusal


class PortInUseError(NightbenchError):
    """Somebody else listens where the engine must."""

    stage = "server"


class ServerStartError(NightbenchError):
    """The engine never became ready; the message holds its log's own words."""

    stage = "server"


class ServerDiedError(NightbenchError):
    """The engine was ready and is gone; the message holds its log's own words."""

    stage = "server"


class CalibrationError(NightbenchError):
    """The load client's error could not be measured."""

    stage = "calibrate"


class LoadDriverError(NightbenchError):
    """The load client failed or measured nothing usable."""

    stage = "load-drive"


class LmEvalError(NightbenchError):
    """A task of lm-eval was asked and gave no score."""

    stage = "lm-eval"


class HostError(NightbenchError):
    """A machine at the other end of SSH failed us."""

    stage = "machine"


class UnreachableHostError(HostError):
    """A machine cannot be reached: refused, reset, no route, or silent before anybody was let in."""


class HostKeyError(HostError):
    """A machine showed another host key than the one that is known for it; nothing was sent to it."""


class LoginRefusedError(HostError):
    """A machine does not let our key in."""


class NotReadyError(HostError):
    """A machine lets us in, but does not run what we ask: its first boot is not over."""


class SilentHostError(HostError):
    """A machine that was connected said nothing for longer than a step may take."""


class LostConnectionError(HostError):
    """The connection broke in the middle of a step; whether the step was done is not known."""


class RemoteCommandError(HostError):
    """A command ran on a machine and failed; the message holds its own words."""


class TransferError(HostError):
    """A file did not arrive as it was sent; nothing stands under its final name."""


class EnvironmentOnMachineError(HostError):
    """What the measuring code needs cannot be installed on a machine; the message holds the installer's own words."""


class RemoteJobLostError(HostError):
    """What was running for us on a machine ended without an answer: killed there, or out of memory."""


class RemoteJobCrashedError(Exception):
    """A bug met on a machine: nothing that we understand, so it ends the night as one met here does."""
