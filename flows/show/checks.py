"""Prints the checks of this computer."""

from collections.abc import Sequence
from dataclasses import asdict

from flows.host_checks import Check
from flows.show.console import line, print_json


def show_checks(found: Sequence[Check], *, as_json: bool) -> None:
    """Print one line per check, with advice where it failed."""
    if as_json:
        print_json([asdict(check) for check in found])
        return
    for check in found:
        mark, advice = ("ok ", "") if check.is_good else ("BAD", f": {check.advice}")
        line(f"{mark} {check.what:9} {check.found}{advice}")
