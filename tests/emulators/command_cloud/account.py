"""An account of the emulated command cloud: its scripts, what they will do wrong, and what is rented in it."""

import fcntl
import py_compile
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.clock import Clock
from infra.clouds.command.cloud import CommandCloud, CommandSetup
from infra.clouds.command.scripts import Scripts
from infra.processes.bounded_command import Limits
from tests.emulators.command_cloud import program
from tests.emulators.command_cloud.program import State

SCRIPTS = ("offers", "rent", "list", "release")
KIND, OTHER_KIND = "gpu-mi300x1-192gb", "gpu-mi325x1-256gb"
PYTHON = getattr(sys, "_base_executable", sys.executable)  # without an environment, which takes longer to start
WEEK_S = 604800.0
SECONDS = 30.0  # for a script, which takes a few hundredths: one on a busy computer is not taken for one that hangs
START: State = {
    "machines": [],
    "offers": [{"kind": KIND, "usd_per_hour": 1.99, "region": "here"}],
    "faults": {},  # by script and number of its call: `rent 1`
    "fates": [],  # of the machines in the order in which they are rented; "" is a good one
    "calls": {},
    "given": {},  # to the last call of each script
    "release asked": [],  # the ids
    "clock": None,
    "lag_s": 0.0,
    "gone_lag_s": 0.0,
    "boot_s": 0.0,
    "reclaimed_at_s": None,
    "states_now": True,
    "account": "team-1",
    "night": None,  # the pid of the process that a `kill` ends
}


@dataclass(frozen=True)
class Account:
    """The folder of the scripts and the file with the state."""

    scripts: Path

    @property
    def file(self) -> Path:
        return self.scripts.parent / f"{self.scripts.name}.state"

    def state(self) -> State:
        return program.read(str(self.file))

    def change(self, change: Callable[[State], object]) -> None:
        """Change the state between two calls."""
        with Path(f"{self.file}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self.state()
            change(state)
            program.write(str(self.file), state)

    def set(self, **values: Any) -> None:
        """Give these members of the state a value."""
        self.change(lambda state: state.update(values))

    def fault(self, **faults: str) -> None:
        """Let the next call of each of these scripts do something wrong."""

        def plan(state: State) -> None:
            for script, fault in faults.items():
                state["faults"][f"{script} {state['calls'].get(script, 0) + 1}"] = fault

        self.change(plan)

    def plant(self, name: str, *, foreign: bool = True) -> str:
        """Put a machine there that we did not rent; returns its id."""
        planted: list[State] = []

        def add(state: State) -> None:
            machine = program.add({**state, "fates": []}, {"name": name, "kind": "theirs", "region": None})
            machine["foreign"] = foreign
            machine["created_s"] -= WEEK_S  # a list shows it by now
            planted.append(machine)

        self.change(add)
        return str(planted[0]["id"])

    def billed(self) -> list[str]:
        """The names of our machines that exist."""
        return [one["name"] for one in self.state()["machines"] if not one["foreign"] and one["ended_s"] is None]

    def must_be_clean(self) -> None:
        """Raise AssertionError where a machine of ours is left, or one of others was touched."""
        state = self.state()
        theirs = [one for one in state["machines"] if one["foreign"]]
        assert self.billed() == []
        assert [one["name"] for one in theirs if one["ended_s"] is not None] == []
        assert not {one["id"] for one in theirs} & set(state["release asked"])

    def cloud(self, clock: Clock, *, seconds: float = SECONDS, settle_s: float = 0.3) -> CommandCloud:
        """Our side of it; its keys are beside the scripts."""
        scripts = Scripts(self.scripts, Limits(seconds, 1 << 20))
        setup = CommandSetup(self.scripts.parent / "keys", lambda name, _keys: f"boot of {name}", settle_s=settle_s)
        return CommandCloud(scripts, clock, setup)


OTHERS = ("somebody-elses", "nb-web", "?nb-0a1b-a1-x1")


def make_account(folder: Path, clock: Path | None = None, others: tuple[str, ...] = OTHERS) -> Account:
    """An account with machines of others in it, whose time is that of a clock's file; None: this computer's."""
    folder.mkdir(parents=True)
    account = Account(folder)
    state: State = {**START, "clock": None if clock is None else str(clock.absolute())}
    program.write(str(account.file), state)
    compiled = py_compile.compile(program.__file__, cfile=str(folder.parent / "program.pyc"), doraise=True)
    for script in SCRIPTS:
        write_script(folder / script, f"exec {PYTHON} -I -S {compiled} {script} {account.file}")
    for name in others:
        account.plant(name)
    return account


def write_script(path: Path, lines: str) -> None:
    """Write an executable of the shell."""
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
