"""The cloud that is this computer: a machine is a folder and costs 0 USD/h; releasing it ends its processes."""

import shutil
from datetime import datetime
from pathlib import Path

from bench.errors import CloudError, MachineUnfitError
from bench.machine.names import PREFIX, MachineName
from infra.clock import Clock, SystemClock
from infra.clouds.cloud import Cloud, CloudMachine, MachineOrder, Offer
from infra.engines import container
from infra.hardware.power_cap import UNDO, undo_cap
from infra.processes import detached

STOP_PATIENCE_S = 15.0


class LocalCloud(Cloud):
    """Machines are folders under `machines/`, each with the pid files and logs of its processes."""

    name = "local"
    settle_s = 0.0
    is_shared = False
    prefix = PREFIX

    def __init__(self, machines: Path, clock: Clock | None = None) -> None:
        self._machines = machines
        self._clock = clock or SystemClock()

    def now(self) -> datetime:
        """The time on this computer."""
        return self._clock.now()

    def offers(self) -> list[Offer]:
        """One kind, at no cost."""
        return [Offer(kind="local", usd_per_hour=0.0)]

    def rent(self, order: MachineOrder) -> CloudMachine:
        """Create the machine's folder; its id is the lease's."""
        self.folder(order.name.lease_id).mkdir(parents=True, exist_ok=True)
        return self._found(order.name.lease_id)

    def folder(self, machine_id: str) -> Path:
        """The folder with a machine's pid files and logs."""
        return self._machines / machine_id

    def find_by_id(self, machine_id: str) -> CloudMachine | None:
        """A machine whose folder exists."""
        return self._found(machine_id) if self.folder(machine_id).is_dir() else None

    def find(self, name: str) -> list[CloudMachine]:
        """The machine of the lease in this name, if it exists."""
        wanted = MachineName.parse(name)
        return [found for found in self.find_ours() if wanted is not None and found.machine_id == wanted.lease_id]

    def find_ours(self) -> list[CloudMachine]:
        """Every machine folder."""
        return [self._found(entry.name) for entry in sorted(self._machines.glob("*")) if entry.is_dir()]

    def _found(self, machine_id: str) -> CloudMachine:
        # A folder's name holds no deadline; the ledger beside it does.
        name = str(MachineName(machine_id, 1, None))
        return CloudMachine(machine_id, name, status="active", address="127.0.0.1", kind="local", usd_per_hour=0.0)

    def release(self, machine_id: str) -> None:
        """End every process of the machine, sessions first, set power caps back, and delete the folder.

        Raises CloudError where a cap cannot be set back; then the folder stays, and this may be repeated.
        """
        folder = self.folder(machine_id)
        try:
            container.remove_all(folder)  # a container is docker's child: ending our processes would not end it
        finally:
            for pid_file in sorted(folder.glob("*.pid")):
                session = detached.session_of(pid_file)
                if session is not None:
                    detached.end_session(session, STOP_PATIENCE_S)
            detached.end(detached.marked(machine_id), patience_s=2.0)
        if (folder / UNDO).exists():
            try:
                undo_cap(folder)
            except MachineUnfitError as error:
                raise CloudError(str(error)) from error
        shutil.rmtree(folder, ignore_errors=True)
