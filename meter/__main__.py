"""The command line: `python -m meter run plan.json out/`; 0 good, 2 wrong usage, 3 the outside world failed."""

import sys
from collections.abc import Sequence
from pathlib import Path

from meter import METER_VERSION
from meter.drive import run
from meter.errors import MeterError, UsageError
from meter.hosts import run_on_hosts
from meter.plan import read_plan

USAGE = "Usage: meter run PLAN.json OUT_FOLDER, or meter --version."


def _run_command(arguments: Sequence[str]) -> int:
    match list(arguments):
        case ["run", path, folder]:
            plan = read_plan(Path(path))
            return run_on_hosts(plan, Path(folder)) if plan.hosts else run(plan, Path(folder))
        case ["--version"]:
            sys.stdout.write(f"{METER_VERSION}\n")
            return 0
        case _:
            raise UsageError(USAGE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; print a failure as one sentence on standard error."""
    try:
        return _run_command(sys.argv[1:] if arguments is None else arguments)
    except MeterError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
