"""A budget that several machines share is never passed, whatever each lease costs and however often one is replaced."""

import random

from bench.machine_nights import shares_of
from bench.suite.machine import Machine
from infra.clouds.cloud import Offer
from infra.leases.offers import BILLED_MINUTES_MIN, after_spending, lease_request_of, why_too_dear

BUDGET_USD = 40.0


def test_the_leases_of_all_machines_together_never_pass_the_budget() -> None:
    spent = [most_spent(random.Random(seed)) for seed in range(200)]

    assert max(spent) <= BUDGET_USD + 1e-9
    assert sum(one > BUDGET_USD / 2 for one in spent) > 50, "many nights rent for more than half of it"


def most_spent(dice: random.Random) -> float:
    """What the leases of a drawn night cost, each until its deadline at most."""
    machines = [
        Machine(name=f"m{number}", kind=f"kind-{number}", lease_minutes=dice.choice((30, 60, 240)))
        for number in range(dice.choice((2, 3)))
    ]
    known = {str(one.name): dice.uniform(1, 20) for one in machines if dice.random() < 0.8}
    shares = shares_of(BUDGET_USD, machines, known)
    spent = dict.fromkeys(shares, 0.0)

    for machine in dice.choices(machines, k=12):  # one after the other or at the same time: none knows of another
        name = str(machine.name)
        limited = machine.model_copy(update={"budget_usd": shares[name]})
        request = after_spending(lease_request_of(limited), spent[name])
        offer = Offer(machine.kind, known.get(name, 5.0) * dice.uniform(0.5, 2.0), "atl1", is_spot=False)
        if why_too_dear(offer, request) is None:
            minutes = max(dice.uniform(0, 1) * request.minutes, BILLED_MINUTES_MIN)
            spent[name] += minutes / 60 * offer.usd_per_hour

    return sum(spent.values())
