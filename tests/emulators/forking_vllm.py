"""vLLM's command line, whose processes are forked from one another: three times the imports become one.

For tests only. The CPU build insists on `spawn`, and rightly: fork and OpenMP are not safe together in general.
"""

import multiprocessing
import sys
from multiprocessing.context import BaseContext

real_context = multiprocessing.get_context


def forking(method: str | None = None) -> BaseContext:
    """The context that was asked for, and fork in place of spawn."""
    return real_context("fork" if method == "spawn" else method)


if __name__ == "__main__":
    multiprocessing.get_context = forking  # type: ignore[assignment]
    from vllm.entrypoints.cli.main import main  # type: ignore[import-not-found]

    sys.argv[0] = "vllm"
    sys.exit(main())
