"""The files in tests/data/audit that a simulated run was spoiled into are those that their maker writes."""

import json

import pytest

from tests.data.audit import make_formats
from tests.data.audit.make import HERE, twins

TWINS = twins()
SPOILED = make_formats.files()


@pytest.mark.parametrize("stem", TWINS)
def test_a_twin_is_what_its_maker_writes(stem: str) -> None:
    kept = json.loads((HERE / f"{stem}.json").read_text(encoding="utf-8"))

    assert kept.keys() == TWINS[stem].keys()
    assert kept["completed"] == TWINS[stem]["completed"]
    assert kept["duration"] == pytest.approx(TWINS[stem]["duration"])


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_file_of_another_tool_is_what_its_maker_writes(name: str) -> None:
    assert (HERE / name).read_text(encoding="utf-8") == SPOILED[name]
