"""What the page of workload kinds names exists: engines, columns, rules, and the tests that ran them for real."""

from pathlib import Path

from bench.audit.rules import RULES
from bench.engines.by_name import ENGINES
from infra.loadgen.workload_kinds import KINDS
from warehouse.schema.columns import TABLES
from warehouse.schema.view_columns import VIEW_COLUMNS, columns_of

ROOT = Path(__file__).parents[3]


def test_each_kind_names_engines_columns_rules_and_tests_that_exist() -> None:
    codes = {rule.code for rule in RULES}
    columns = {f"{table}.{name}" for table in (*TABLES, *VIEW_COLUMNS) for name in columns_of(table)}
    for kind in KINDS:
        assert set(kind.engines) <= set(ENGINES), kind.name
        assert set(kind.metrics) <= columns, kind.name
        assert set(kind.rules) <= codes, kind.name
        for run in kind.runs:
            file, _, test = run.partition("::")
            assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), run
