"""Reads suite files, and drafts the night that a suite defines."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.engines.by_name import ENGINES
from bench.engines.ladder import require_rungs
from bench.engines.require import require_engines
from bench.engines.speculative_load import with_real_prompts
from bench.errors import MachineUnfitError, SuiteError, UsageError
from bench.free_twins import with_free_twins
from bench.loadgen.drivers.require_engine import require_driver_engines
from bench.machine.of_target import on_target
from bench.machine_nights import shares_of
from bench.plan import order_seed, plan_runs
from bench.record import NightRecord, PlannedRun
from bench.suite.attach import NAME as ENDPOINT
from bench.suite.attach import attached, reasons_against
from bench.suite.endpoint import Endpoint
from bench.suite.model import Model
from bench.suite.parse import parse_source
from bench.suite.pins import require_pins
from bench.suite.scaling import scaled
from bench.suite.scenario import Scenario
from bench.suite.source import EXTENDS, Place, SuiteFile, SuiteSource
from bench.suite.suite import Suite
from bench.suite.target import Target, parse_target
from catalog.engine_check import require_servable, with_rules_applied
from catalog.read import machine_size
from infra.engines.secret_environment import key_variable
from infra.hardware.power_cap import read_caps
from infra.loadgen import datasets
from infra.loadgen.suite_lock import resolve_tracked, with_lock

Parsed = tuple[Suite, SuiteSource]  # a suite as its files have it, and these


def read_suite(
    path: Path,
    *,
    is_draft: bool = False,
    target: str | None = None,
    machine: str | None = None,
    parsed: Parsed | None = None,
) -> tuple[Suite, str]:
    """A suite and the SHA-256 of its files; UsageError if the file cannot be read, SuiteError if it is wrong.

    The files that the suite names are read too: it then holds their absolute paths and SHA-256. The lock beside it
    pins its references; only a draft may keep one that moves. For the target `local` it is scaled to this computer
    where it says how. It has the machines that the target has, or the one that is named. `parsed`: what
    `parse_suite_file` has of it, where it was read already.
    """
    asked, source = parsed or parse_suite_file(path)
    where = None if target is None else parse_target(target)
    if where is not None and where.url is not None:
        if machine is not None:
            raise UsageError(f"--machine {machine!r}: {where.url} is one server; leave --machine out")
        if not is_draft:
            key_variable(asked.endpoint or Endpoint())
        return _attached(asked, source, where.url), hashlib.sha256(source.text.encode()).hexdigest()
    _require_own_engine(asked, source, target)
    _require_clients_reach(asked, source, target)
    local = asked.local if where is not None and where.is_scaled else None
    suite = with_lock(asked, path) if local is None else scaled(asked, local)
    suite = suite if where is None else on_target(suite, where, machine, path)
    _require_own_gpus(suite, source, where)
    if not is_draft:
        require_pins(suite, source)
    suite = datasets.find_inputs(suite, source)
    return suite, hashlib.sha256(source.text.encode()).hexdigest()


def draft_sha256(path: Path, target: str) -> str:
    """SHA-256 of the files of a suite that need not be locked, as its nights on this target have it in their record."""
    return read_suite(path, is_draft=True, target=target)[1]


def _attached(asked: Suite, source: SuiteSource, url: str) -> Suite:
    """The suite as a server that already runs is measured by it; SuiteError where it asks for more than a load."""
    against = list(reasons_against(asked))
    if against:
        raise SuiteError(
            f"{source.where}: the suite cannot be measured on a server that already runs, {url}: "
            f"{'; '.join(against)}; nothing was sent: leave it out, or give that part a suite of its own"
        )
    return datasets.find_inputs(attached(asked, url), source)


def _require_own_engine(asked: Suite, source: SuiteSource, target: str | None) -> None:
    if target is not None and asked.engine.name == ENDPOINT:
        raise SuiteError(
            f"{source.at(('engine', 'name'))}: engine.name: {ENDPOINT} is a server that already runs, and --target is "
            f"{target}: give its URL, --target http://host:port or https://host:port, or another engine"
        )


def _require_clients_reach(asked: Suite, source: SuiteSource, target: str | None) -> None:
    """Raise SuiteError where client hosts cannot reach the server: one that a night starts is on its loopback."""
    if target is not None and asked.client.hosts:
        raise SuiteError(
            f"{source.at(('client', 'hosts'))}: client.hosts send the load to a server that already runs, and --target "
            f"is {target}: start the server, give its URL as --target http://host:port, or remove [client]"
        )


def _require_own_gpus(suite: Suite, source: SuiteSource, where: Target | None) -> None:
    """Raise SuiteError where the suite sets power caps on a rented machine, or here without a GPU that has one."""
    if suite.power is None or where is None:
        return
    at = f"{source.at(('power', 'watts'))}: power.watts"
    if where.is_rented:
        raise SuiteError(
            f"{at}: a power cap is set on hosts of your own only, and --target {where.name} is a cloud: use --target "
            "ssh:user@host, or remove [power]"
        )
    if where.is_here:
        try:
            read_caps()
        except MachineUnfitError as error:
            raise SuiteError(f"{at}: {error}") from error


def parse_suite_file(path: Path) -> Parsed:
    """A suite as its files have it, and these; UsageError if one cannot be read, SuiteError if one is wrong."""
    source = read_source(path)
    suite = parse_source(source)
    require_engines(suite, source)
    suite = with_free_twins(with_real_prompts(suite, source))
    require_driver_engines(suite, source)
    _require_folder(suite, source)
    if suite.local is not None:
        here = scaled(suite, suite.local)
        require_engines(here, source, inside=("local",))
        require_driver_engines(here, source)
        _require_folder(here, source, inside=("local",))
    return suite, source


def read_source(path: Path) -> SuiteSource:
    """The file of a suite, and each file that the one before extends."""
    files, read = [_read(path)], [path]
    while (extends := files[-1].extends) is not None:
        other, at = read[-1].parent / extends, files[-1].at((EXTENDS,))
        if other.resolve() in (one.resolve() for one in read):
            chain = " extends ".join(map(str, (*read, other)))
            raise SuiteError(f"{at}: extends: the files extend each other in a circle: {chain}; remove one of them")
        try:
            files.append(_read(other))
        except UsageError as error:
            raise SuiteError(f"{at}: extends: {error}") from error
        read.append(other)
    return SuiteSource(tuple(files))


def _read(path: Path) -> SuiteFile:
    try:
        return SuiteFile.of(path.read_bytes().decode(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the suite {path} cannot be read: {error}") from error


def _require_folder(suite: Suite, source: SuiteSource, inside: tuple[str, ...] = ()) -> None:
    """Raise SuiteError if a model's folder on this computer holds weights that the engine cannot serve, or is a file.

    `inside`: the table that the suite's model stands in, such as `[local]`.
    """
    for scenario in suite.expand():
        kind, _, rest = scenario.model.source.partition(":")
        if kind != "path":
            continue
        key = _key_of_model(scenario.model, source, inside)
        where, engine = f"{source.at(key)}: {'.'.join(map(str, key))}", ENGINES[scenario.engine.name]
        if rest.endswith(".gguf"):
            raise SuiteError(f"{where}: {rest} is a file: give its folder: path:{Path(rest).parent}")
        found = [name for name in ("gguf", "safetensors") if any(Path(rest).glob(f"*.{name}"))]
        if found and engine.WEIGHTS not in {None, *found}:
            raise SuiteError(
                f"{where}: {engine.NAME} serves {engine.WEIGHTS} weights, and {rest} holds {found[0]} weights only: "
                "set another engine.name or model.source"
            )


def _key_of_model(model: Model, source: SuiteSource, inside: tuple[str, ...]) -> Place:
    """The key of a model's source in the file, of one model or of several."""
    tables = source.raw[inside[0]] if inside else source.raw
    number = next((place for place, one in enumerate(tables.get("models", [])) if one["name"] == model.name), None)
    return (*inside, "model", "source") if number is None else (*inside, "models", number, "source")


def pick_scenario(path: Path, name: str) -> tuple[Suite, Scenario]:
    """A suite and one of its scenarios; UsageError, with the names of all, if it has none of this name."""
    suite, _digest = read_suite(path)
    found = {scenario.name: scenario for scenario in suite.expand()}
    if name not in found:
        raise UsageError(f"{path} has no scenario {name!r}; it has: {', '.join(found)}")
    return suite, found[name]


def require_runnable(
    path: Path, target: str, *, poc: bool, force: bool = False, apply_rules: bool = False, machine: str | None = None
) -> None:
    """Raise SuiteError if a suite cannot be run on a target; with `force`, not for what cannot be served there.

    With `apply_rules` the fixes that the engine's rules name are applied first.
    """
    suite, _digest = read_suite(path, target=target, machine=machine)
    suite = with_rules_applied(suite, target)[0] if apply_rules else suite
    _require_runs(suite, plan_runs(suite, suite.seed, poc=poc), parse_target(target), path, force=force)


def refuse_forced_resume(
    resume: str | None, *, force: bool, apply_rules: bool = False, machine: str | None = None
) -> None:
    """Raise UsageError if a resume has an option that only a new night can have."""
    given = "--force" if force else "--apply-rules" if apply_rules else "--machine" if machine else None
    if resume is not None and given is not None:
        raise UsageError(
            f"{given} and --resume exclude each other: night {resume} was checked when it was planned; resume it "
            f"without {given}, or start a new night with it"
        )


def _require_runs(
    suite: Suite, runs: tuple[PlannedRun, ...], target: Target, path: Path, *, force: bool
) -> tuple[str, ...]:
    if target.url is not None:
        return ()  # it is served already
    _require_a_place(suite, target, path)
    forced = require_servable(suite, runs, target.name, path, force=force)
    require_rungs(suite, str(path))
    return forced


def _require_a_place(suite: Suite, target: Target, path: Path) -> None:
    """Raise SuiteError where a command of several machines is to run on one host of one's own."""
    if suite.nodes > 1 and target.host is not None:
        raise SuiteError(
            f"{path} runs a command on {suite.nodes} machines at once, and --target {target.name} is one host: "
            "use --target with a cloud, or --target local for its [local] size"
        )


def _budget_shares(suite: Suite, runs: Sequence[PlannedRun], target: str) -> dict[str, float]:
    """What each of several machines may spend of the suite's budget, by the catalogue's prices."""
    machines = tuple(dict.fromkeys(run.scenario.machine for run in runs))
    sizes = {machine.name or "": machine_size(target, machine.kind) for machine in machines}
    nodes = {run.scenario.machine.name or "": run.scenario.workload.nodes for run in runs}
    usd = {
        name: nodes[name] * size.usd_per_hour for name, size in sizes.items() if size is not None and size.usd_per_hour
    }
    return shares_of(suite.budget_usd, machines, usd)


def make_night(  # noqa: PLR0913 - the options of a night
    suite: Path,
    target: str,
    *,
    poc: bool,
    is_draft: bool = False,
    force: bool = False,
    apply_rules: bool = False,
    machine: str | None = None,
    parsed: Parsed | None = None,
) -> NightRecord:
    """A night that starts now, with what a tracked tag names now; nothing is written.

    Only a draft, which is printed and not run, may have references that move, and only it or `force` may have a load
    that cannot be served: otherwise SuiteError. A draft resolves no tag. With `apply_rules` the fixes that the engine's
    rules name are applied; with `machine` it is of the machine of that name only. `parsed` is the file, if it was read.
    """
    where = parse_target(target)
    target = where.name
    read, digest = read_suite(suite, is_draft=is_draft, target=target, machine=machine, parsed=parsed)
    read, applied = with_rules_applied(read, target) if apply_rules else (read, ())
    forced: tuple[str, ...] = ()
    if not is_draft:
        forced = _require_runs(read, plan_runs(read, read.seed, poc=poc), where, suite, force=force)
        read = resolve_tracked(read)
    started_at = datetime.now(UTC)
    name = f"{started_at:%Y-%m-%dT%H%M%S}Z"
    seed = order_seed(name, read)
    runs = plan_runs(read, seed, poc=poc)
    night = NightRecord(
        night=name,
        target=target,
        started_at=started_at,
        suite=read,
        suite_sha256=digest,
        seed=seed,
        runs=runs,
        forced=forced,
        budget_shares=_budget_shares(read, runs, target),
        applied=applied,
        expectations=datasets.read_expectations(read),
    )
    datasets.require_conversations(night)
    return night
