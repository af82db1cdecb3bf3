"""Measurements simulated from first principles are within every bound of physics, alone and as a sweep."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from bench.audit.rules import BY_COLUMN
from bench.audit.rules.coherence import COHERENCE_RULES
from bench.audit.rules.money import MONEY_RULES
from bench.audit.rules.physics import MEMORY_RULES, ROOFLINE_RULES
from bench.audit.rules.provenance import PROVENANCE_RULES
from tests.bench.claims import findings
from tests.bench.simulate import Load, claim_of, load_of, loads, long_enough, simulate

OWN = {rule.column for rule in (*ROOFLINE_RULES, *MEMORY_RULES, *PROVENANCE_RULES, *MONEY_RULES, *COHERENCE_RULES)}


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(loads())
def test_no_rule_speaks_of_a_healthy_measurement(load: Load) -> None:
    found = findings(claim_of(simulate(load)))

    assert [each for each in found if each.column in OWN and each.status != "PASS"] == []
    assert {each.code for each in found} >= {"roofline_compute", "memory_fit", "precision_conflict", "roofline_prefill"}


def test_no_rule_speaks_of_a_healthy_sweep() -> None:
    sweep = [long_enough(load_of(concurrency=level, seed=level), seconds=20) for level in (1, 2, 4, 8, 16, 32, 64)]
    more = [replace(load, group=replace(load.group, count=2)) for load in sweep]
    narrower = [replace(load, group=replace(load.group, precision="fp8")) for load in sweep]

    found = findings(*(claim_of(simulate(load)) for load in (*sweep, *more, *narrower)))

    of_groups = {each.column for each in found if BY_COLUMN[each.column].scope == "group"}
    assert [each for each in found if each.column in OWN and each.status in ("WARN", "FAIL")] == []
    assert of_groups >= {"ev_load_growth", "ev_over_linear", "ev_tp_gain", "ev_precision_gain", "ev_tpot_drop"}
