"""One file a month: copies of a month's nights, and the values that views compute from them.

A view that opens a file for each night of five years takes seconds. So a load that finds many complete months copies
each into one file a table, and stores what `lease_means` and `nightly_medians` say of it. The nights stay as they
are. A load that changes a night of such a month stages the month again, so that both come into place together.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nights.durable import write_text
from warehouse.lake.lake import STAGING
from warehouse.schema.columns import PARTITION, Table, arrow_schema, with_columns
from warehouse.views import DERIVED, derivation, derived_folder, measurements_of
from warehouse.views.tables import (
    MONTH,
    MONTHS_COLUMNS,
    PART,
    are_months_alike,
    columns_digest,
    month_of,
    months_in,
    nights_in,
)

COMPACTED: tuple[Table, ...] = (
    "measurements",
    "findings",
    "expectations",
    "leases",
    "attempts",
    "stages",
    "other_costs",
    "canary",
    "quality_scores",
    "search_probes",
    "tuning",
    "command_metrics",
    "series_verdicts",
    "change_points",
)
LOOSE_NIGHTS = 62  # from so many nights in complete months on, months get files
_SORTED = ("scenario_id", PARTITION, "repeat")
_DERIVED_ORDER = "metric, scenario_id"
ROW_GROUP = 8192  # rows: questions ask about a few metrics
Nights = Mapping[str, Path]  # the file of each night, or month, of one table


def stage_months(lake: Path, removed: Sequence[str] = (), loose_nights: int = LOOSE_NIGHTS) -> list[str]:
    """Stage the files of months that are new or changed; returns the folders of those that have no night any more.

    The first months are staged when at least `loose_nights` nights are in complete months.
    """
    runs = _nights(lake, "measurements", removed)
    by_month = {month for night in runs if (month := month_of(night))}
    had = months_in(lake / "measurements")
    complete = by_month - {max(by_month, default="")}
    if not had and sum(month_of(night) in complete for night in runs) < loose_nights:
        return []
    wanted = complete | (had & by_month)
    emptied: list[str] = []
    for table in COMPACTED:
        emptied += _stage_table(lake, table, wanted, removed)
    emptied += _stage_derived(lake, wanted)
    return emptied


def _stage_table(lake: Path, table: Table, wanted: set[str], removed: Sequence[str]) -> Iterator[str]:
    had, changed = months_in(lake / table), _changed_months(lake, table, removed)
    nights: dict[str | None, list[str]] = {}
    for night in sorted(_nights(lake, table, removed)):
        nights.setdefault(month_of(night), []).append(night)
    for month in sorted(had - nights.keys()):
        yield f"{lake.name}/{table}/{MONTH}={month}"
    months = sorted((wanted | had) & nights.keys())
    is_alike = are_months_alike(lake, table)
    for month in months:
        if month not in had or month in changed or not is_alike:
            files = {night: _file(lake, table, night) for night in nights[month]}
            _write_month(lake / STAGING / table / f"{MONTH}={month}" / PART, table, files)
    if months and not is_alike:
        write_text(lake / STAGING / table / MONTHS_COLUMNS, columns_digest(table))


def _changed_months(lake: Path, table: str, removed: Sequence[str]) -> set[str | None]:
    """The months of nights that are staged or removed."""
    folders = [Path(name) for name in removed]
    gone = [path.name.removeprefix(f"{PARTITION}=") for path in folders if path.parent.name == table]
    return {month_of(night) for night in (*nights_in(lake / STAGING / table), *gone)}


def _nights(lake: Path, table: str, removed: Sequence[str]) -> set[str]:
    """The nights of a table as they will be when the staged files are in place."""
    gone = set(removed)
    kept = {night for night in nights_in(lake / table) if f"{lake.name}/{table}/{PARTITION}={night}" not in gone}
    return kept | set(nights_in(lake / STAGING / table))


def _file(lake: Path, table: str, night: str) -> Path:
    staged = lake / STAGING / table / f"{PARTITION}={night}" / PART
    return staged if staged.exists() else lake / table / f"{PARTITION}={night}" / PART


def _write_month(path: Path, table: Table, nights: Nights) -> None:
    """Write the rows of these nights in the order of scenarios, with the night as a column."""
    schema = arrow_schema(table)
    whole = pa.concat_tables(_read_night(file, night, schema) for night, file in nights.items())
    keys = [(name, "ascending") for name in _SORTED if name in whole.schema.names]
    path.parent.mkdir(parents=True)
    pq.write_table(whole.sort_by(keys), path, compression="zstd")


def _read_night(path: Path, night: str, schema: pa.Schema) -> pa.Table:
    with pq.ParquetFile(path) as file:
        rows = file.read()
    of_night = pc.fill_null(pa.nulls(len(rows), pa.string()), night)
    return with_columns(rows, schema).add_column(0, PARTITION, of_night)


def _stage_derived(lake: Path, wanted: set[str]) -> Iterator[str]:
    """Stage the views' rows of each month whose measurements changed; drop those of another version of the views."""
    kept = derived_folder(lake)
    had = set[str].intersection(*(months_in(kept / view) for view in DERIVED))
    staged = months_in(lake / STAGING / "measurements")
    sources = {
        month: (lake / STAGING if month in staged else lake) / "measurements" / f"{MONTH}={month}" / PART
        for month in sorted(staged | (wanted - had))
    }
    _derive(sources, lake / STAGING / kept.relative_to(lake))
    for view in DERIVED:
        for month in sorted(months_in(kept / view) - wanted):
            yield f"{lake.name}/{kept.relative_to(lake)}/{view}/{MONTH}={month}"
    for other in sorted(kept.parent.glob("*")):
        if other != kept:
            yield f"{lake.name}/{other.relative_to(lake)}"


def _derive(sources: Nights, folder: Path) -> None:
    """Write what the views say of each of these files of months."""
    if not sources:
        return
    with duckdb.connect() as connection:
        for statement in derivation():
            connection.execute(statement)
        for month, source in sources.items():
            connection.execute(measurements_of(source))
            for view in DERIVED:
                path = folder / view / f"{MONTH}={month}" / PART
                path.parent.mkdir(parents=True)
                rows = connection.view(view).order(_DERIVED_ORDER)
                rows.write_parquet(str(path), compression="zstd", row_group_size=ROW_GROUP)
