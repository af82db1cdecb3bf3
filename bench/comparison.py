"""Two machines of a night compared: which terms are equal, which differ, and why a comparison is refused."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.engines.config import parse_flags
from bench.record import RunRecord

Values = tuple[str, ...]  # what the runs of one machine have, each once; empty: nothing is known


@dataclass(frozen=True)
class Term:
    """One term of a comparison, as each of the two machines has it."""

    name: str
    one: Values
    other: Values

    @property
    def is_equal(self) -> bool:
        """Whether both have the same, and something is known of it."""
        return self.one == self.other != ()

    def __str__(self) -> str:
        """The term in words, such as `ROCm: 7.0.0 and unknown`."""
        return f"{self.name}: {', '.join(self.one) or 'unknown'} and {', '.join(self.other) or 'unknown'}"


@dataclass(frozen=True)
class Comparison:
    """The terms of two machines; `refused` says why their numbers are not to be compared, where they are not."""

    machines: tuple[str, str]
    equal: tuple[Term, ...]
    different: tuple[Term, ...]
    refused: tuple[str, ...]


Reader = Callable[[RunRecord], Iterable[object]]
# A number is compared only where these are equal.
REQUIRED: Mapping[str, Reader] = {
    "workload": lambda run: [f"{scenario_of(run)} {run.asked.workload.model_dump_json(exclude_defaults=True)}"],
    "model": lambda run: [run.asked.model.source],
    "weights": lambda run: [run.weights and run.weights.sha256],
    "precision": lambda run: [run.asked.model.precision],
    "load driver": lambda run: [run.asked.workload.driver],
    "load driver version": lambda run: [run.load and run.load.driver_version],
    "method version": lambda run: [run.lineage.method_version],
}
# These are what is compared, or what comes with it.
NAMED: Mapping[str, Reader] = {
    "machine kind": lambda run: [run.asked.machine.kind],
    "GPUs": lambda run: [f"{len(run.host.gpus)} x {gpu}" for gpu in sorted(set(run.host.gpus))] if run.host else [],
    "GPU driver": lambda run: [run.host and run.host.gpu_driver],
    "ROCm": lambda run: [run.host and run.host.rocm_version],
    "CUDA": lambda run: [run.host and run.host.cuda_version],
    "engine": lambda run: [run.asked.engine.name],
    "engine version": lambda run: [(run.server and run.server.engine_version) or run.asked.engine.version],
    "image": lambda run: [run.asked.engine.image],
    "image digest": lambda run: [run.server and run.server.image_digest],
    "context length": lambda run: [run.asked.engine.max_model_len],
    "attention backend": lambda run: [run.server and run.server.attention_backend],
    "price": lambda run: [f"{run.lease.usd_per_hour:.2f} USD/h"] if run.lease else [],
    "host CPU": lambda run: [f"{run.host.cpu_count} x {run.host.cpu_model}"] if run.host else [],
    "host memory": lambda run: [f"{run.host.memory_bytes / 1024**3:.0f} GiB"] if run.host else [],
    "kernel": lambda run: [run.host and run.host.kernel],
    "Python": lambda run: [run.host and run.host.python_version],
    "Nightbench": lambda run: [run.lineage.git_commit],
}


def scenario_of(run: RunRecord) -> str:
    """The name of a run's scenario without that of its machine, so that it is the same on each."""
    return run.asked.name.replace(f"@{run.asked.machine.name}", "", 1)


def compare_machines(one: Sequence[RunRecord], other: Sequence[RunRecord]) -> Comparison:
    """The terms of the runs of two machines of a night.

    Flags and variables of the engine are terms of their own, one by one. What is unknown of both is left out. The
    workloads are those that each has measured; one that only one of them has measured refuses nothing.
    """
    shared = {scenario_of(run) for run in one} & {scenario_of(run) for run in other}
    pair = [[run for run in runs if scenario_of(run) in shared] for runs in (one, other)]
    required = [_term(name, read, pair) for name, read in REQUIRED.items()]
    terms = [*required, *(_term(name, read, pair) for name, read in NAMED.items()), *_settings(pair)]
    known = [term for term in terms if term.one or term.other]
    refused = [f"the {term.name} differs: {term}" for term in required if term.one != term.other]
    if not shared:
        refused = ["they have measured no scenario in common"]
    return Comparison(
        machines=(_name(one), _name(other)),
        equal=tuple(term for term in known if term.is_equal),
        different=tuple(term for term in known if not term.is_equal),
        refused=tuple(refused),
    )


def _term(name: str, read: Reader, pair: Sequence[Sequence[RunRecord]]) -> Term:
    one, other = (_values(value for run in runs for value in read(run)) for runs in pair)
    return Term(name, one, other)


def _values(found: Iterable[object]) -> Values:
    return tuple(sorted({str(value) for value in found if value is not None}))


def _settings(pair: Sequence[Sequence[RunRecord]]) -> list[Term]:
    """Each flag and each variable of the engines, as asked."""
    terms: list[Term] = []
    for title, read in (("flags", _flags), ("environment", _environment)):
        names = sorted({name for runs in pair for run in runs for name in read(run)})
        for name in names:
            one, other = (_values(read(run).get(name, "not set") for run in runs) for runs in pair)
            terms.append(Term(f"{title} {name}", one, other))
    return terms


def _flags(run: RunRecord) -> dict[str, str]:
    """The engine's flags by name; one without a value is `set`."""
    return {name: value or "set" for name, value in parse_flags(run.asked.engine.flags).items()}


def _environment(run: RunRecord) -> dict[str, str]:
    return dict(run.asked.engine.environment)


def _name(runs: Sequence[RunRecord]) -> str:
    return next((run.asked.machine.name or run.asked.machine.kind for run in runs), "none")
