"""Load everything that a data folder has into the lake again; what only the lake has is removed when it is named."""

from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from bench.errors import MissingObjectError, UsageError
from warehouse.imports import kept_partitions, stage_imports
from warehouse.lake.bucket.filesystem import lake_files
from warehouse.lake.bucket.location import lake_name
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import STAGING, one_loader
from warehouse.lake.lake import writing as writing_to
from warehouse.lake.swap import delete_unnamed_objects, folders_of, partitions, swap_in
from warehouse.load import LoadSummary, stage_night, with_changes
from warehouse.report.simulated import why_no_nights
from warehouse.rows.run_folder import night_folder, nights
from warehouse.trends.kept import ACKNOWLEDGED, acknowledgements_elsewhere, stage_acknowledgements


def rebuild(
    data: Path, progress: Callable[[str], None] = lambda _night: None, *, prune: Collection[str] = ()
) -> list[LoadSummary]:
    """Load every night and import of this data folder again; what else the lake has stays, but for `prune`.

    Objects that are missing in the bucket of a lake are written again, where this computer has their content. Of
    `prune`, names from `not_here`, only what this data folder still lacks is removed.

    Raises UsageError where this data folder has nothing to load.
    """
    require_something_to_load(data)
    with writing_to(data / "lake"), one_loader(data, heals=True) as lake:
        gone = frozenset(prune) & frozenset(not_here(data))
        summaries = []
        for night in nights(data):
            summaries.append(stage_night(night_folder(data, night), lake, gone))
            progress(night)
        stage_imports(data, lake / STAGING)
        stage_acknowledgements(data, lake / STAGING, are_others_kept=ACKNOWLEDGED not in gone)
        changed = swap_in(lake, removed=folders_of(lake, gone - {ACKNOWLEDGED}), heals=True)
        delete_unnamed_objects(lake)
        with suppress(MissingObjectError):  # of others: `lost_files` names them, and readers get the sentence
            build_warehouse(data)
    return [with_changes(summary, changed) for summary in summaries]


def not_here(data: Path) -> list[str]:
    """The nights, imports and histories that the lake has and this data folder does not, sorted by name.

    The partition of acknowledgements is among them if some of its rows are of another data folder.
    """
    lake = lake_files(data)
    elsewhere = {ACKNOWLEDGED} if acknowledgements_elsewhere(data, lake) else set[str]()
    here = {*nights(data), *kept_partitions(data), ACKNOWLEDGED}
    return sorted((partitions(lake) - here) | elsewhere)


def require_something_to_load(data: Path) -> None:
    """Raise UsageError where a data folder has no nights, imports, histories or acknowledgements."""
    if not (nights(data) or kept_partitions(data) or any((data / ACKNOWLEDGED).glob("*.json"))):
        raise UsageError(
            why_no_nights(data)
            or f"no nights in {data / 'runs'} and no imports beside it: there is nothing to load into "
            f"{lake_name(data)}, and nothing was removed; set --data to the folder that has them"
        )
