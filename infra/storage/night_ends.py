"""Why earlier nights ended early, read from their folders."""

from itertools import takewhile
from pathlib import Path

from pydantic import ValidationError

from bench.errors import NightbenchError
from bench.record import NightEnd, NightRecord
from infra.storage import store


def nights_in_a_row(data: Path, night: NightRecord, ending: str) -> list[str]:
    """The nights of this suite and target just before this one that all ended so, the newest first.

    A night of another suite or target in between changes nothing.
    """
    before = (_read(data, name) for name in reversed(store.nights(data)) if name < night.night)
    alike = (
        one for one in before if one is not None and (one.suite.name, one.target) == (night.suite.name, night.target)
    )
    return [one.night for one in takewhile(lambda one: read_ending(data, one.night) == ending, alike)]


def read_ending(data: Path, night: str) -> str | None:
    """How a night ended early on which no person had to act; None for every other night."""
    try:
        return NightEnd.model_validate_json(store.end_file(data, night).read_bytes()).ending
    except (OSError, ValidationError):
        return None


def _read(data: Path, name: str) -> NightRecord | None:
    try:
        return store.read_night(data, name)
    except NightbenchError:  # a night that cannot be read says nothing
        return None
