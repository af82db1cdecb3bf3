"""How many repeats a night runs where its suite leaves that to the plan."""

from collections.abc import Mapping, Sequence

from bench.cost.estimate import HostPlan
from bench.cost.time_of_repeats import why_too_long
from bench.plan import plan_runs, with_repeats
from bench.record import NightRecord
from bench.repeats import cap_repeats, choose_repeats
from bench.suite.pins import PinnedPrice
from catalog.read import machine_size, read_catalog
from infra.bootstrap import clouds
from infra.clouds.static import is_own
from infra.leases.forecast import forecast
from infra.loadgen.datasets import require_conversations
from infra.settings import Settings
from warehouse.lake.repeat_history import read_run_seconds, read_spreads


def plan_repeats(settings: Settings, night: NightRecord, prices: Sequence[PinnedPrice] = ()) -> NightRecord:
    """The night with the repeats that earlier nights, its lease and its budget call for; others stay as they are.

    Raises SuiteError where a file of conversations is too short for them.
    """
    if night.suite.repeats != "plan":
        return night
    data, scenarios, catalog = settings.data.absolute(), night.suite.expand(), read_catalog()
    price = forecast(settings, night, clouds(settings).get(night.target), pinned=prices).price
    size = None if is_own(night.target) else machine_size(night.target, night.suite.machine.kind)
    site = HostPlan(price.usd_per_hour or 0.0, size, is_own=is_own(night.target))
    seconds = read_run_seconds(data, [one.scenario_id for one in scenarios])
    run_s = {one.name: seconds[one.scenario_id] for one in scenarios if one.scenario_id in seconds}

    def exceeded(repeats: Mapping[str, int]) -> str | None:
        return why_too_long(night.suite, plan_runs(night.suite, planned=repeats), site, catalog, run_s)

    spreads = read_spreads(data, [one.scenario_id for one in scenarios])
    chosen = [choose_repeats(one.name, one.scenario_id, spreads[one.scenario_id]) for one in scenarios]
    planned = with_repeats(night, cap_repeats(chosen, exceeded))
    require_conversations(planned)
    return planned
