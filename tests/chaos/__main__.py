"""Run random nights and report which of them leaked: `python -m tests.chaos NIGHTS [--seed S]`; exit code 1 if any did.

Seeds are S, S+1, ...; without --seed the first is drawn. `python -m tests.chaos 1 --seed S` repeats one night. With
--without-reaper a killed night must be seen to leak, or the bill is not looked at.
"""

import argparse
import os
import secrets
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from tests.chaos.storm import forecast, outcome


def main() -> int:
    """Print one line for each leak and a summary; return the exit code."""
    asked = _arguments()
    first = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    seeds = range(first, first + asked.nights)
    began = time.monotonic()
    failed = 0
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("forkserver")) as pool:
        for number, (seed, breach) in enumerate(
            pool.map(partial(outcome, has_reaper=not asked.without_reaper), seeds), start=1
        ):
            if breach is not None:
                failed += 1
                _say(f"seed {seed} LEAKS: {breach}\n  {forecast(seed)}\n  again: make chaos NIGHTS=1 SEED={seed}")
            if number % 20 == 0:
                _say(f"{number} nights, {failed} leaks, {time.monotonic() - began:.0f} s; next seed {first + number}")
    lasted_s = time.monotonic() - began
    _say(f"{asked.nights} nights from seed {first}: {failed} leaks, {lasted_s:.0f} s")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("nights", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--without-reaper", action="store_true")
    return parser.parse_args()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
