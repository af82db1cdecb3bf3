"""Which names and sizes are accepted from another machine or a bucket."""

import pytest

from bench.errors import RefusedFileError
from infra.storage.accepted import Limits, is_night, require_accepted
from nights.files import declared

ID = "0123456789abcdef"
DOUBTFUL = ("", "..", "../a", "/a", "a/../b", "a//b", "a/", "-rf", "a\nb", "a\0b", "a\\b", "\x1b[2J", "ä", "a" * 300)
LIMITS = Limits(file_bytes=10, total_bytes=15, count=3)


def test_a_machine_leaves_logs_and_calibrations_and_never_a_plan_or_a_lease() -> None:
    results = ("calibration.json", "calibration-2f.json", f"servers/{ID}-0.log")
    plans = (
        "night.json",
        "end.json",
        "leases/0123456789ab.json",
        "canaries/0123456789ab-before.json",
        "failed-starts/0123456789ab-0.json",
    )

    assert all(map(declared, (*results, *plans)))
    assert not any(map(declared, (*DOUBTFUL, "servers/a.log", "leases/../night.json", "calibration-..json")))


def test_a_night_is_an_id_and_not_a_path() -> None:
    assert is_night("2026-03-01T010000Z")
    assert not any(map(is_night, (*DOUBTFUL, ".hidden", "a b", "$(a)")))


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_doubtful_name_is_refused(name: str) -> None:
    with pytest.raises(RefusedFileError, match="m offers a file that no run has"):
        require_accepted({name: 1}, LIMITS, "m")


def test_the_names_of_a_run_are_accepted_up_to_the_limits() -> None:
    for name in (".", "record.json", "load/events.bin", "arc_easy,0-shot.json", "out/a b/results_2026-03-01.json"):
        require_accepted({name: 10, "other": 5}, LIMITS, "m")


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ({"a": 11}, "a with 11 bytes and at most 10 are accepted"),
        ({"a": 8, "b": 8}, "16 bytes and at most 15 are accepted"),
        ({"a": 0, "b": 0, "c": 0, "d": 0}, "4 files and at most 3 are accepted"),
    ],
)
def test_more_than_the_limits_is_refused(sizes: dict[str, int], why: str) -> None:
    with pytest.raises(RefusedFileError, match=f"^m offers {why}"):
        require_accepted(sizes, LIMITS, "m")
