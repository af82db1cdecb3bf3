"""What a night over several machines is expected to take and cost: each machine for itself, and all together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.cost.forecast import Forecast
from bench.record import NightRecord


@dataclass(frozen=True)
class MachineForecast:
    """The night of one machine, and its forecast."""

    night: NightRecord
    forecast: Forecast

    @property
    def name(self) -> str:
        """The machine's name; its kind where the suite has one machine."""
        return self.night.suite.machine.name or self.night.suite.machine.kind


@dataclass(frozen=True)
class NightForecast:
    """The forecasts of a night's machines, and what makes the night doubtful."""

    machines: tuple[MachineForecast, ...]
    is_parallel: bool  # False: one machine after another, on this computer or a host of one's own
    doubts: tuple[str, ...]

    @property
    def minutes(self) -> float:
        """Billed minutes from the first lease to the last release."""
        each = [one.forecast.cold.billed_s / 60 for one in self.machines]
        return max(each) if self.is_parallel else sum(each)

    @property
    def usd(self) -> float | None:
        """What all machines cost; None where the price of one of them is not known."""
        if any(one.forecast.price.usd_per_hour is None for one in self.machines):
            return None
        return sum(one.forecast.cold.usd for one in self.machines)

    @property
    def usd_per_hour(self) -> float | None:
        """The price of all machines at once."""
        prices = [one.forecast.price.usd_per_hour for one in self.machines]
        known = [price for price in prices if price is not None]
        return sum(known) if len(known) == len(prices) else None

    def with_doubts(self, doubts: Sequence[str]) -> "NightForecast":
        """The same with more doubts."""
        return replace(self, doubts=(*self.doubts, *doubts))


def night_forecast(night: NightRecord, machines: Sequence[MachineForecast], *, is_parallel: bool) -> NightForecast:
    """The forecasts together; each doubt once, with the machine that it is of."""
    whole = NightForecast(tuple(machines), is_parallel, ())
    return whole.with_doubts(tuple(dict.fromkeys((*_doubts(machines), *_doubts_of_budget(night, whole)))))


def _doubts(machines: Sequence[MachineForecast]) -> Iterator[str]:
    common = set.intersection(*(set(one.forecast.doubts) for one in machines))
    for one in machines:
        yield from (doubt if doubt in common else f"{one.name}: {doubt}" for doubt in one.forecast.doubts)


def _doubts_of_budget(night: NightRecord, whole: NightForecast) -> Iterator[str]:
    budget = night.suite.budget_usd
    count = len(whole.machines)  # of one machine, its own forecast says it
    if count > 1 and budget is not None and whole.usd is not None and whole.usd > budget:
        expected = f"{count} machines are expected to cost {whole.usd:.2f} USD"
        yield f"budget_usd = {budget:.2f} would end the night early: {expected}"
