"""A cloud that is the computer at hand: a machine is a folder, at 0 USD an hour; releasing it ends its processes."""

import shutil
from pathlib import Path

from infra import processes
from infra.cloud import Offer

STOP_PATIENCE_S = 15.0


class LocalCloud:
    """Machines are folders under `machines/`, each with the pid files and logs of what runs on it."""

    name = "local"

    def __init__(self, machines: Path) -> None:
        self._machines = machines

    def offers(self) -> list[Offer]:
        """One kind, free of charge."""
        return [Offer(kind="local", usd_per_hour=0.0)]

    def rent(self, offer: Offer, lease_id: str) -> str:
        """Make the machine's folder; its id is the lease's."""
        del offer  # there is only one kind
        self.folder(lease_id).mkdir(parents=True, exist_ok=True)
        return lease_id

    def folder(self, machine_id: str) -> Path:
        """Where a machine keeps its pid files and logs."""
        return self._machines / machine_id

    def find_ours(self) -> list[str]:
        """Every machine folder there is."""
        return sorted(entry.name for entry in self._machines.glob("*") if entry.is_dir())

    def release(self, machine_id: str) -> None:
        """End every process of the machine, whole sessions first, then whatever left its session; remove the folder."""
        folder = self.folder(machine_id)
        for pid_file in sorted(folder.glob("*.pid")):
            session = processes.session_of(pid_file)
            if session is not None:
                processes.end_session(session, STOP_PATIENCE_S)
        processes.end(processes.marked(machine_id), patience_s=2.0)
        shutil.rmtree(folder, ignore_errors=True)
