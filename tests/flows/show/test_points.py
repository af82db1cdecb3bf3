"""A plan of many scenarios: a line for a hundred of them, and each with --full."""

from flows.show.points import in_short
from tests.bench.suite.test_expansion import HEAD
from tests.flows.conftest import NightFixture

MANY = """
[[matrix]]
name = "m"
isl = {isl}
osl = [8, 16]
concurrency = 1
requests_per_slot = 10

[[scenarios]]
name = "own"
isl = 1
osl = 8
concurrency = 1
request_count = 10
engine = {{ max_model_len = 2048 }}

[[scenarios]]
name = "twin"
isl = 1
osl = 8
concurrency = 1
request_count = 10
"""


def test_a_plan_has_one_line_for_a_hundred_points(house: NightFixture) -> None:
    house.suite.write_text(HEAD + MANY.format(isl=list(range(1, 126))))

    short = house.call("plan", str(house.suite)).stdout

    assert "night on local: 1004 runs, 2 server starts" in short
    assert [line.split()[1] for line in short.splitlines() if line.startswith("│")] == ["100", "100", "51"]
    assert "merged: m/isl=1,osl=8 is equal to twin, which is measured once for both" in short


def test_a_plan_in_full_has_every_point(house: NightFixture) -> None:
    house.suite.write_text(HEAD.replace("repeats = 4", "repeats = 1") + MANY.format(isl=list(range(1, 16))))

    full = house.call("plan", str(house.suite), "--full").stdout

    assert len([line for line in full.splitlines() if line.startswith("│")]) == 31


def test_a_matrix_of_too_many_points_is_refused_with_exit_2(house: NightFixture) -> None:
    house.suite.write_text(HEAD + MANY.format(isl=list(range(1, 5001))))

    done = house.call("plan", str(house.suite))

    assert done.returncode == 2
    assert "the suite has 10002 scenarios, and a suite has at most 1000" in done.stderr


def test_stages_of_a_hundred_scenarios_are_added() -> None:
    row = {"stage": "measure", "times": 2, "minutes": 1.5, "billed_minutes": 1.5, "usd": 0.25, "basis": "10 tok/s"}
    stages = [row | {"stage": "boot", "scenario": None}, *(row | {"scenario": f"s{n}"} for n in range(150))]

    boot, first, last = in_short(stages)

    assert boot == stages[0]
    assert (first["scenario"], first["times"], first["minutes"], first["usd"]) == (
        "100 scenarios from s0",
        200,
        150,
        25,
    )
    assert (last["scenario"], last["minutes"], last["basis"]) == ("50 scenarios from s100", 75, "10 tok/s")
