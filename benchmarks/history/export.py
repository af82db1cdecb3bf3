"""Write a history as a small data set: a file a table out of the lake, the journal, and a page that says what it is."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.errors import UsageError
from benchmarks.history.journal import Journal, Row, read_journal
from benchmarks.history.plan import SEED, SUITES
from benchmarks.recorded import ROOT
from infra.engines.releases import release_order
from nights.durable import make_folder, write_text
from warehouse.lake.database import open_warehouse
from warehouse.report.figures import csv_text
from warehouse.schema.columns import COLUMNS, PARTITION, Table, arrow_schema
from warehouse.sql import sql

# What a page or the judge reads; samples of the machine and the judgements of the order in which nights ran are not.
TABLES: tuple[Table, ...] = ("measurements", "requests", "findings", "leases", "attempts", "stages", "canary")
COMPUTED = ("itl_ms",)  # by the view `requests`, from itl_us
BYTES_MAX = 3_000_000
_TEXT = """# A history of real engines

`make history NIGHTS={rounds}` wrote this folder; do not edit. It holds {nights} nights of {first} to {last}, {minutes}
minutes in all, of {releases}.

- **Method**: each round measures every release once, and the newest of each engine twice: {aa} A/A nights. The order
  within a round is drawn at random (seed {seed}), so a host that drifts moves the releases alike. The suites are
  {suites}.
- **Nights**: one after the other on one computer, by the flow that a deployment starts, but without the service beside
  it, which would take turns with the engine on so few cores. `nights.csv` has every night, `place` is that in the order
  of releases; {failed} measured nothing or only a part, with the reason.
- **Host**: {host}.
- **Commits**: {commits}.

`pairs.csv` has what long runs say of neighbouring releases that take turns, as far as they are measured
(`python -m benchmarks.history.pairs`), and `bisections` searches for the release of a change. `plants.csv` has the
values of nights with planted changes and `planted.csv` what a long run says of these changes
(`python -m benchmarks.history.plants`); each row names its host or its commit. The other files are tables of the
[warehouse](../../docs/reference/warehouse.md), with the columns of their time and without the names of other programs
and of folders on the host.
"""


def export(data: Path, folder: Path) -> int:
    """Write the data set of a history and return its bytes; raises UsageError where it has nights of no measurement."""
    journal = read_journal(data)
    nights = sorted(row.night for row in journal.rows if row.night is not None)
    make_folder(folder)
    with open_warehouse(data) as opened, opened.cursor() as connection:
        for name in TABLES:
            columns = pa.schema([pa.field(PARTITION, pa.string()), *arrow_schema(name)])
            rows = connection.sql(sql("SELECT * FROM {{ table | name }} ORDER BY ALL", table=name)).to_arrow_table()
            rows = rows.filter(pc.is_in(rows[PARTITION], pa.array(nights)))
            rows = _without_names(rows.select(columns.names).cast(columns))
            _write(folder / f"{name}.parquet", name, rows)
    write_text(folder / "nights.csv", _as_csv(journal))
    write_text(folder / "README.md", _page(journal, pq.read_table(folder / "measurements.parquet")))
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > BYTES_MAX:
        raise UsageError(f"{folder} has {size} bytes, more than {BYTES_MAX}: keep fewer tables")
    return size


def _write(path: Path, table: Table, rows: pa.Table) -> None:
    """Write a table, small, without the columns that its view computes from others."""
    rows = rows.drop_columns([name for name in COMPUTED if name in rows.column_names])
    numbers = {f"{one.name}.list.element": "DELTA_BINARY_PACKED" for one in COLUMNS[table] if one.type == "counts"}
    texts = [field.name for field in rows.schema if pa.types.is_string(field.type) or pa.types.is_integer(field.type)]
    pq.write_table(rows, path, compression="zstd", compression_level=19, use_dictionary=texts, column_encoding=numbers)


def _without_names(rows: pa.Table) -> pa.Table:
    """The same rows without the names of other programs and folders on the host, and of its kernel only the version."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_string(field.type):
            shown = pc.replace_substring_regex(rows[field.name], r"busiest: [^;]*(; )?", "")
            shown = pc.replace_substring_regex(shown, r"/\S*/engines/", "")
            shown = pc.replace_substring_regex(shown, r"-.*", "") if field.name == "kernel" else shown
            rows = rows.set_column(at, field, shown)
    return rows


def _as_csv(journal: Journal) -> str:
    """A row a night; `place` counts the nights in the order of releases, from 0."""
    places = {row.night: at for at, row in enumerate(in_release_order(journal.rows))}
    return csv_text([row.model_dump(mode="json") | {"place": places.get(row.night)} for row in journal.rows])


def in_release_order(rows: Iterable[Row]) -> list[Row]:
    """The nights that began, engine by engine from the oldest release to the newest, each release by its rounds."""
    began = [row for row in rows if row.night is not None]
    return sorted(began, key=lambda row: (row.engine, release_order(row.release), row.round, row.is_aa))


def _page(journal: Journal, measurements: pa.Table) -> str:
    rows = journal.rows
    releases = {engine: list(dict.fromkeys(one.release for one in rows if one.engine == engine)) for engine in SUITES}
    return _TEXT.format(
        first=min(one.began_at for one in rows).date(),
        last=max(one.began_at for one in rows).date(),
        nights=len(rows),
        aa=sum(one.is_aa for one in rows),
        failed=sum(bool(one.reason) for one in rows),
        rounds=min(Counter(one.release for one in rows).values()),
        seed=SEED,
        releases="; ".join(
            f"{engine} {', '.join(sorted(each, key=release_order))}" for engine, each in releases.items() if each
        ),
        host="; ".join(sorted(set(_hosts(measurements)))),
        commits=", ".join(sorted({f"`{one.commit}`" for one in rows})),
        suites=" and ".join(f"`{path.relative_to(ROOT)}`" for path in SUITES.values()),
        minutes=round(sum(one.wall_s for one in rows) / 60),
    )


def _hosts(measurements: pa.Table) -> Iterator[str]:
    for row in measurements.select(["cpu_model", "cpu_count", "kernel"]).to_pylist():
        yield f"{row['cpu_model']}, {row['cpu_count']} cores, Linux {row['kernel']}"
