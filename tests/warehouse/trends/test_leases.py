"""A comparison reads the nights that it compares and those around them, not the years before."""

from pathlib import Path

from bench.trends.sides import Side
from tests.warehouse.conftest import NEW, OLD
from warehouse.trends.leases import NEAR, Setups, near, own_leases, own_setups


def test_the_nights_near_those_of_a_side_are_read_and_only_of_its_series() -> None:
    nights = [f"n{at:03}" for at in range(400)]
    setups: Setups = {
        (night, name, "lease"): {"night": night, "series": name} for night in nights for name in ("chat", "rag")
    }
    sides = [Side("", {"night": night, "series": "chat"}) for night in ("n010", "n300")]

    found = near(setups, sides)

    expected = [*nights[: 10 + NEAR + 1], *nights[300 - NEAR : 300 + NEAR + 1]]
    assert [facts["night"] for facts in found.values()] == expected
    assert {facts["series"] for facts in found.values()} == {"chat"}


def test_a_side_that_matches_nothing_reads_nothing() -> None:
    assert near({("n1", "chat", None): {"night": "n1", "series": "chat"}}, [Side("", {"night": "n2"})]) == {}


def test_the_values_of_chosen_setups_are_read_with_their_facts(versions: Path) -> None:
    setups = own_setups(versions)
    old = {ids: facts for ids, facts in setups.items() if facts["engine_version"] == OLD}

    every, chosen = list(own_leases(versions, setups)), list(own_leases(versions, old))

    assert {lease.facts["engine_version"] for lease in every} == {OLD, NEW}
    assert chosen == [lease for lease in every if lease.facts["engine_version"] == OLD]
    assert {lease.name for lease in chosen} == {f"{night} {lease}" for night, _scenario, lease in old}
    assert list(own_leases(versions, {})) == []
