"""A command on several machines: the machines beside the one that is measured, and how all of them are ended."""

from dataclasses import dataclass, replace
from pathlib import Path

from bench.record import PlannedRun
from bench.suite.command import NodePlace
from infra.engines.engine_at import EngineAt
from infra.loadgen.command import job_of, run_to_end
from nights.durable import write_text


@dataclass(frozen=True)
class Node:
    """A machine that runs its part of each command and measures nothing; its paths are that machine's."""

    lease_id: str
    address: str  # under which the other nodes reach it
    machine: Path  # the folder for what runs under its lease
    engine: EngineAt


def stop_file(machine: Path, run: PlannedRun) -> Path:
    """The file whose text is why the command of a run is ended on this machine; of each run another one."""
    return machine / f"stop-{run.scenario.scenario_id}-{run.repeat}"


def stop_command(machine: Path, run: PlannedRun, why: str) -> None:
    """End the command of a run on this machine, also where it is yet to start; may be repeated."""
    if machine.is_dir():  # else the machine was released here meanwhile
        write_text(stop_file(machine, run), why)


def join_command(node: Node, run: PlannedRun, place: NodePlace) -> None:
    """Run one node's part of a command to its end; LoadDriverError where that fails or is ended."""
    folder = node.machine / f"node-{run.scenario.scenario_id}-{run.repeat}"
    folder.mkdir(parents=True, exist_ok=True)
    job = job_of(run.scenario, node.engine, node.machine, node.lease_id, folder)
    run_to_end(replace(job, place=place, stop_file=stop_file(node.machine, run)))
