"""Checks the tokens of each cloud and of the tracker: what they are allowed, and whether that is too much."""

from collections.abc import Iterator

from bench.errors import CloudDeniedError, NightbenchError, UsageError
from flows.doctor.host_checks import Check
from infra.clouds.by_name import set_up
from infra.clouds.module import CloudModule
from infra.notices.tracker import TrackerError, open_tracker
from infra.settings import Settings


def examine_tokens(settings: Settings) -> list[Check]:
    """A check for the token of each cloud, of its machines that delete themselves, and of the tracker.

    The clouds are called; nothing is changed there. One that does not answer is reported and not counted as a fault.
    """
    of_clouds = (check for name, cloud in set_up(settings).items() for check in _of_cloud(settings, name, cloud))
    return [*of_clouds, *examine_tracker(settings)]


def examine_tracker(settings: Settings) -> list[Check]:
    """A check that the token reads the issues of the tracker; none where there is no tracker."""
    try:
        tracker = open_tracker(settings)
        if tracker is None:
            return []
        tracker.require_access()
    except (UsageError, TrackerError) as error:
        return [Check("tracker", "cannot be used", is_good=False, advice=str(error))]
    return [Check("tracker", f"{tracker.name} shows its issues", is_good=True, advice="")]


def _of_cloud(settings: Settings, name: str, cloud: CloudModule) -> Iterator[Check]:
    try:
        missing = cloud.missing_scopes(settings)
        if missing is not None:
            found = f"lacks {', '.join(missing)}" if missing else "has every scope that a harmless call shows"
            yield Check("token", f"{name}: {found}", not missing, "create a token that has them too, and set it")
        yield from _of_switch(settings, name, cloud)
    except CloudDeniedError as error:
        yield Check("token", f"{name}: rejected", is_good=False, advice=str(error))
    except NightbenchError as error:
        yield Check("token", f"{name}: not checked: {error}", is_good=True, advice="")


def _of_switch(settings: Settings, name: str, cloud: CloudModule) -> Iterator[Check]:
    token_of = cloud.SWITCH_TOKEN
    token = None if token_of is None else token_of.read_token(settings)
    if token_of is not None and token is not None:
        warning = token_of.check_token(settings, token)
        needed = " and ".join(token_of.SCOPES)
        found = f"{name}: of its machines, {warning or f'only {needed}'}"
        yield Check("token", found, warning is None, f"replace it by one that has {needed} only")
