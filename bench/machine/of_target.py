"""Which machines of a suite a night measures: those that its target has, or the one that `--machine` names."""

from collections.abc import Iterator
from pathlib import Path

from bench.errors import SuiteError, UsageError
from bench.suite.machine import Machine
from bench.suite.suite import Suite
from bench.suite.target import OWN, Target


def own_machines(suite: Suite) -> tuple[Machine, ...]:
    """The machines of a suite that no cloud rents: hosts of your own, `kind = "own"`."""
    return tuple(machine for machine in suite.machines if machine.kind == OWN)


def on_target(suite: Suite, target: Target, machine: str | None, path: Path) -> Suite:
    """The suite with the scenarios of one machine, if it is named, or else of all that the target has.

    A cloud has no host of your own. Raises UsageError for a name that no machine of the suite has, and SuiteError where
    the target has none of its machines, or is one host and the suite has several.
    """
    if machine is not None:
        return suite.with_machine(_named(suite, machine, path))
    if target.host is not None:
        _require_one(suite, target, path)
    return _rentable(suite, target, path) if target.is_rented else suite


def left_to_you(suite: Suite, target: Target) -> Iterator[str]:
    """What a plan says of the machines that a cloud does not rent."""
    names = [str(machine.name) for machine in own_machines(suite)]
    if names and target.is_rented:
        yield (
            f"{target.name} does not measure {', '.join(names)}, which the suite leaves to hosts of your own: "
            f"--target ssh:user@host --machine {names[0]} measures one"
        )


def _named(suite: Suite, name: str, path: Path) -> Machine:
    found = {str(machine.name): machine for machine in suite.machines if machine.name is not None}
    if name not in found:
        known = f"it has: {', '.join(found)}" if found else "its one machine has no name: leave --machine out"
        raise UsageError(f"{path} has no machine {name!r}, which --machine names; {known}")
    return found[name]


def _require_one(suite: Suite, target: Target, path: Path) -> None:
    names = [str(machine.name) for machine in suite.machines]
    if len(names) > 1:
        raise SuiteError(
            f"{path} runs on {len(names)} machines ({', '.join(names)}), and --target {target.name} is one host: "
            "say with --machine which of them it is, use --target with a cloud, or --target local for its [local] size"
        )


def _rentable(suite: Suite, target: Target, path: Path) -> Suite:
    """The suite without the scenarios of hosts of your own."""
    own = own_machines(suite)
    kept = tuple(entry for entry in suite.scenarios if (entry.machine or suite.machine) not in own)
    if not kept:
        raise SuiteError(
            f"every machine of {path} is a host of your own, which {target.name} does not rent: use --target "
            "ssh:user@host, and --machine where it has several"
        )
    first = next(machine for machine in suite.machines if machine not in own)
    return suite.model_copy(update={"scenarios": kept, "machine": first}) if own else suite
