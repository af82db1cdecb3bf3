"""One .sql file per question, on top of one view per table of the lake."""

import csv
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from bench.free_twins import FREE
from bench.student import t_975
from bench.suite.suite import REPEATS_MAX
from bench.trends.night_judge import min_effect_of
from bench.trends.series import lower_is_better
from catalog.read import read_catalog, read_prices
from warehouse.schema.columns import COLUMNS, TABLES, Table
from warehouse.schema.star import DIMENSIONS, METRICS
from warehouse.schema.start_columns import PHASES
from warehouse.sql import Sql, sql
from warehouse.views.tables import LakePath, empty_rows, glob_pattern, loose_rows, stored_rows, table_view

_Folder = TypeVar("_Folder", bound=LakePath)

# A view comes after the views it selects from.
QUESTIONS = (
    "standing",
    "accepted",
    "counted",
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
    "answer_overheads",
    "night_repeats",
    "repeat_history",
    "series_setups",
    "series_nights",
    "changes",
    "latest_vs_30",
    "night_costs",
    "lease_days",
    "stage_costs",
    "capacity",
    "searches",
    "search_repeats",
    "sessions",
    "server_starts",
    "start_phases",
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
_COMPUTED = (
    "SELECT * FROM (WITH {% for source, rows in sources.items() %}{{ source | sql }} AS NOT MATERIALIZED ({{ rows }})"
    "{% if not loop.last %}, {% endif %}{% endfor %} {{ query }})"
)

# The columns of a table without the withdrawn values; those that are not declared follow. They are listed, since DuckDB
# takes ten times as long for `* REPLACE`.
_STANDING = (
    "{% for one in columns %}{% if one.is_withdrawable %}CASE WHEN list_contains(withdrawn, {{ one.name }}) THEN NULL "
    "ELSE {{ one.name | name }} END AS {% endif %}{{ one.name | name }}, {% endfor %}"
    "* EXCLUDE ({% for one in columns %}{{ one.name | name }}{% if not loop.last %}, {% endif %}{% endfor %})"
)

PUBLISHED_FILE = Path(__file__).with_name("published.csv")
PUBLISHED = (
    *("line", "source", "source_date", "model", "precision", "gpu", "gpu_count", "framework", "framework_version"),
    *("isl", "osl", "load", "metric", "value", "number", "unit", "verdict", "notes"),
)
_WHOLE = frozenset({"line", "gpu_count", "isl", "osl", "load"})
# Of measurements: accepted ones, and those that only noise makes suspect, whose interval says what the noise cost.
_COUNTS = Sql("(verdict = 'accepted' OR coalesce(is_only_noisy, false)) AND is_control IS NOT TRUE")
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
    computed = sql(_COMPUTED, sources=sources, query=_query(name))
    return _question(name).split(_HEAD.format(name))[0] + _HEAD.format(name) + f" {stored} UNION ALL BY NAME {computed}"


def _query(name: str) -> Sql:
    """What a view selects."""
    return Sql(_question(name).split(_HEAD.format(name))[1].strip().removesuffix(";"))


def derivation() -> Iterator[str]:
    """The SQL of the views that months store, and of those that they select from."""
    yield sql("CREATE VIEW measurements AS {{ empty }}", empty=empty_rows("measurements"))
    for name in (*_BEFORE_DERIVED, *DERIVED):
        yield _question(name)


def measurements_of(file: Path) -> str:
    """The SQL that lets these views select from the file of a month."""
    return sql(
        "CREATE OR REPLACE VIEW measurements AS {{ empty }} UNION ALL BY NAME "
        "FROM read_parquet({{ file }}, hive_partitioning=false)",
        empty=empty_rows("measurements"),
        file=glob_pattern(str(file)),
    )


def derived_folder(lake: _Folder) -> _Folder:
    """Where months store what views say, apart for each version of their SQL."""
    return lake / "derived" / _derivation_digest()


@cache
def _derivation_digest() -> str:
    texts = map(_question, (*_BEFORE_DERIVED, *DERIVED))
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


@cache
def _question(name: str) -> str:
    template = files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
    standing = sql(_STANDING, columns=COLUMNS[_TABLE_OF[name]]) if name in _TABLE_OF else None
    return sql(template, standing=standing, **_values())


@cache
def _values() -> dict[str, object]:
    """What the templates of the views name, beside the columns without withdrawn values."""
    return {
        "counts": _COUNTS,
        "dimensions": DIMENSIONS,
        "free": FREE,
        "key": _key,
        "metrics": METRICS,
        "metric_rows": tuple(_metrics()),
        "start_phases": PHASES,
        "t_975": _t_975,
        "kinds": [(one.cloud, one.kind, one.gpu, one.gpu_count) for one in read_catalog().sizes],
        "listed": tuple(_listed()),
        "published": [[_typed(name, row[name]) for name in PUBLISHED] for row in read_audited()],
    }


def _t_975(degrees: str) -> Sql:
    """Student's t of these degrees of freedom; above those of one lease that of the most, which is hardly larger."""
    listed = [t_975(each) for each in range(1, REPEATS_MAX)]
    return sql(
        "list_extract({{ listed }}, least({{ degrees }}, {{ listed | length }}))", listed=listed, degrees=Sql(degrees)
    )


def _key(columns: Iterable[str]) -> Sql:
    """The hash of these columns; of two rows with equal values it is equal, NULL included."""
    return sql(
        "md5(to_json([{% for one in columns %}{{ one | name }}::VARCHAR{% if not loop.last %}, {% endif %}"
        "{% endfor %}])::VARCHAR)",
        columns=columns,
    )


def _metrics() -> Iterator[tuple[object, ...]]:
    """Of each metric: name, unit, which way is better, the smallest change that counts, and meaning."""
    declared = {column.name: column for column in COLUMNS["measurements"]}
    for name in METRICS:
        of = declared[name]
        yield name, of.unit, -1 if lower_is_better(name, of.unit) else 1, min_effect_of(name), of.meaning


def read_audited() -> tuple[dict[str, str], ...]:
    """The published figures in the catalogue's names, with their verdicts; empty text where a source says nothing."""
    with PUBLISHED_FILE.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def _typed(name: str, text: str) -> object:
    if not text:
        return None
    return float(text) if name == "number" else int(float(text)) if name in _WHOLE else text


def _listed() -> Iterator[tuple[object, ...]]:
    """The prices of the catalogue on demand, those of today's sizes included."""
    for past in read_prices():
        if past.terms is None:
            yield past.provider, past.gpu, past.gpu_count, past.usd_per_hour, past.seen_until
    for one in read_catalog().sizes:
        if one.usd_per_hour is not None and not one.is_spot:
            yield one.cloud, one.gpu, one.gpu_count, one.usd_per_hour, one.price_date
