"""The night that a search left when it was stopped: one of its suite that no search counted."""

import json
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.record import NightRecord
from infra.storage import store

BISECTIONS, TUNINGS = "bisections", "tunings"  # folders of the files of searches among versions, and among flags


def begun_night(
    data: Path, suite_sha256: str, target: str, known: Container[str], scenario: str | None = None
) -> str | None:
    """The oldest night of this suite on this target that is not `known` and that no search counted: it was cut off.

    It has this scenario, or all of the suite.
    """
    counted = counted_nights(data)
    for name in store.nights(data):
        if name in known or name in counted:
            continue
        night = store.read_night(data, name)
        if (night.suite_sha256, night.target) == (suite_sha256, target) and _has(night, scenario):
            return night.night
    return None


def _has(night: NightRecord, scenario: str | None) -> bool:
    wanted = {one.name for one in night.suite.expand()} if scenario is None else {scenario}
    return wanted <= {run.scenario.name for run in night.runs}


def counted_nights(data: Path) -> set[str]:
    """The nights that the file of some search has, among versions or flags."""
    nights: set[str] = set()

    def note(part: dict[str, Any]) -> dict[str, Any]:
        nights.update(filter(None, [part.get("night")]))
        return part

    for folder in (BISECTIONS, TUNINGS):
        for path in (data / folder).glob("*.json"):
            with suppress(ValueError, OSError):  # whose search names a damaged file
                json.loads(path.read_bytes(), object_hook=note)
    return nights
