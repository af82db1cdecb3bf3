"""What a run may do that is started through a deployment: its parameters come from whoever reaches Prefect's API.

A suite starts programs on its machine, and a target rents machines or receives an API key. So the worker's settings
list the targets, and name the folder of suites. The command line is its user's own and is not limited.
"""

from datetime import UTC, datetime
from pathlib import Path

from prefect.context import FlowRunContext

from bench.errors import UsageError
from bench.suite.target import LOCAL
from infra.bootstrap import planned_target
from infra.clouds.by_name import RENTED
from infra.settings import Settings
from infra.storage import store

SUITES = Path(__file__).parent.parent / "suites"


def is_deployed() -> bool:
    """Whether this flow run was started through a deployment."""
    context = FlowRunContext.get()
    return context is not None and getattr(context.flow_run, "deployment_id", None) is not None


def why_skipped(settings: Settings) -> str | None:
    """Why a night that the schedule started is not run: it is too late. None: it is run.

    What a person or a command starts is never late.
    """
    context = FlowRunContext.get()
    run = None if context is None else context.flow_run
    if run is None or not run.auto_scheduled or run.expected_start_time is None:
        return None
    hours = (datetime.now(UTC) - run.expected_start_time).total_seconds() / 3600
    if hours <= settings.late_hours:
        return None
    return f"late by {hours:.0f} h: a night that is more than {settings.late_hours:g} h late is not run"


def require_listed(settings: Settings, suite: Path, target: str, resume: str | None) -> None:
    """Raise UsageError, before anything is started, where a deployed run asks for what the settings do not list."""
    _require_folder(settings, suite)
    if resume is not None:
        if Path(resume).name != resume:
            raise UsageError(f"resume {resume!r} is not the name of a night, such as 2026-03-01T010000Z")
        target = store.read_night(settings.data, resume).target
    require_target(settings, target)


def _require_folder(settings: Settings, suite: Path) -> None:
    folders = [SUITES, *([] if settings.deployed_suites is None else [settings.deployed_suites])]
    if not any(suite.resolve().is_relative_to(folder.resolve()) for folder in folders):
        raise UsageError(
            f"suite {suite} is refused: a run of a deployment uses suites in {' or '.join(map(str, folders))} only; "
            "move it there, or set NIGHTBENCH_DEPLOYED_SUITES to its folder for the worker"
        )


def require_target(settings: Settings, target: str) -> None:
    """Raise UsageError where the settings do not list this target for deployed runs."""
    given = settings.deployed_targets
    listed = {planned_target(one).name for one in ((LOCAL, *RENTED) if given is None else given)}
    if planned_target(target).name not in listed:
        raise UsageError(
            f"target {target} is refused: a run of a deployment measures on {', '.join(sorted(listed)) or 'nothing'} "
            "only; add it to NIGHTBENCH_DEPLOYED_TARGETS of the worker"
        )
