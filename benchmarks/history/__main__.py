"""`python -m benchmarks.history ROUNDS`: measure a history until each release has so many nights, and export it."""

import argparse
import sys

from benchmarks.history.collect import build_all, collect, missing_nights
from benchmarks.history.export import export
from benchmarks.history.flow_runs import collection_parser, run_nights, use_data_folder
from benchmarks.history.plan import known_releases, planned
from flows.ending import exit_code_of, handle_stop_signals
from flows.show import console
from infra.settings import Settings
from warehouse.demo.history import HISTORY


def main() -> int:
    """Continue the history of a data folder; the same command goes on where it was stopped."""
    options = _options()
    data = options.data.absolute()
    use_data_folder(data)
    nights = [one for one in planned(options.rounds, known_releases()) if options.engine in {None, one.engine}]
    lacking = missing_nights(data, nights)
    console.progress(f"{len(nights) - len(lacking)} of {len(nights)} nights are measured")
    missing = lacking[: options.most]
    handle_stop_signals(data)
    try:
        unbuilt = build_all(missing, Settings(), console.progress)
        if not options.build_only:
            with run_nights() as run:
                collect(data, missing, unbuilt, run, console.progress)
    except (KeyboardInterrupt, SystemExit) as stop:
        console.error("stopped; what was measured is kept: run the same command again")
        return exit_code_of(stop)
    if not options.build_only and not missing_nights(data, nights):
        console.line(f"{export(data, HISTORY)} bytes in {HISTORY}")
    return int(bool(unbuilt))


def _options() -> argparse.Namespace:
    parser = collection_parser("benchmarks.history", main.__doc__, "nights")
    parser.add_argument("rounds", type=int, help="nights of each release")
    parser.add_argument("--build-only", action="store_true", help="build the engines and measure nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
