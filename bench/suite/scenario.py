"""One point of the matrix, and the ids that decide which measurements are comparable."""

import hashlib
import json
from typing import Any, Self

from pydantic import Field

from bench.frozen import Frozen
from bench.suite.engine import TRACING, Engine
from bench.suite.machine import RENTING, Machine, as_measured, hardware_of
from bench.suite.model import KEEPING, Model
from bench.suite.workload import Workload


class Scenario(Frozen):
    """One point of the matrix: everything that can move a number, and its label."""

    name: str
    machine: Machine
    model: Model
    engine: Engine
    workload: Workload
    fallback_of: str | None = None  # id of the scenario that ran out of memory; this is its ladder's rung number `rung`
    rung: int = Field(default=0, ge=0)  # from 1; 0: as the suite asks
    client_hosts: int = Field(default=0, ge=0)  # that share the load, over SSH; 0: the computer that measures
    power_cap_w: float | None = Field(default=None, gt=0)  # of each GPU; None: as the machine has it
    is_control: bool = False  # the suite's control, never a scenario of it, even if it asks for the same

    @property
    def scenario_id(self) -> str:
        """Hash of everything that can move a number; labels and settings at their default are left out of it."""
        labels: dict[str, Any] = {"name": True, "model": {"name"} | KEEPING, "machine": RENTING}
        labels["engine"] = TRACING
        # Files count by their content, and what the suite allows moves no number.
        labels["workload"] = {"trace": True, "random_speculation": True, "prompts": {"file"}}
        return _digest(self._as_measured().model_dump(mode="json", exclude_defaults=True, exclude=labels))

    @property
    def server_id(self) -> str:
        """Hash of what one server process is started with: scenarios that share it are measured on one server.

        Runs without a server, and embeddings, have another: they are together, apart from others of the same engine.
        """
        others: dict[str, Any] = {"name": True, "workload": True, "model": KEEPING, "machine": RENTING}
        others |= {"fallback_of": True, "rung": True, "engine": TRACING, "client_hosts": True}
        started = self._as_measured().model_dump(mode="json", exclude_defaults=True, exclude=others)
        apart = {"offline": self.workload.is_offline, "embeds": self.workload.is_embedding}
        return _digest(started | {name: True for name, is_so in apart.items() if is_so})

    def on(self, kind: str) -> Self:
        """The scenario on another kind of machine: another measurement, unless only the way of paying differs."""
        if hardware_of(kind) == hardware_of(self.machine.kind):
            return self
        # The GPU of an alternative is read on the machine; its number follows from the engine's flags.
        machine = self.machine.model_copy(update={"kind": kind, "gpu": None})
        return self.model_copy(update={"machine": machine})

    def _as_measured(self) -> Self:
        return self.model_copy(update={"machine": as_measured(self.machine)})


def _digest(value: dict[str, Any]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
