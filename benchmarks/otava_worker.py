"""Change points by apache-otava 0.8.0, in the Python that has it: a JSON list of numbers a line in, of indices out.

It runs on its own, since otava brings forty packages and pins numpy. Defaults of otava: windows of 50, p = 0.001.
"""

import importlib
import json
import sys


def main() -> None:
    """Answer each line of stdin."""
    otava = importlib.import_module("otava.series")
    for line in sys.stdin:
        values = json.loads(line)
        metric = otava.Metric(1, 1.0, "")
        series = otava.Series("", None, list(range(len(values))), {"m": metric}, {"m": values}, {})
        found = series.analyze(otava.AnalysisOptions()).change_points["m"]
        sys.stdout.write(json.dumps([int(point.index) for point in found]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
