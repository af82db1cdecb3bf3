import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench import wording
from bench.audit.rules import BY_COLUMN, NIGHT_RULES, Rule, Status, judge, verdict
from tests.bench.audit.test_measurement import KINDS
from tests.warehouse.conftest import NIGHT
from tests.warehouse.folders import Shape, Told, write_night, write_run
from warehouse.judging.expectations import ExpectationResult, checks, frame_of, validate
from warehouse.judging.night_verdicts import CHECK_ERRORED, Judgement, cases_of, judge_night
from warehouse.judging.night_verdicts import judge as judge_results
from warehouse.judging.validation import raised
from warehouse.lake.query import run_sql
from warehouse.load import LoadSummary, load_night
from warehouse.rows.evidence import note_of
from warehouse.rows.run_folder import RunId, read_run
from warehouse.rows.run_rows import run_rows
from warehouse.schema.row import Row

STEP = 1e-6
ARRIVALS = {"replay": "trace", "sessions": "sessions"}  # those to which rules of these loops apply
EARLIER = {"ev_logprob_fall": 0.0, "ev_greedy_agreed_earlier_share": 1.0}  # as the night before it answered


@pytest.fixture(scope="session")
def good_rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """A good row of each loop, by loop."""
    data = tmp_path_factory.mktemp("good")
    shapes = {"closed": Shape(), "open": Shape(arrivals="constant")}
    night = write_night(data, NIGHT, shapes)
    rows = {}
    for run in night.runs:
        name = run.scenario.name
        folder = write_run(data, night, run, shapes[name])
        rows[name] = run_rows(RunId(NIGHT, run.scenario.scenario_id, 0), read_run(folder)).measurement | EARLIER
    return rows


def _loop(rule: Rule) -> str:
    return "open" if rule.loop in ("open", "replay") else "closed"


def _kin(rule: Rule) -> list[Rule]:
    """The rules of the same kind of workload, which apply to the same rows only."""
    if rule.loop in ARRIVALS:
        return [one for one in NIGHT_RULES if one.loop in ARRIVALS]
    return [one for one in NIGHT_RULES if rule.only_where in KINDS and one.only_where == rule.only_where]


def _just_outside(rule: Rule) -> dict[Status, float]:
    """A value just outside what passes, and one just outside what is tolerated, by the status each deserves."""
    values: dict[Status, float] = {}
    for bounds in (rule.passing, rule.tolerated):
        if bounds is not None:
            low, high = bounds
            value = high + STEP if high is not None else (low or 0.0) - STEP
            # A share cannot be above one, so its lower bound is the one that is met.
            value = low - STEP if low is not None and high == 1.0 else value
            values[judge(rule, value)] = value
    return values


CASES = [(rule, status, value) for rule in NIGHT_RULES for status, value in _just_outside(rule).items()]


@pytest.fixture(scope="session")
def judged_cases(good_rows: dict[str, Row]) -> Judgement:
    """Every case as one row of one night, judged by the real great-expectations."""
    return judge_night([_spoiled(good_rows, rule, status, value) for rule, status, value in CASES])


def _spoiled(good_rows: dict[str, Row], rule: Rule, status: str, value: float) -> Row:
    asked: Row = {rule.only_where: ["gsm8k"]} if rule.only_where in ("lm_eval_tasks", "lm_eval_floors") else {}
    asked |= {one.column: next(bound for bound in one.passing if bound is not None) for one in _kin(rule)}
    asked |= {rule.only_where: True} if rule.only_where in KINDS else {}
    asked |= {"arrivals": ARRIVALS[rule.loop]} if rule.loop in ARRIVALS else {}
    return good_rows[_loop(rule)] | asked | {"run_id": f"{rule.code}-{status}", rule.column: value}


def test_every_rule_has_a_case_in_which_it_does_not_pass() -> None:
    assert {rule.code for rule, _status, _value in CASES} == {rule.code for rule in NIGHT_RULES}
    assert "PASS" not in {status for _rule, status, _value in CASES}


@pytest.mark.parametrize(("rule", "status", "value"), CASES, ids=[f"{rule.code}-{status}" for rule, status, _ in CASES])
def test_each_rule_is_seen_to_doubt_a_good_row_that_was_spoiled(
    judged_cases: Judgement, good_rows: dict[str, Row], rule: Rule, status: Status, value: float
) -> None:
    run_id = f"{rule.code}-{status}"

    found = {f["code"]: f for f in judged_cases.findings if f["run_id"] == run_id}

    doubts = {code: finding["status"] for code, finding in found.items() if finding["status"] != "PASS"}
    assert doubts == {rule.code: status}
    assert found[rule.code]["observed"] == value
    note = note_of(rule, good_rows[_loop(rule)])
    sentence = rule.sentence.format(value=wording.PlainNumber(value))
    assert found[rule.code]["message"] == (f"{sentence}: {note}" if note else sentence)
    assert found[rule.code]["severity"] == ("critical" if status == "FAIL" else "warning")
    spoiled = "rejected" if status == "FAIL" else "suspect"
    assert judged_cases.verdicts[run_id] == ("accepted" if rule.scope == "metric" else spoiled)


def test_a_good_row_is_accepted_and_the_night_validates(good_rows: dict[str, Row]) -> None:
    judged = judge_night(list(good_rows.values()))

    assert set(judged.verdicts.values()) == {"accepted"}
    assert judged.validation["success"] is True
    assert {finding["status"] for finding in judged.findings} == {"PASS"}
    assert json.loads(json.dumps(judged.validation)) == judged.validation


def test_a_required_rule_without_its_input_makes_a_row_suspect(good_rows: dict[str, Row]) -> None:
    row = good_rows["closed"] | {"ev_server_errors": None, "ev_not_checkable": 1.0}

    judged = judge_night([row])

    found = {finding["code"]: finding["status"] for finding in judged.findings}
    assert (found["server_errors"], found["not_checkable"]) == ("NOT-CHECKABLE", "WARN")
    assert judged.verdicts[row["run_id"]] == "suspect"


def test_a_rule_that_is_only_asked_where_it_can_be_raises_no_doubt_where_it_cannot(good_rows: dict[str, Row]) -> None:
    row = good_rows["closed"] | {"ev_live_disagreement_share": None}

    judged = judge_night([row])

    found = {finding["code"]: (finding["status"], finding["severity"]) for finding in judged.findings}
    assert found["live_disagreement"] == ("NOT-CHECKABLE", "info")
    assert judged.verdicts[row["run_id"]] == "accepted"


def test_a_value_that_cannot_be_rejects_its_row_and_is_named(good_rows: dict[str, Row]) -> None:
    row = good_rows["closed"] | {"ttft_p50_ms": -1.0}

    judged = judge_night([row])

    messages = [finding["message"] for finding in judged.findings if finding["status"] == "FAIL"]
    assert messages == ["1 value is impossible: ttft_p50_ms = -1.0"]
    assert judged.verdicts[row["run_id"]] == "rejected"


def test_an_empty_frame_never_passes() -> None:
    judged = judge_night([])

    assert judged.validation["success"] is False
    assert [c["code"] for c in judged.validation["checks"] if not c["success"]] == ["has_rows"]


def test_a_row_without_an_id_rejects_the_night(good_rows: dict[str, Row]) -> None:
    rows = list(good_rows.values())
    frame = frame_of(cases_of(rows, {}))
    frame.loc[0, "run_id"] = None

    judged = judge_results(rows, validate(frame))

    assert set(judged.verdicts.values()) == {"rejected"}


def test_a_check_that_broke_rejects_every_row(good_rows: dict[str, Row]) -> None:
    rows = list(good_rows.values())

    judged = judge_results(rows, validate(frame_of(cases_of(rows, {})).drop(columns="ev_osl_ratio")))

    broken = [finding for finding in judged.findings if finding["code"] == CHECK_ERRORED]
    assert [finding["status"] for finding in broken] == ["FAIL", "FAIL"]
    assert all("osl_not_reached" in finding["message"] for finding in broken)
    assert set(judged.verdicts.values()) == {"rejected"}
    assert judged.validation["success"] is False
    assert {f["status"] for f in judged.findings if f["code"] == "osl_not_reached"} == {"NOT-CHECKABLE"}


def test_a_check_that_looked_at_fewer_rows_than_there_are_rejects_every_row(good_rows: dict[str, Row]) -> None:
    rows = list(good_rows.values())

    judged = judge_results(rows, validate(frame_of(cases_of(rows[:1], {}))))

    assert list(judged.verdicts.values()) == ["rejected", "rejected"]
    assert judged.validation["success"] is False


def test_no_checks_at_all_accept_nothing(good_rows: dict[str, Row]) -> None:
    judged = judge_results(list(good_rows.values()), [])

    assert set(judged.verdicts.values()) == {"suspect"}
    assert judged.validation["success"] is False


def test_a_check_without_a_result_rejects_every_row(good_rows: dict[str, Row]) -> None:
    unsaid = [ExpectationResult(check, False, (), None, "great-expectations returned no result") for check in checks()]

    judged = judge_results(list(good_rows.values()), unsaid)

    assert set(judged.verdicts.values()) == {"rejected"}


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({"raised_exception": True, "exception_message": "flat"}, "flat"),
        ({"metric": {"raised_exception": True, "exception_message": "by metric"}}, "by metric"),
        ({"raised_exception": False, "exception_message": None}, None),
        ({"metric": {"raised_exception": False}}, None),
        ({}, None),
    ],
)
def test_both_shapes_of_exception_info_are_read(info: dict[str, object], message: str | None) -> None:
    assert raised(info) == message


def _values(rule: Rule) -> st.SearchStrategy[float | None]:
    bounds = [bound for limits in (rule.passing, rule.tolerated or ()) for bound in limits if bound is not None]
    near = [near for bound in bounds for near in (bound, math.nextafter(bound, -9e9), math.nextafter(bound, 9e9))]
    odd = [None, math.nan, math.inf, -math.inf]
    return st.sampled_from([*near, *odd]) | st.floats(min_value=-2, max_value=3)


FRAMES = st.lists(
    st.tuples(
        st.fixed_dictionaries({rule.column: _values(rule) for rule in NIGHT_RULES}),
        st.sampled_from(["closed", "poisson"]),
        st.sampled_from(["meter", "vllm-bench"]),
        st.sampled_from(["tokens", "chat"]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(frames=FRAMES)
def test_great_expectations_says_what_the_audit_says(
    good_rows: dict[str, Row], frames: list[tuple[dict[str, float | None], str, str, str]]
) -> None:
    rows = [
        good_rows["closed"]
        | evidence
        | {"lm_eval_tasks": ["gsm8k"], "lm_eval_floors": ["gsm8k acc,none >= 0.5"], "run_id": f"r{at}"}
        | dict.fromkeys(KINDS, True)
        | {"arrivals": arrivals, "driver": driver, "prompt_form": form}
        for at, (evidence, arrivals, driver, form) in enumerate(frames)
    ]

    judged = judge_night(rows)

    for row in rows:
        loop = "closed" if row["arrivals"] == "closed" else "open"
        exact = row["prompt_form"] == "tokens"
        rules = [rule for rule in NIGHT_RULES if rule.applies(loop, row["driver"], is_exact=exact)]
        is_busy = any((row[name] or 0.0) > 1 for name in ("ev_other_cpu_over_allowed", "ev_steal_over_allowed"))
        expected = {rule.column: judge(rule, row[rule.column], is_beside_others=is_busy) for rule in rules}
        expected["ev_impossible_values"] = "PASS"  # of the whole row, and none is spoiled here
        found = [(f["code"], f["status"]) for f in judged.findings if f["run_id"] == row["run_id"]]
        assert found == [(BY_COLUMN[column].code, status) for column, status in expected.items()]
        assert judged.verdicts[row["run_id"]] == verdict(expected)


TROUBLES = {
    "server_restarted": Told(counters={"num_preemptions_total": -3}),
    "client_server_mismatch": Told(counters={"generation_tokens_total": 9000}),
    "client_server_mismatch_prompt": Told(counters={"prompt_tokens_total": 1}),
    "preempted": Told(counters={"num_preemptions_total": 2}),
    "server_errors": Told(counters={"abort": 1}),
    "prefix_cache_contamination": Told(counters={"prefix_cache_queries_total": 100, "prefix_cache_hits_total": 50}),
    "engine_version_conflict": Told(engine_version="0.33.0"),
}


def test_trouble_in_the_files_becomes_findings_in_the_lake(tmp_path: Path) -> None:
    shapes = {name: Shape(tokens=8 + at) for at, name in enumerate(TROUBLES)}
    night = write_night(tmp_path, NIGHT, shapes)
    for run in night.runs:
        write_run(tmp_path, night, run, shapes[run.scenario.name], TROUBLES[run.scenario.name])

    load_night(tmp_path, NIGHT)

    sql = "SELECT scenario, code FROM findings JOIN measurements USING (run_id) WHERE status IN ('FAIL', 'WARN')"
    assert {(name, name) for name in TROUBLES} <= set(run_sql(tmp_path, sql).rows)
    said = "SELECT message FROM findings WHERE code = 'prefix_cache_contamination' AND status = 'FAIL'"
    ((message,),) = run_sql(tmp_path, said).rows
    assert message == (
        "hits of the prefix cache differ from the planned ones by 50.0% of the prompt tokens: 50 of 100 tokens hit, "
        "0 were planned"
    )


def test_passes_are_kept_as_findings_too(loaded: tuple[Path, LoadSummary]) -> None:
    found = run_sql(loaded[0], "SELECT DISTINCT status, severity FROM findings ORDER BY ALL").rows

    assert found == (("NOT-CHECKABLE", "info"), ("PASS", "info"), ("WARN", "warning"))
