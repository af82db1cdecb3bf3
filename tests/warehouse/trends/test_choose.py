"""A text chooses one side of a comparison; one that matches nothing is answered with the nearest names."""

import pytest

from bench.errors import UsageError
from tests.bench.trends.test_sides import lease
from warehouse.trends.choose import choose_side

FACTS = [
    lease(1, 1.0, engine_version="0.12.0", suite="nightly").facts,
    lease(2, 1.0, engine_version="0.13.0", suite="0.13.0", scenario="chat@eager", variant="eager").facts,
]


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("0.12.0", {"engine_version": "0.12.0"}),
        ("n2", {"night": "n2"}),
        ("H100", {"gpu": "H100"}),
        ("nightly", {"suite": "nightly"}),
        ("eager", {"variant": "eager"}),
        ("engine_version=0.1*, gpu=H100", {"engine_version": "0.1*", "gpu": "H100"}),
    ],
)
def test_a_bare_text_is_found_among_nights_versions_gpus_suites_and_variants(
    text: str, patterns: dict[str, str]
) -> None:
    assert choose_side(text, FACTS).patterns == patterns


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.12.1", "nearest: 0.12.0"),
        ("0.13.0", "ambiguous: write engine_version=0.13.0 or suite=0.13.0"),
        ("engine_versions=0.12.0", "write engine_version=VALUE"),
        ("gpu=", "write gpu=VALUE"),
        ("engine_version=0.11*", "no accepted measurement has engine_version=0.11*; nearest: 0.1"),
        ("engine_version=0.12.0,night=n2", "has all of these"),
    ],
)
def test_a_text_that_chooses_nothing_is_wrong_usage_and_names_what_would(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        choose_side(text, FACTS)
    assert said in str(refused.value)


def test_an_empty_warehouse_says_how_to_fill_it() -> None:
    with pytest.raises(UsageError, match="run a night, or import results"):
        choose_side("0.12.0", [])
