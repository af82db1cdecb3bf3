"""`python -m flows` is `nightbench`."""

import gc

from flows.ending import run_program

# With Python's own numbers, the imports of a night, which free nothing, are searched for garbage 500 times.
GC_THRESHOLDS = 50_000, 20, 50


def main() -> None:
    """Run the command line as a process of its own."""
    gc.set_threshold(*GC_THRESHOLDS)
    run_program(_command_line)


def _command_line() -> None:
    from flows.cli import main as run_command  # noqa: PLC0415 - an exit handler of an import stands after ours

    run_command()


if __name__ == "__main__":
    main()
