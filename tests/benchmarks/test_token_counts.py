"""Token counts by kind of workload: which requests count as alike, and the page."""

from dataclasses import replace

import pytest

from benchmarks.token_counts import CountedNight, page, with_rows
from benchmarks.token_rows import Counted, is_equal

ROW = {"prompt_tokens_planned": 64, "prompt_tokens_counted": 64, "output_tokens_planned": 8, "output_tokens_counted": 8}


@pytest.mark.parametrize(
    ("changed", "tokenized", "streamed", "ends_itself", "expected"),
    [
        ({}, 64, 8, False, True),
        ({"prompt_tokens_planned": None}, 64, 8, False, True),
        ({}, 65, 8, False, False),
        ({"prompt_tokens_counted": 65}, 64, 8, False, False),
        ({"prompt_tokens_planned": None, "prompt_tokens_counted": 65}, 64, 8, False, False),
        ({}, 64, 7, False, False),
        ({"output_tokens_counted": 7}, 64, 7, False, False),
        ({"output_tokens_counted": 7}, 64, 7, True, True),
        ({"output_tokens_counted": 9}, 64, 9, True, False),
        ({"output_tokens_planned": None, "output_tokens_counted": None}, 64, 0, False, True),  # a vector
        ({"output_tokens_planned": None, "output_tokens_counted": None}, 65, 0, False, False),
        ({"output_tokens_planned": None, "output_tokens_counted": None}, 64, 1, False, False),
    ],
)
def test_all_counts_of_a_request_must_agree(
    changed: dict[str, int | None], tokenized: int, streamed: int, ends_itself: bool, expected: bool
) -> None:
    assert is_equal({**ROW, **changed}, tokenized, streamed, ends_itself=ends_itself) == expected


def test_the_page_has_a_row_a_kind_and_no_number_where_only_a_tokenizer_knows_it() -> None:
    images = Counted("images", 1200, None, 8_000, 8_000, 9_600, 9_600, 9_600, 0)

    text = page(CountedNight((images,), ("speculation",)), 1000)

    assert "| images | 1,200 | - | 8,000 | 8,000 | 9,600 | 9,600 | 9,600 | 0 |" in text
    assert "--requests 1000 --record" in text
    assert "Not measured in this night: speculation." in text


def test_a_kind_that_a_night_did_not_have_keeps_its_row() -> None:
    images = Counted("images", 1200, None, 8_000, 8_000, 9_600, 9_600, 9_600, 0)
    others = [replace(images, kind=kind) for kind in ("adapters", "speculation")]

    recorded = page(CountedNight((*others, images), ()), 1000)
    again = with_rows(recorded, page(CountedNight((replace(images, requests=7),), ()), 1000))

    assert [line.split(" | ")[:2] for line in again.splitlines() if line.startswith("| ")][2:] == [
        ["| adapters", "1,200"], ["| images", "7"], ["| speculation", "1,200"],
    ]  # fmt: skip


def test_what_is_wrong_with_a_night_names_the_kind_and_why_its_requests_failed() -> None:
    good = Counted("images", 1200, None, 8_000, 8_000, 9_600, 9_600, 9_600, 0)
    failures = {"images": "1 dropped_on_reuse (the server closed the connection)"}

    assert CountedNight((good,), (), failures).faults(1200) == []
    assert CountedNight((good,), (), failures).faults(1201) == [
        "images: 1200 answered requests of 1201: 1 dropped_on_reuse (the server closed the connection)"
    ]
    assert CountedNight((good,), ("speculation",)).faults(1200) == ["speculation: not measured"]
    assert CountedNight((replace(good, unlike=1),), ()).faults(1200) == [
        "images: requests of which two counts differ: 1"
    ]
