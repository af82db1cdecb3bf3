"""A night over several machines as one night for each, and back: each machine runs and fails for itself.

What a machine hands back beside the results of its own night is refused.

`Machine.name` distinguishes the machines of a night. A suite of one machine leaves it out.
"""

from collections.abc import Iterable, Mapping
from functools import reduce

from pydantic import AwareDatetime

from bench.frozen import StoredValue
from bench.record import NightRecord, PlannedRun
from bench.suite.machine import Machine
from bench.suite.suite import Suite


class RefusedResults(StoredValue):
    """What the machine of a lease offered and the plan did not give it: how many files, and the names of some."""

    lease_id: str
    count: int
    names: tuple[str, ...]


class LeasePlan(StoredValue):
    """The night of one machine as a lease runs it, on the kind that was rented: each lease has a file of its own.

    Leases of several computers change the same plan, each for its machine; so none of them overwrites another's change.
    """

    lease_id: str
    began_at: AwareDatetime
    night: NightRecord


def machine_nights(night: NightRecord) -> tuple[NightRecord, ...]:
    """The night of each machine that has runs, in the order of the plan."""
    return tuple(machine_night(night, name) for name in dict.fromkeys(machine_of(run) for run in night.runs))


def machine_of(run: PlannedRun) -> str | None:
    """The name of the machine that a run is planned for."""
    return run.scenario.machine.name


def machine_night(night: NightRecord, name: str | None) -> NightRecord:
    """The night of one machine: its runs, its scenarios as the suite, and its share of the suite's budget."""
    machine = named(night.suite, name)
    suite = night.suite.with_machine(machine)
    share = night.budget_shares.get(name or "", night.suite.budget_usd)
    limits = [usd for usd in (machine.budget_usd, share) if usd is not None]
    limited = machine.model_copy(update={"budget_usd": min(limits, default=None)})
    suite = suite.model_copy(update={"machine": limited, "budget_usd": share})
    return night.model_copy(
        update={"suite": suite, "runs": tuple(run for run in night.runs if machine_of(run) == name)}
    )


def budget_of(suite: Suite) -> str:
    """The budget of one machine's night by the key of the suite file: `machine.budget_usd = 1.50`."""
    machine = suite.machine
    if machine.budget_usd != suite.budget_usd:
        return f"machine.budget_usd = {machine.budget_usd:.2f}"
    share = f"{machine.name}'s share of " if machine.name else ""
    return f"{share}budget_usd = {machine.budget_usd:.2f}"


def named(suite: Suite, name: str | None) -> Machine:
    """The machine of a suite that has this name."""
    return next(machine for machine in suite.machines if machine.name == name)


def with_machine_night(night: NightRecord, part: NightRecord) -> NightRecord:
    """The night with the runs of one of its machines, and the kind of that machine, as its own night has them."""
    machine = part.suite.machine
    of_part = {run.order: run for run in part.runs}
    runs = tuple(of_part.get(run.order, run) for run in night.runs)
    return night.model_copy(update={"runs": runs, "suite": _with_kind(night.suite, machine.name, machine)})


def with_lease_plans(night: NightRecord, plans: Iterable[LeasePlan]) -> NightRecord:
    """The night as its leases ran it; of one machine's leases the last decides."""
    in_turn = sorted(plans, key=lambda plan: (plan.began_at, plan.lease_id))
    return reduce(with_machine_night, (plan.night for plan in in_turn), night)


def _with_kind(suite: Suite, name: str | None, now: Machine) -> Suite:
    hardware = {"kind": now.kind, "gpu": now.gpu, "gpu_count": now.gpu_count}

    def on_it(machine: Machine | None) -> Machine | None:
        return machine.model_copy(update=hardware) if machine is not None and machine.name == name else machine

    entries = tuple(entry.model_copy(update={"machine": on_it(entry.machine)}) for entry in suite.scenarios)
    return suite.model_copy(update={"machine": on_it(suite.machine), "scenarios": entries})


def shares_of(
    budget_usd: float | None, machines: Iterable[Machine], usd_per_hour: Mapping[str, float]
) -> dict[str, float]:
    """A night's budget divided among its machines by what the lease of each costs at these prices; none for one.

    A machine without a known price counts as one at the mean of the others.
    """
    several = {machine.name: machine.lease_minutes for machine in machines if machine.name is not None}
    if budget_usd is None or len(several) < 2:  # noqa: PLR2004
        return {}
    mean = sum(usd_per_hour.values()) / len(usd_per_hour) if usd_per_hour else 1.0
    weights = {name: minutes * usd_per_hour.get(name, mean) for name, minutes in several.items()}
    return {name: budget_usd * weight / sum(weights.values()) for name, weight in weights.items()}
