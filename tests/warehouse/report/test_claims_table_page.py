"""The page of the claims table says what the importer reads, and one name serves option and key."""

import inspect
from dataclasses import fields

from bench.audit.claim import ClaimedConfig
from bench.audit.context_keys import KEYS, field_of
from flows.cli.audit import audit
from warehouse.report.claims_table_page import PAGE, page

# Options of the audit that state nothing of a measurement.
_OTHERS = {
    "files",
    "as_json",
    "only",
    "explain",
    "may_ask",
    "use_gx",
    "allow_unchecked",
    "mapped",
    "is_comparison",
    "html",
    "github",
}


def test_the_page_of_the_claims_table_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m warehouse.report.claims_table_page`"


def test_every_field_of_a_configuration_has_a_key() -> None:
    assert {key.field or name for name, key in KEYS.items()} == {each.name for each in fields(ClaimedConfig)}


def test_an_option_of_the_audit_has_the_name_of_its_key() -> None:
    options = set(inspect.signature(audit).parameters) - _OTHERS

    assert {name for name in options if name not in KEYS} == set()


def test_the_older_name_of_a_key_still_works() -> None:
    assert field_of("tp_size", 8) == field_of("tp", 8) == ("tp_size", 8)
    assert field_of("weights_gib", 2.0) == ("weights_gib", 2.0)
