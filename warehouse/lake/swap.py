"""Move what a load staged into place, with the files of the months that it changes."""

import filecmp
from collections.abc import Collection, Sequence
from pathlib import Path

from nights.durable import sync_all
from nights.journal import Move, commit
from warehouse.lake.bucket.client import lake_bucket
from warehouse.lake.bucket.filesystem import lake_files
from warehouse.lake.bucket.location import lake_location
from warehouse.lake.bucket.working_copy import delete_unnamed, push
from warehouse.lake.lake import IMPORTS, STAGING
from warehouse.lake.months import stage_months
from warehouse.schema.columns import PARTITION
from warehouse.views.tables import LakePath, nights_in


def swap_in(
    lake: Path, imported: Sequence[Move] = (), removed: Sequence[str] = (), *, heals: bool = False
) -> tuple[str, ...]:
    """Move every staged file into place and return the names of those that changed.

    All files come into place, with those `imported`, or none does. Measurements come last, so that a query
    meanwhile does not list a run before its requests. With `heals`, missing objects of a bucket are written again.
    """
    staging = lake / STAGING
    removed = [*removed, *stage_months(lake, removed)]
    files = [path.relative_to(staging) for path in sorted(staging.rglob("*")) if path.is_file()]
    names = [str(name) for name in sorted(files, key=lambda name: (name.parts[0] == "measurements", name))]
    if staging.exists():
        sync_all(staging)
    location = lake_location()
    if location is not None:
        commit(lake, staging, imported, ())  # the truth first: a kill between the two leaves it to be imported again
        return tuple(push(lake_bucket(location), lake, staging, names, removed, heals=heals))
    changed = [
        name
        for name in names
        if not ((lake / name).exists() and filecmp.cmp(staging / name, lake / name, shallow=False))
    ]
    moves = [(f"{lake.name}/{STAGING}/{name}", f"{lake.name}/{name}") for name in changed]
    commit(lake, staging, [*moves, *imported], removed)
    return tuple(changed)


def moves_of_import(staged: Path) -> list[Move]:
    """The moves of what is staged of a file into the folder that keeps it, beside what is there already.

    A file is kept as claims, as a history or as both, each with its own description.
    """
    return [
        (f"{IMPORTS}/{STAGING}/{staged.name}/{each.name}", f"{IMPORTS}/{staged.name}/{each.name}")
        for each in sorted(staged.iterdir())
    ]


def delete_unnamed_objects(lake: Path) -> None:
    """Delete from a lake in a bucket what killed loads left there a day ago or earlier."""
    location = lake_location()
    if location is not None:
        delete_unnamed(lake_bucket(location), lake)


def lost_files() -> list[str]:
    """The files of a lake in a bucket whose object is missing or has another size, sorted. Raises ObjectStoreError."""
    location = lake_location()
    if location is None:
        return []
    bucket = lake_bucket(location)
    return sorted(bucket.lost(bucket.read_manifest().manifest))


def partitions(lake: LakePath) -> set[str]:
    """The nights, imports and histories of a lake, and its acknowledgements: whatever has a folder in some table."""
    return {night for table in (lake.iterdir() if lake.is_dir() else ()) for night in nights_in(table)}


def folders_of(lake: Path, gone: Collection[str]) -> list[str]:
    """The folders of these partitions in every table, relative to the data folder."""
    stored = lake_files(lake.parent)
    return [
        f"{lake.name}/{table.name}/{PARTITION}={night}"
        for table in sorted(stored.iterdir(), key=lambda table: table.name)
        for night in sorted(nights_in(table))
        if night in gone
    ]
