"""Whether the weights and the largest load of a suite fit the memory of the GPUs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.catalog.catalog import Catalog
from bench.catalog.rows import MachineKind
from bench.cost.draft import draft_gib
from bench.cost.replica import replica_of
from bench.engines.config import memory_share, parallel_sizes, parse_flags
from bench.physics import GIB, checkpoint_bytes, expert_bytes, needed_gib, room_gib
from bench.record import PlannedRun
from bench.suite.suite import Suite

USUAL_MEMORY_SHARE = 0.9  # what an engine takes where no flag says it


@dataclass(frozen=True)
class Fit:
    """Whether the weights and the largest load fit the memory that the engine may take.

    `needed_gib` includes the `weights_gib` that the GPUs of one replica hold.
    """

    weights_gib: float
    needed_gib: float
    room_gib: float

    @property
    def fits(self) -> bool:
        """Whether they fit."""
        return self.needed_gib <= self.room_gib


def fits_of(suite: Suite, runs: Sequence[PlannedRun], size: MachineKind | None, catalog: Catalog) -> Mapping[str, Fit]:
    """Whether the largest load of each model fits one replica on the suite's machine, by the model's name.

    A model is left out where it or the machine is not in the catalogue. A replica of a mixture of experts shares its
    routed experts with the other replicas.
    """
    found: dict[str, Fit] = {}
    for part in suite.with_machine(suite.machine).parts():
        fit = _fit_on(part, runs, size, catalog)
        if fit is not None:
            found[part.model.name] = max(found.get(part.model.name, fit), fit, key=_share)
    return found


def tightest(fits: Mapping[str, Fit]) -> Fit | None:
    """The fit that leaves least; None of none."""
    return max(fits.values(), key=_share, default=None)


def _share(fit: Fit) -> float:
    return fit.needed_gib / fit.room_gib


def _fit_on(suite: Suite, runs: Sequence[PlannedRun], size: MachineKind | None, catalog: Catalog) -> Fit | None:
    """Whether the largest load of these scenarios of one engine fits; None too where no run is of one of them."""
    names = {entry.name for entry in suite.scenarios}
    loads = [run.scenario.workload for run in runs if run.scenario.name in names]
    known = replica_of(suite.model, suite.engine, suite.machine, size, catalog)
    if known is None or not loads:
        return None
    model, group = known
    flags = parse_flags(suite.engine.flags)
    replicas = parallel_sizes(flags).replicas
    elsewhere_gib = expert_bytes(model, group.precision) * (1 - 1 / replicas) / GIB
    needed = max(
        needed_gib(model, group, math.ceil((load.concurrency or 1) / replicas), load.context_tokens) for load in loads
    )
    held = max(math.ceil((load.concurrency or 1) / replicas) * load.context_tokens for load in loads)
    needed += draft_gib(suite.engine, model, group, catalog, held)
    weights_gib = checkpoint_bytes(model, group.precision) / GIB - elsewhere_gib
    return Fit(weights_gib, needed - elsewhere_gib, room_gib(group, memory_share(flags) or USUAL_MEMORY_SHARE))
