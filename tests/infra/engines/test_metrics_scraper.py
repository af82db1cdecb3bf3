import itertools
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from bench.engines.by_name import ENGINES, SAMPLED_NAMES, sample
from infra.engines.metrics_scraper import Scraper, scrape_once, write_scrapes

PAGE = 'vllm:num_requests_running{engine="0"} 3.0\nvllm:num_requests_waiting{engine="0"} 1.0\n'
SAMPLE = partial(sample, ENGINES["vllm"])


def _refusing(error: Exception) -> Callable[[], str]:
    def read() -> str:
        raise error

    return read


def test_a_scrape_has_the_servers_metrics_and_none_for_missing_ones() -> None:
    row = scrape_once(lambda: PAGE, SAMPLE)

    assert (row["requests_running"], row["requests_waiting"], row["error"]) == (3.0, 1.0, None)
    assert row["generation_tokens"] is None


def test_a_scrape_has_monotonic_times_of_request_and_answer() -> None:
    before = time.monotonic_ns()

    row = scrape_once(lambda: PAGE, SAMPLE)

    assert before <= row["asked_ns"] <= row["answered_ns"] <= time.monotonic_ns()


def test_a_failed_scrape_has_its_error_and_no_metric() -> None:
    row = scrape_once(_refusing(TimeoutError("timed out")), SAMPLE)

    assert (row["error"], row["answered_ns"]) == ("timed out", None)
    assert {row[name] for name in SAMPLED_NAMES} == {None}


def test_an_error_without_a_message_is_recorded_by_its_class() -> None:
    assert scrape_once(_refusing(ConnectionResetError()), SAMPLE)["error"] == "ConnectionResetError"


def test_scrapes_repeat_until_the_load_ends() -> None:
    asked = itertools.count(1)
    third = threading.Event()

    def read() -> str:
        if next(asked) == 3:
            third.set()
        return PAGE

    with Scraper(read, SAMPLE, period_s=0.001) as scraper:
        assert third.wait(30)

    count = len(scraper.scrapes)
    assert count >= 3
    assert next(asked) == count + 1


def test_a_failed_scrape_does_not_stop_the_scraper() -> None:
    asked = itertools.count(1)
    second = threading.Event()

    def read() -> str:
        if next(asked) == 1:
            raise TimeoutError("slow")
        second.set()
        return PAGE

    with Scraper(read, SAMPLE, period_s=0.001) as scraper:
        assert second.wait(30)

    assert [row["error"] for row in scraper.scrapes[:2]] == ["slow", None]


def test_scrapes_are_read_from_their_file_unchanged(tmp_path: Path) -> None:
    rows = [scrape_once(lambda: PAGE, SAMPLE), scrape_once(_refusing(OSError("gone")), SAMPLE)]

    write_scrapes(rows, tmp_path / "s.parquet")

    found = pq.read_table(tmp_path / "s.parquet").to_pylist()
    assert [(row["requests_running"], row["error"]) for row in found] == [(3.0, None), (None, "gone")]
    assert [row["asked_ns"] for row in found] == [row["asked_ns"] for row in rows]


def test_a_file_without_scrapes_has_every_column(tmp_path: Path) -> None:
    write_scrapes([], tmp_path / "s.parquet")

    found = pq.read_table(tmp_path / "s.parquet")
    assert len(found) == 0
    assert set(SAMPLED_NAMES) <= set(found.column_names)
