"""Series of two sides are paired by what must agree, refused with the reason where it does not, and judged together."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from bench.trends.difference import Repeats
from bench.trends.series import STACK_FIELDS, Point, SeriesKey
from bench.trends.sides import Lease, Side, compare_sides

START = datetime(2026, 3, 1, tzinfo=UTC)
A, B = Side("A", {"engine_version": "1"}), Side("B", {"engine_version": "2"})


def lease(day: int, value: float, scenario: str = "chat", metric: str = "ttft_p50_ms", **facts: str) -> Lease:
    said = {"source": "ours", "model": "m", "gpu": "H100", "scenario": scenario, "client": "meter", "workload": "w"}
    said |= {"engine_version": "1", "night": f"n{day}", **facts}
    stack = {name: said[name] for name in STACK_FIELDS if name in said}
    point = Point(said["night"], START + timedelta(days=day), value, stack=stack)
    key = SeriesKey("ours", f"{said['model']}/{said['gpu']}/{scenario}", metric)
    return Lease(said["night"], key, point, Repeats(0.001, 3), said, is_lower_better=True)


def nights(days: range, level: float, sd: float = 0.01, **facts: str) -> Iterator[Lease]:
    random = np.random.default_rng(days.start)
    for day in days:
        yield lease(day, level * float(np.exp(sd * random.standard_normal())), **facts)


def reasons(leases: list[Lease], one: Side = A, other: Side = B) -> set[str]:
    found = compare_sides(leases, one, other)
    assert found.pairs == ()
    return {refused.reason for refused in found.refused}


def test_a_slower_version_is_a_loss_and_a_faster_one_a_gain() -> None:
    leases = [*nights(range(10), 100), *nights(range(10, 15), 110, engine_version="2")]

    assert [pair.verdict for pair in compare_sides(leases, A, B).pairs] == ["loss"]
    assert [pair.verdict for pair in compare_sides(leases, B, A).pairs] == ["gain"]


def test_one_lease_a_side_uses_the_noise_of_the_other_nights_of_the_series() -> None:
    leases = list(nights(range(20), 100))
    sides = Side("n3", {"night": "n3"}), Side("n9", {"night": "n9"})
    (pair,) = compare_sides(leases, *sides).pairs
    (alone,) = compare_sides([leases[3], leases[9]], *sides).pairs

    assert pair.difference.is_between_leases
    assert pair.verdict == "inconclusive"
    assert alone.verdict == "within one lease"


@pytest.mark.parametrize("name", ["workload", "method_version", "client_version", "arrivals", "model_revision"])
def test_what_must_agree_refuses_with_both_values(name: str) -> None:
    one, other = ({"engine_version": version, name: value} for version, value in (("1", "x"), ("2", "y")))
    leases = [lease(day, 100.0 + day, **one) for day in range(3)]
    leases += [lease(day, 100.0, **other) for day in range(3, 6)]

    assert reasons(leases) == {f"{name} differs: x and y"}


@pytest.mark.parametrize(("one", "other"), [("1", "2"), ("2", "unknown")])
def test_what_must_agree_refuses_sides_that_mix_it_alike(one: str, other: str) -> None:
    # Under each method both versions are equal; the second version has more nights of the slower method.
    methods = [(1, one, 12), (1, other, 2), (2, one, 2), (2, other, 12)]
    leases, day = list[Lease](), 0
    for version, method, count in methods:
        facts = {"engine_version": f"{version}"} | ({} if method == "unknown" else {"method_version": method})
        leases += nights(range(day, day + count), 100 if method == one else 110, sd=0.001, **facts)
        day += count

    (reason,) = reasons(leases)
    assert reason in {
        "method_version differs within both sides (1, 2): add the same method_version=... to both",
        "method_version differs within both sides (2, unknown): add the same method_version=... to both",
    }
    of_one = {"method_version": one}
    chosen = compare_sides(leases, Side("a", {**A.patterns, **of_one}), Side("b", {**B.patterns, **of_one}))
    assert [pair.verdict for pair in chosen.pairs] == ["equivalent"]


def test_a_side_that_alone_has_unknown_values_is_the_one_that_the_reason_names() -> None:
    leases = [*nights(range(3), 100), *nights(range(3, 6), 100, method_version="1")]
    leases += nights(range(6, 9), 100, engine_version="2", method_version="1")

    assert reasons(leases) == {"method_version differs: 1, unknown and 1"}


def test_a_series_of_one_side_only_and_a_lease_of_both_are_refused() -> None:
    assert reasons(list(nights(range(3), 100))) == {"only A has it"}
    assert reasons(list(nights(range(3), 100)), A, Side("all", {"night": "n*"})) == {
        "both sides have the same lease: name sides that do not overlap"
    }


def test_gpus_are_compared_although_they_are_of_two_series() -> None:
    leases = [*nights(range(6), 100), *nights(range(6, 12), 60, gpu="MI300X")]
    (pair,) = compare_sides(leases, Side("a", {"gpu": "H100"}), Side("b", {"gpu": "MI*"})).pairs

    assert pair.verdict == "gain"
    assert pair.differs["gpu"] == ("H100", "MI300X")


def test_variants_of_a_scenario_are_compared() -> None:
    leases = [
        *nights(range(5), 100, scenario="chat@eager", variant="eager"),
        *nights(range(5, 10), 90, scenario="chat@graphs", variant="graphs"),
    ]
    sides = Side("a", {"variant": "eager"}), Side("b", {"variant": "graphs"})

    assert [pair.verdict for pair in compare_sides(leases, *sides).pairs] == ["gain"]


def test_variants_are_compared_under_each_power_cap_apart_and_caps_for_each_variant() -> None:
    values = {("eager", "400W"): 100, ("eager", "300W"): 130, ("graphs", "400W"): 90, ("graphs", "300W"): 117}
    leases = [
        one
        for at, ((variant, cap), value) in enumerate(values.items())
        for one in nights(
            range(5 * at, 5 * at + 5), value, scenario=f"chat@{variant}@{cap}", variant=f"{variant}\n{cap}"
        )
    ]

    def shifts(one: str, other: str) -> dict[str, float]:
        sides = Side(one, {"variant": one}), Side(other, {"variant": other})
        pairs = compare_sides(leases, *sides).pairs
        return {pair.series.rpartition("/")[2]: round(pair.difference.shift, 1) for pair in pairs}

    assert shifts("eager", "graphs") == {"chat@400W": -0.1, "chat@300W": -0.1}
    assert shifts("400W", "300W") == {"chat@eager": 0.3, "chat@graphs": 0.3}


def test_machines_are_compared_although_their_gpus_and_the_names_of_their_scenarios_differ() -> None:
    leases = [
        *nights(range(5), 100, scenario="chat@mi", machine="mi", gpu="MI300X", parallelism="8x tp8"),
        *nights(range(5, 10), 90, scenario="chat@h2", machine="h2", gpu="H200", parallelism="4x tp4"),
        *nights(range(10, 12), 90, scenario="only@h2", machine="h2", gpu="H200", parallelism="4x tp4"),
    ]
    found = compare_sides(leases, Side("a", {"machine": "mi"}), Side("b", {"machine": "h2"}))

    assert [pair.verdict for pair in found.pairs] == ["gain"]
    assert [(one.missing_on, one.scenario) for one in found.refused] == [("A", "only@h2")]


def test_among_many_equal_pairs_few_losses_are_found_by_chance() -> None:
    """The share of comparisons of forty pairs that name any loss where nothing changed."""
    lost = 0
    for trial in range(20):
        random = np.random.default_rng(trial)
        values = np.exp(0.03 * random.standard_normal((40, 8)))
        leases = [
            lease(day, float(value), scenario=f"s{at}", engine_version="1" if day < 4 else "2")
            for at, row in enumerate(values)
            for day, value in enumerate(row)
        ]
        lost += compare_sides(leases, A, B).has_loss
    assert lost <= 2


def test_losses_are_first_and_the_largest_of_them_before_the_others() -> None:
    levels = {"small": 108.0, "none": 100.0, "large": 130.0, "gain": 80.0}
    leases = [
        one
        for name, level in levels.items()
        for one in (
            *nights(range(8), 100, 0.002, scenario=name),
            *nights(range(8, 16), level, 0.002, scenario=name, engine_version="2"),
        )
    ]
    pairs = compare_sides(leases, A, B).pairs

    assert [pair.verdict for pair in pairs] == ["loss", "loss", "gain", "equivalent"]
    assert pairs[0].series.endswith("large")
