"""Measure the suspect scenarios of a night again: by a second night, once, within the budget."""

from collections.abc import Callable, Sequence

from prefect import get_run_logger

from bench.errors import NightbenchError
from bench.record import NightRecord
from tasks.loading import report
from tasks.planning import plan_rerun


def measure_suspects(night: NightRecord, suspects: Sequence[str], run: Callable[[NightRecord], object]) -> None:
    """Run a second night of these scenario ids; its failure does not end the first, whose page is written again."""
    log = get_run_logger()
    if night.rerun_of is not None or not night.suite.rerun_suspects:
        return
    again = plan_rerun(night.night, suspects)
    if again is None:
        log.warning("%d suspect scenarios are not measured again: it was done, or the budget is spent", len(suspects))
        return
    try:
        run(again)
    except NightbenchError as error:
        log.warning("the suspect scenarios were not all measured again: %s", error)
    report(night.night)
