"""What `nightbench` imports before it knows the command."""

import subprocess
import sys


def test_a_command_starts_without_what_only_others_need() -> None:
    slow = {"bench.record", "bench.suite.suite", "numpy", "pandas", "duckdb", "prefect", "rich.markdown"}
    found = subprocess.run(
        [sys.executable, "-c", "import sys, flows.cli; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert slow & set(found.stdout.split()) == set()
