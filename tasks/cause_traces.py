"""The profiler's traces of the two engines between which a bisect found a change."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from bench.engines.profile_record import ProfileRecord
from bench.record import NightRecord
from bench.suite.quality import Profile
from bench.trends.bisect import Bisection, Step
from infra.storage import store
from nights.files import PROFILE


def with_trace(night: NightRecord) -> NightRecord:
    """The night of a bisect, which traces whatever it measures: its machine is rented and ready at that moment.

    Which two engines matter is known when the search is over, and their machines are released by then.
    """
    profile = (night.suite.profile or Profile()).model_copy(update={"scenarios": ()})
    return night.model_copy(update={"suite": night.suite.model_copy(update={"profile": profile})})


def traces_in_words(data: Path, search: Bisection, step: Step) -> Iterator[str]:
    """A line for each of the two engines: the file of its newest trace, or why there is none."""
    if not step.is_found:
        return
    for side in (step.good, step.bad):
        nights = sorted(one.night for one in search.measured if one.candidate == side)
        records = [found for night in nights for found in _records(data, night)]
        traced = [f"{folder}/{record.traces[0]}" for folder, record in records if record.traces]
        reasons = [record.reason for _folder, record in records if record.reason]
        if traced:
            yield f"trace of {side}: {traced[-1]}"
        else:
            yield f"no trace of {side}: {reasons[-1] if reasons else 'its nights had no time for one'}"


def _records(data: Path, night: str) -> Iterator[tuple[str, ProfileRecord]]:
    """The traces of a night, each with its folder, relative to the data folder."""
    for path in sorted(store.night_folder(data, night).glob(f"{PROFILE}*/0/record.json")):
        try:
            yield str(path.parent.relative_to(data)), ProfileRecord.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue  # `nightbench doctor` names damaged folders
