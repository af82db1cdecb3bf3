from bench import evidence_columns
from bench.audit.rules import BY_COLUMN

COLUMNS = {name: value for name, value in vars(evidence_columns).items() if name.isupper()}


def test_each_column_is_judged_by_a_rule_and_each_rule_judges_one_of_them() -> None:
    assert set(COLUMNS.values()) == set(BY_COLUMN)


def test_a_columns_constant_is_its_name_without_the_prefix() -> None:
    assert {name: f"ev_{name.lower()}" for name in COLUMNS} == COLUMNS
