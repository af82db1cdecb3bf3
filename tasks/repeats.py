"""How many repeats a night runs where its suite leaves that to the plan."""

from collections.abc import Mapping, Sequence

from bench.cost.estimate import HostPlan
from bench.cost.time_of_repeats import why_too_long
from bench.machine_nights import machine_nights
from bench.plan import plan_runs, with_repeats
from bench.record import NightRecord
from bench.repeats import cap_repeats, choose_repeats
from bench.suite.pins import PinnedPrice
from bench.suite.suite import Suite
from catalog.read import machine_size, read_catalog
from infra.bootstrap import clouds
from infra.leases.forecast import forecast
from infra.loadgen.datasets import require_conversations
from infra.settings import Settings
from warehouse.lake.repeat_history import read_run_seconds, read_spreads


def plan_repeats(settings: Settings, night: NightRecord, prices: Sequence[PinnedPrice] = ()) -> NightRecord:
    """The night with the repeats that earlier nights, its leases and its budget call for; others stay as they are.

    A scenario with repeats of its own keeps them. No machine runs more than the tightest lease or budget allows, so
    that several machines stay comparable. Raises SuiteError where a file of conversations is too short for them.
    """
    if night.suite.repeats != "plan":
        return night
    data, suite = settings.data.absolute(), night.suite
    scenarios = suite.expand()
    seconds = read_run_seconds(data, scenarios)
    run_s = {one.name: seconds[one.scenario_id] for one in scenarios if one.scenario_id in seconds}
    places = [(part.suite, _place(settings, part, prices)) for part in machine_nights(night)]

    def exceeded(repeats: Mapping[str, int]) -> str | None:
        return next(filter(None, (_why_too_long(on, place, repeats, run_s) for on, place in places)), None)

    left = [one for entry, one in zip(suite.scenarios, scenarios, strict=True) if entry.repeats is None]
    spreads = read_spreads(data, left)
    chosen = [choose_repeats(one.name, one.scenario_id, spreads[one.scenario_id]) for one in left]
    planned = with_repeats(night, cap_repeats(chosen, exceeded))
    require_conversations(planned)
    return planned


def _place(settings: Settings, part: NightRecord, prices: Sequence[PinnedPrice]) -> HostPlan:
    price = forecast(settings, part, clouds(settings).get(part.target), pinned=prices).price
    size = machine_size(part.target, part.suite.machine.kind)
    return HostPlan(part.suite.nodes * (price.usd_per_hour or 0.0), size, is_own=part.where.host is not None)


def _why_too_long(suite: Suite, place: HostPlan, repeats: Mapping[str, int], run_s: Mapping[str, float]) -> str | None:
    """What so many repeats exceed on the one machine of this suite; of several machines it has a name."""
    why = why_too_long(suite, plan_runs(suite, planned=repeats), place, read_catalog(), run_s)
    return why if why is None or suite.machine.name is None else f"on {suite.machine.name}: {why}"
