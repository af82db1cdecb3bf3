"""Two sides of a warehouse are compared as a person would who knows what was measured."""

from pathlib import Path

import pytest

from bench.errors import UsageError
from bench.suite.model import Model
from flows.bisect import known_versions
from tests.warehouse.conftest import NEW, NIGHT, OLD
from tests.warehouse.folders import QUIET, Shape, Told, write_night, write_run
from warehouse.load import load_night
from warehouse.trends.compare import compare, few_values, geometric_means

LATER = "2026-03-02"
MEDIAN = "tpot_p50_ms"
DOUBTED = Told(engine_version="0.32.0+mine", host_use=QUIET.model_copy(update={"other_cpu_share": 0.06}))


@pytest.fixture(scope="module")
def doubted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose only run is suspect: of the four requests that its suite asks for, three were in flight."""
    return with_one_run(tmp_path_factory.mktemp("doubted"), Shape(concurrency=3))


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nights whose runs are suspect for nothing but others that took 6 % of the CPU time."""
    data = with_one_run(tmp_path_factory.mktemp("noisy"), Shape())
    return with_one_run(data, Shape(), LATER)


def with_one_run(data: Path, shape: Shape, name: str = NIGHT) -> Path:
    night = write_night(data, name, {"chat": Shape()})
    write_run(data, night, night.runs[0], shape, DOUBTED)
    assert load_night(data, name).verdicts == {"suspect": 1}
    return data


def test_a_slower_engine_version_is_a_confirmed_loss_of_about_its_size(versions: Path) -> None:
    found = compare(versions, OLD, NEW)
    row = next(row for row in found.answer()["pairs"] if row["metric"] == MEDIAN)
    means = {mean["metric"]: mean for mean in geometric_means(found.found.pairs)}

    assert found.exit_code == 1
    assert row["verdict"] == "loss"
    assert row["ci_lo"] < 10 < row["ci_hi"]
    assert row["differs"] == {"engine_version": (OLD, NEW)}
    assert (row["a_leases"], row["b_leases"], row["interval"]) == (3, 3, "between leases")
    assert means[MEDIAN]["ci_lo"] < 1 / 1.1 < means[MEDIAN]["ci_hi"] < 1
    assert means["output_throughput_tok_per_s"]["ratio"] < 1


def test_a_published_number_of_another_model_is_refused_term_by_term(versions: Path) -> None:
    found = compare(versions, OLD, "published:2")

    assert found.found.pairs == ()
    assert "model differs: Llama-3.3-70B published" in found.found.refused[0].reason
    assert found.summary == "no pair was compared: nothing is known of a loss or a gain"


def test_a_published_range_is_wrong_usage(versions: Path) -> None:
    with pytest.raises(UsageError, match="printed as 'N/A', which is not one number"):
        compare(versions, OLD, "published:10")


@pytest.mark.parametrize(
    ("stated", "shown"), [("", "unknown"), ("3.1, 3.2, 4", "3.1, 3.2, 4"), ("a, b, c, d", "4 values")]
)
def test_a_table_counts_the_values_of_a_field_that_has_many(stated: str, shown: str) -> None:
    assert few_values(stated) == shown


@pytest.mark.parametrize("side", ["{night}", "0.32.0+mine", "night={night}"])
def test_a_night_of_suspect_runs_is_not_compared_and_the_error_says_why(doubted: Path, side: str) -> None:
    text = side.format(night=NIGHT)
    with pytest.raises(UsageError) as refused:
        compare(doubted, text, text)

    assert str(refused.value).startswith(f"{text} has 1 run in the warehouse and none counts (1 suspect): ")
    assert f"FROM findings_worst WHERE night = '{NIGHT}'" in str(refused.value)


def test_a_night_that_only_noise_makes_suspect_is_compared_and_the_answer_says_so(noisy: Path) -> None:
    found = compare(noisy, NIGHT, LATER)

    names = [side[0].name for side in (found.found.pairs[0].one, found.found.pairs[0].other)]
    assert found.summary.endswith(f"; noise on the host makes runs of {', '.join(names)} suspect")


def test_a_version_that_is_known_of_suspect_runs_alone_can_be_bisected(doubted: Path) -> None:
    assert known_versions(doubted) == ["0.32.0+mine"]


NEXT = "2026-03-02"


@pytest.fixture(scope="module")
def thinned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nights of three scenarios: the second lacks one by a failure, and was planned without another."""
    data = tmp_path_factory.mktemp("thinned")
    shapes = {"chat": Shape(), "long": Shape(tokens=9), "gone": Shape(tokens=10)}
    for name, scenarios in ((NIGHT, ("chat", "long", "gone")), (NEXT, ("chat", "long"))):
        night = write_night(data, name, {one: shapes[one] for one in scenarios})
        for run in night.runs:
            is_failed = (name, run.scenario.name) == (NEXT, "long")
            told = Told("failed", "server", "out of memory") if is_failed else Told()
            write_run(data, night, run, shapes[run.scenario.name], told)
        load_night(data, name)
    return data


def test_what_a_night_lacks_is_said_with_its_reason(thinned: Path) -> None:
    rows = compare(thinned, NIGHT, NEXT).answer()["missing"]

    assert {row["side"] for row in rows} == {"B"}
    assert {(row["series"].rpartition("/")[2], row["why"]) for row in rows} == {
        ("long", "1 failed: out of memory"),
        ("gone", "not planned"),
    }
    assert {row["side"] for row in compare(thinned, NEXT, NIGHT).answer()["missing"]} == {"A"}


def test_what_another_model_of_the_scenario_did_is_no_reason(tmp_path: Path) -> None:
    for name, model in ((NIGHT, "small"), (NEXT, "tiny")):
        with_model(tmp_path, name, model)

    rows = compare(tmp_path, NIGHT, NEXT).answer()["missing"]

    assert {(row["side"], "small" in row["series"], row["why"]) for row in rows} == {
        ("A", False, "not planned"),
        ("B", True, "not planned"),
    }


def with_model(data: Path, name: str, model: str) -> None:
    """A night whose only run is accepted, of this model."""
    night = write_night(data, name, {"chat": Shape()})
    scenario = night.runs[0].scenario.model_copy(update={"model": Model(name=model, source="generated:tiny")})
    run = night.runs[0].model_copy(update={"scenario": scenario})
    planned = night.model_copy(update={"runs": (run,)})
    (data / "runs" / name / "night.json").write_text(planned.model_dump_json())
    write_run(data, planned, run, Shape())
    assert load_night(data, name).verdicts == {"accepted": 1}


def test_an_accepted_run_is_no_reason_why_a_metric_is_missing(tmp_path: Path) -> None:
    for name, told in ((NIGHT, Told()), (NEXT, Told(usd_per_hour=None))):
        night = write_night(tmp_path, name, {"chat": Shape()})
        write_run(tmp_path, night, night.runs[0], Shape(), told)
        assert load_night(tmp_path, name).verdicts == {"accepted": 1}

    rows = compare(tmp_path, NIGHT, NEXT).answer()["missing"]

    assert {(row["side"], row["why"]) for row in rows} == {("B", "not measured")}
