"""`make bench`: one table of every bar of the project. `python -m benchmarks [NAME ...] [--quick] [--record]`."""

import sys

from benchmarks import (
    audit_speed,
    billed_minutes,
    chaos_nights,
    client_bars,
    detector,
    false_alarms,
    first_nights,
    five_years,
    histories,
    many_requests,
    mutations,
    night_overhead,
    planned_repeats,
    replay_error,
    searches,
    suite_time,
    token_counts,
    warehouse_load,
)
from benchmarks.history import repeats as history_repeats
from benchmarks.run import run

BENCHMARKS = (
    warehouse_load.BENCHMARK,
    audit_speed.BENCHMARK,
    billed_minutes.BENCHMARK,
    chaos_nights.BENCHMARK,
    client_bars.BENCHMARK,
    detector.BENCHMARK,
    false_alarms.BENCHMARK,
    first_nights.BENCHMARK,
    five_years.BENCHMARK,
    histories.BENCHMARK,
    many_requests.BENCHMARK,
    mutations.BENCHMARK,
    night_overhead.BENCHMARK,
    planned_repeats.BENCHMARK,
    history_repeats.BENCHMARK,
    replay_error.BENCHMARK,
    searches.BENCHMARK,
    suite_time.BENCHMARK,
    token_counts.BENCHMARK,
)

if __name__ == "__main__":
    sys.exit(run(BENCHMARKS))
