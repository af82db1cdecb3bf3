"""The files in tests/data/audit that a simulated run was spoiled into are those that their maker writes."""

import json
from typing import Any

import pytest

from tests.data.audit import make_formats
from tests.data.audit.make import HERE, repeats, twins

TWINS = twins()
SPOILED = make_formats.files()


@pytest.mark.parametrize("stem", TWINS)
def test_a_twin_is_what_its_maker_writes(stem: str) -> None:
    kept = json.loads((HERE / f"{stem}.json").read_text(encoding="utf-8"))

    assert flat(kept) == pytest.approx(flat(TWINS[stem]))


def test_the_unstable_repeats_are_what_their_maker_writes() -> None:
    kept = [json.loads(line) for line in (HERE / "unstable.jsonl").read_text(encoding="utf-8").splitlines()]

    assert flat(kept) == pytest.approx(flat(repeats()))


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Every value inside a JSON document by its path, since approx compares no nested ones."""
    if not isinstance(value, dict | list):
        return {path: value}
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return {path: len(value)} | {at: found for name, one in inner for at, found in flat(one, f"{path}/{name}").items()}


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_file_of_another_tool_is_what_its_maker_writes(name: str) -> None:
    assert (HERE / name).read_text(encoding="utf-8") == SPOILED[name]
