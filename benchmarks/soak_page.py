"""What a soak counted, and the page of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "soak.md"
PARTS = ("server", "worker")
# Nights after a start. Of an empty flow, a worker grew by 1.8 MiB a run for five runs and by 0.4 after them. No Python
# object was left of a run, and `malloc_trim` gave 6 MiB back: it is the allocator that fills.
SETTLED = 5
COUNTED_MIN = 10  # nights, over all lives, before their growth says anything: one night grew by 1.5 MiB
GROWTH_MAX_MIB = 1.0  # a night, of server or worker: a year of nights is less than 400 MiB
UNACCOUNTED = "without an end"


@dataclass(frozen=True)
class Soaked:
    """The counts; `memory` (MiB) has a list for each life of server and worker, with a value after each night."""

    planned: int
    minutes: float
    seed: int
    ended: Mapping[str, int]
    kills: Mapping[str, int]
    stopped: Mapping[str, int]  # parts that `up` started again although nothing had killed them
    left: Sequence[str]
    inconsistent: Sequence[str]
    loaded: int
    memory: Mapping[str, Sequence[Sequence[float]]]

    @property
    def is_good(self) -> bool:
        """Whether every night has an end, nothing is left or restarted, the warehouse is consistent, memory is flat."""
        is_flat = all((growth(lives) or 0.0) <= GROWTH_MAX_MIB for lives in self.memory.values())
        return is_flat and not any((self.ended.get(UNACCOUNTED), self.stopped, self.left, self.inconsistent))


def growth(lives: Sequence[Sequence[float]]) -> float | None:
    """MiB a night by which a process grows once it has settled, over all its lives; None: of too few nights."""
    settled = [life[SETTLED:] for life in lives if len(life) > SETTLED + 1]
    nights = sum(len(life) - 1 for life in settled)
    return sum(life[-1] - life[0] for life in settled) / nights if nights >= COUNTED_MIN else None


def page(found: Soaked) -> str:
    """The whole page."""
    nights = sum(found.ended.values())
    return f"""# Soak

`python -m benchmarks.soak --nights {found.planned} --seed {found.seed} --record` wrote this page. It runs nights back
to back on a schedule of the deployment `nightly` of `nightbench up`, with a server of known times in the engine's
place. At random times in the first half it kills the worker, the server, or the worker with its night, and then runs
`nightbench up` and `reap` again. Nights that have not begun at its time limit are left out.

| counted | |
|---|---|
| nights, in {found.minutes:.0f} minutes | {nights} of {found.planned} that were scheduled |
| killed | {_counts(found.kills)} |
| nights by their last state | {_counts(found.ended)} |
| nights without an end | {found.ended.get(UNACCOUNTED, 0)} |
| parts of the service that had to be started again without a kill | {_counts(found.stopped)} |
| leases, machines, locks and processes left | {_listed(found.left)} |
| nights in the warehouse | {found.loaded} |
| nights whose rows are not those of their plan | {_listed(found.inconsistent)} |
| memory of the server | {_memory(found.memory["server"])} |
| memory of the worker | {_memory(found.memory["worker"])} |

A night that was killed with its worker ends as *Crashed*, and so does one that was starting when its server was killed,
until `reap` schedules it again; `nightbench run --resume` measures the rest of a night. Any other last state says how
good the numbers of the night are, which counts for nothing here. Memory is read after each night. Its growth counts
after the first {SETTLED} nights of a process, in which its allocator fills: at most {GROWTH_MAX_MIB:g} MiB a night is
flat.
"""


def _counts(what: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(what.items())) or "none"


def _listed(what: Sequence[str]) -> str:
    return "; ".join([str(len(what)), *what])


def _memory(lives: Sequence[Sequence[float]]) -> str:
    grown = growth(lives)
    most = max((value for life in lives for value in life), default=0.0)
    rate = "its growth is not known" if grown is None else f"{grown:+.2f} MiB a night"
    return f"{rate}, at most {most:.0f} MiB, over {len(lives)} starts"
