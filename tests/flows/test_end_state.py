"""The state of a night at its end: red only where a person must act."""

from pathlib import Path

import pytest
from prefect import flow
from prefect.client.schemas.objects import State, StateType

from bench.errors import BudgetError, MachinesEndedError, MachineUnfitError, NightbenchError, NoCapacityError
from flows.end_state import as_state, ended, loaded
from tests.warehouse.folders import whole_night
from tests.warehouse.trends.judgements import write_judgement
from warehouse.load import LoadSummary

NIGHT, AGAIN = "2026-03-01T010000Z", "2026-03-02T010000Z"
GOOD = LoadSummary(NIGHT, 2, 36, {"accepted": 1, "suspect": 1}, (), ())


def state_of(verdict: str, data: Path) -> State[object] | LoadSummary:
    """What a night returns whose runs have these verdicts."""
    return ended(data, LoadSummary(NIGHT, 2, 36, dict.fromkeys(verdict.split(), 1), (), ()))


@pytest.mark.parametrize(("verdicts", "name"), [("rejected accepted", "Rejected"), ("rejected failed", "Failed")])
def test_runs_that_are_bad_make_a_night_red(tmp_path: Path, verdicts: str, name: str) -> None:
    state = state_of(verdicts, tmp_path)

    assert isinstance(state, State)
    assert (state.type, state.name) == (StateType.FAILED, name)


def test_a_confirmed_change_is_in_the_state_also_where_a_second_night_confirmed_it(tmp_path: Path) -> None:
    whole_night(tmp_path, NIGHT)
    assert ended(tmp_path, GOOD) is GOOD

    again = whole_night(tmp_path, AGAIN).model_copy(update={"rerun_of": NIGHT})
    (tmp_path / "runs" / AGAIN / "night.json").write_text(again.model_dump_json())
    write_judgement(tmp_path, AGAIN)
    state: object = ended(tmp_path, GOOD)

    assert isinstance(state, State)
    assert (state.type, state.name) == (StateType.COMPLETED, "Completed with changes")
    assert "tpot_p50_ms" in str(state.message)
    assert state.result() is GOOD


def together() -> MachinesEndedError:
    """Of several machines, none could be rented."""
    error = MachinesEndedError("a: no capacity; b: no capacity")
    error.ending = NoCapacityError.ending
    return error


@pytest.mark.prefect
@pytest.mark.usefixtures("prefect_api")
@pytest.mark.parametrize(
    ("error", "kind", "name"),
    [
        (NoCapacityError("none"), StateType.COMPLETED, "No capacity"),
        (together(), StateType.COMPLETED, "No capacity"),
        (BudgetError("spent"), StateType.COMPLETED, "Out of budget"),
        (MachineUnfitError("slow"), StateType.FAILED, "Failed"),
    ],
)
def test_an_error_on_which_nobody_must_act_is_a_state_and_is_raised_for_the_caller(
    error: NightbenchError, kind: StateType, name: str
) -> None:
    seen, released = list[State[object]](), list[str]()

    def fail() -> LoadSummary:
        raise error

    @flow(on_completion=[lambda _flow, _run, state: seen.append(state)], on_failure=[lambda _f, _r, s: seen.append(s)])
    def night() -> LoadSummary:
        return as_state(fail, lambda: released.append(name))

    with pytest.raises(type(error), match=str(error)):
        loaded(night())

    assert [(state.type, state.name) for state in seen] == [(kind, name)]
    assert released == ([] if name == "Failed" else [name])  # of a failed night, its hook releases
