"""One .sql file per question, on top of one view per table of the lake."""

import csv
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from bench.student import t_975
from bench.suite.suite import REPEATS_MAX
from bench.trends.night_judge import min_effect_of
from bench.trends.series import lower_is_better
from catalog.read import read_catalog, read_prices
from warehouse.schema.columns import COLUMNS, TABLES, Table
from warehouse.schema.star import DIMENSIONS, METRICS
from warehouse.views.tables import LakePath, empty_rows, glob_pattern, loose_rows, stored_rows, table_view

_Folder = TypeVar("_Folder", bound=LakePath)

# A view comes after the views it selects from.
QUESTIONS = (
    "standing",
    "accepted",
    "standing_claims",
    "accepted_claims",
    "results",
    "controls",
    "failures",
    "findings_worst",
    "metric_values",
    "nightly_medians",
    "monthly_histograms",
    "lease_means",
    "night_repeats",
    "repeat_history",
    "series_nights",
    "changes",
    "latest_vs_30",
    "night_costs",
    "stage_costs",
    "capacity",
    "searches",
    "search_repeats",
    "machine_pairs",
    "machine_prices",
    "published",
    "beside_published",
    "dim_host",
    "dim_platform",
    "dim_stack",
    "dim_model",
    "dim_config",
    "dim_scenario",
    "dim_metric",
    "dim_price",
    "fact_run",
    "fact_measurement",
    "mart_nightly",
)

# The views whose rows a month stores, and those that they select from.
DERIVED = ("nightly_medians", "lease_means", "monthly_histograms")
_BEFORE_DERIVED = ("metric_values",)

_HEAD = "CREATE VIEW {} AS"

# Placeholder for one line per numeric column of the view's table.
EACH = "-- EACH NUMBER"
# Placeholders for the metrics and for their rows; those of a dimension are named beside it.
EACH_METRIC, EACH_METRIC_ROW = "-- EACH METRIC", "-- EACH METRIC ROW"
# Placeholder for the list of quantiles of Student's t, by degrees of freedom.
T_975 = "-- T 0.975"
# Placeholders for rows of the catalogue: (cloud, kind, gpu, gpu_count), and (provider, gpu, gpu_count, usd_per_hour,
# seen_until).
KINDS, LISTED = "-- EACH KIND", "-- EACH LISTED PRICE"
# Placeholder for the published figures, in the columns of published.csv, which `warehouse.suite_report.published_rows`
# writes.
EACH_PUBLISHED = "-- EACH PUBLISHED"
PUBLISHED_FILE = Path(__file__).with_name("published.csv")
PUBLISHED = (
    *("line", "source", "source_date", "model", "precision", "gpu", "gpu_count", "framework", "framework_version"),
    *("isl", "osl", "load", "metric", "value", "number", "unit", "verdict", "notes"),
)
_WHOLE = frozenset({"line", "gpu_count", "isl", "osl", "load"})
_TABLE_OF: dict[str, Table] = {"standing": "measurements", "standing_claims": "claims"}


def view_statements(lake: LakePath) -> Iterator[str]:
    """The SQL of every view over this lake, with its absolute path, so that it works from any folder."""
    for table in TABLES:
        yield table_view(lake, table)
    for name in QUESTIONS:
        yield _over_months(lake, name) if name in DERIVED else _question(name)


def _over_months(lake: LakePath, name: str) -> str:
    """A view of which months store rows: it is computed for the other nights only."""
    stored = stored_rows(lake, derived_folder(lake), name)
    if stored is None:
        return _question(name)
    sources = {"measurements": loose_rows(lake, "measurements"), **{view: _query(view) for view in _BEFORE_DERIVED}}
    named = ", ".join(f"{source} AS NOT MATERIALIZED ({query})" for source, query in sources.items())
    computed = f"SELECT * FROM (WITH {named} {_query(name)})"  # noqa: S608 - queries of ours
    return _question(name).split(_HEAD.format(name))[0] + _HEAD.format(name) + f" {stored} UNION ALL BY NAME {computed}"


def _query(name: str) -> str:
    """What a view selects."""
    return _question(name).split(_HEAD.format(name))[1].strip().removesuffix(";")


def derivation() -> Iterator[str]:
    """The SQL of the views that months store, and of those that they select from."""
    yield f"CREATE VIEW measurements AS {empty_rows('measurements')}"
    for name in (*_BEFORE_DERIVED, *DERIVED):
        yield _question(name)


def measurements_of(file: Path) -> str:
    """The SQL that lets these views select from the file of a month."""
    quoted = glob_pattern(str(file)).replace("'", "''")
    rows = f"{empty_rows('measurements')} UNION ALL BY NAME FROM read_parquet('{quoted}', hive_partitioning=false)"
    return f"CREATE OR REPLACE VIEW measurements AS {rows}"


def derived_folder(lake: _Folder) -> _Folder:
    """Where months store what views say, apart for each version of their SQL."""
    return lake / "derived" / _derivation_digest()


@cache
def _derivation_digest() -> str:
    texts = map(_question, (*_BEFORE_DERIVED, *DERIVED))
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


@cache
def _question(name: str) -> str:
    text = files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
    numbers = _standing_numbers(_TABLE_OF[name]) if name in _TABLE_OF else ""
    for dimension, columns in DIMENSIONS.items():
        text = text.replace(f"-- KEY {dimension}\n", _key(columns)).replace(
            f"-- COLUMNS {dimension}\n", _names(columns)
        )
    return (
        text.replace(EACH, numbers)
        .replace(EACH_METRIC_ROW, _metrics())
        .replace(EACH_METRIC, _names(METRICS))
        .replace(T_975, _quantiles())
        .replace(KINDS, _kinds())
        .replace(LISTED, _listed())
        .replace(EACH_PUBLISHED, _published())
    )


def _names(columns: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def _key(columns: Iterable[str]) -> str:
    """The hash of these columns; of two rows with equal values it is equal, NULL included."""
    return f"md5(to_json([{_names(columns).replace(',', '::VARCHAR,')}::VARCHAR])::VARCHAR) "


def _metrics() -> str:
    """The metrics as SQL rows: name, unit, which way is better, and the smallest change that counts."""
    declared = {column.name: column for column in COLUMNS["measurements"]}
    return _sql_rows(
        (name, of.unit, -1 if lower_is_better(name, of.unit) else 1, min_effect_of(name), of.meaning)
        for name, of in ((name, declared[name]) for name in METRICS)
    )


def read_audited() -> tuple[dict[str, str], ...]:
    """The published figures in the catalogue's names, with their verdicts; empty text where a source says nothing."""
    with PUBLISHED_FILE.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


@cache
def _published() -> str:
    """The published figures as SQL rows."""
    return _sql_rows([_typed(name, row[name]) for name in PUBLISHED] for row in read_audited())


def _typed(name: str, text: str) -> object:
    if not text:
        return None
    return float(text) if name == "number" else int(float(text)) if name in _WHOLE else text


def _quantiles() -> str:
    """The 0.975 quantiles of Student's t for as many repeats as a suite may have."""
    return f"[{', '.join(f'{t_975(degrees):.4f}' for degrees in range(1, REPEATS_MAX))}]"


def _kinds() -> str:
    """The machine sizes of the catalogue as SQL rows."""
    rows = ((one.cloud, one.kind, one.gpu, one.gpu_count) for one in read_catalog().sizes)
    return _sql_rows(rows)


def _listed() -> str:
    """The prices of the catalogue as SQL rows, those of today's sizes included."""
    past = ((one.provider, one.gpu, one.gpu_count, one.usd_per_hour, one.seen_until) for one in read_prices())
    now = (
        (one.cloud, one.gpu, one.gpu_count, one.usd_per_hour, one.price_date)
        for one in read_catalog().sizes
        if one.usd_per_hour is not None and not one.is_spot
    )
    return _sql_rows((*past, *now))


def _sql_rows(rows: Iterable[Sequence[object]]) -> str:
    return ",\n        ".join(f"({', '.join(map(_literal, row))})" for row in rows)


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return repr(value) if isinstance(value, (int, float)) else "'" + str(value).replace("'", "''") + "'"


def _standing_numbers(table: Table) -> str:
    """Each numeric column, NULL where it was withdrawn: the body of `SELECT * REPLACE (...)`."""
    names = (column.name for column in COLUMNS[table] if column.is_withdrawable)
    case = 'CASE WHEN list_contains(withdrawn, \'{0}\') THEN NULL ELSE "{0}" END AS "{0}"'
    return ",\n    ".join(case.format(name) for name in names)
