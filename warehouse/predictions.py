"""What a model or a simulator predicted, beside a loaded night: reads both sides and names them alike."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.audit.claim import Claim, ClaimedConfig
from bench.audit.predictions import Residual, residuals
from bench.errors import UnreadableResultError, UsageError
from catalog.read import find_gpu, find_model
from warehouse.audit_inputs import AuditInput, cases_at
from warehouse.lake.query import ask
from warehouse.rows.run_folder import night_folder

_COUNTED = """
SELECT scenario, scenario_id, "repeat" FROM standing
WHERE night = $1 AND verdict IN ('accepted', 'suspect') AND is_control IS NOT TRUE
QUALIFY is_first_after_start IS NOT TRUE OR bool_and(is_first_after_start) OVER (PARTITION BY scenario)
"""


def residuals_of_night(
    data: Path, night: str, files: Sequence[str], context: ClaimedConfig, mapped: Mapping[str, str]
) -> tuple[Residual, ...]:
    """Each prediction of the files beside the night's runs that are accepted or suspect.

    `context` and `mapped` say what the files do not, as for an audit. Raises UnreadableResultError for a file that
    cannot be read, and UsageError where the night has no run that counts.
    """
    measured = _measured(data, night)
    if not measured:
        raise UsageError(f"night {night} has no accepted or suspect run to hold a prediction against")
    return tuple(residuals([*_predicted(files, context, mapped)], measured))


def _predicted(files: Sequence[str], context: ClaimedConfig, mapped: Mapping[str, str]) -> Iterator[Claim]:
    for file in files:
        for case in cases_at(file, context, mapped):
            if not isinstance(case, AuditInput):
                raise UnreadableResultError(case.why)
            if case.broken is not None:
                raise UnreadableResultError(case.broken[1])
            yield _named(case.claim)


def _measured(data: Path, night: str) -> dict[str, list[Claim]]:
    """The claims of the runs that count, by scenario; of the first run after a start only where there is no other."""
    folder = night_folder(data, night)
    counted = {
        str(folder / scenario_id / str(repeat)): scenario
        for scenario, scenario_id, repeat in ask(data, _COUNTED, (night,)).rows
    }
    found: dict[str, list[Claim]] = {}
    for case in cases_at(str(folder), ClaimedConfig()):  # of the whole night at once: its servers are read once
        if isinstance(case, AuditInput) and case.broken is None and case.claim.lineage.file in counted:
            found.setdefault(counted[case.claim.lineage.file], []).append(_named(case.claim))
    return found


def _named(claim: Claim) -> Claim:
    """The same with the catalogue's names of model and GPU, so that two spellings of one are equal."""
    asked = claim.asked
    model, gpu = find_model((asked.model or "").partition("@")[0]), find_gpu(asked.gpu or "")
    return replace(
        claim,
        asked=replace(
            asked, model=asked.model if model is None else model.model, gpu=asked.gpu if gpu is None else gpu.gpu
        ),
    )
