"""A search for flags: each round is a night of its own, and a file keeps what was measured."""

from collections.abc import Callable
from pathlib import Path

from bench.search.halving import Round, Step, Tuning, TuningNight, next_step
from bench.suite.engine_searches import Tune
from flows.tune.plan import name_of, nights_of, over_budget, state_file
from flows.tune.suites import write_night_suite
from infra.loadgen.suite_file import draft_sha256
from infra.reporting import Say
from infra.settings import Settings
from infra.storage import store
from infra.storage.begun_nights import begun_night
from infra.storage.bucket import bucket_location, upload_night
from warehouse.load import load_night
from warehouse.report.page import write_report
from warehouse.trends.tune import read_confirmation, read_trials

RunNight = Callable[[Path, str | None], str]  # runs the night of a suite, or resumes the one it is given


def run_search(settings: Settings, search: Tuning, tune: Tune, run: RunNight, say: Say) -> tuple[Tuning, Step]:
    """Measure until the answer is known or the next night would exceed the budget; each night is kept at once."""
    data = settings.data.absolute()
    while not (step := next_step(search)).answer:
        over = over_budget(settings, search, tune, step)
        if over:
            return search, Step(answer=f"stopped by its budget: {over}; {_best_so_far(search)}")
        say(f"{name_of(search, len(nights_of(search)), step)}: {', '.join(step.candidates)}")
        suite = write_night_suite(data, search, step, tune.rounds)
        night = run(suite, begun_night(data, draft_sha256(suite, search.target), search.target, nights_of(search)))
        search = _with_night(data, search, tune, step, night)
        _show_on_its_page(settings, search, step, night, say)
        store.write_json(state_file(data, search), search)
    return search, step


def _with_night(data: Path, search: Tuning, tune: Tune, step: Step, night: str) -> Tuning:
    if step.is_confirmation:
        found = read_confirmation(data, night, search.scenario, search.metric, tune.rounds, step.candidates[1])
        return search.model_copy(update={"confirmations": (*search.confirmations, found)})
    trials = read_trials(data, night, search.scenario, search.metric, step.candidates)
    return search.model_copy(
        update={"rounds": (*search.rounds, Round(night=night, request_count=step.request_count, trials=trials))}
    )


def _show_on_its_page(settings: Settings, search: Tuning, step: Step, night: str, say: Say) -> None:
    """Write what the night of a search showed into its folder, load it, write its page again, and upload both."""
    data = settings.data.absolute()
    following = next_step(search)
    said = following.answer or f"{', '.join(following.candidates)} go on"
    kind = "confirmation" if step.is_confirmation else "round"
    found = TuningNight(search=search, kind=kind, next_step=said, is_over=bool(following.answer))
    store.write_json(store.tuning_file(data, night), found)
    load_night(data, night)
    write_report(data, night)
    if bucket_location(settings) is not None:
        for warning in upload_night(settings, night, settings.s3_patience_s):
            say(warning)


def _best_so_far(search: Tuning) -> str:
    step = next_step(search)
    last = search.rounds[-1]
    values = {one.candidate: one.value for one in last.trials}
    named = [f"{name} ({search.candidate(name)}) {values.get(name) or 0:.4g}" for name in step.candidates]
    return f"not confirmed, by {search.metric} of {last.request_count} requests: {'; '.join(named)}"
