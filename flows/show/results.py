"""Prints measurements of a night, what they mean, and answers to queries."""

import csv
import sys
from pathlib import Path
from typing import Literal

from bench.closing import Doubt, closing
from bench.printable import printable
from bench.repeats import NightPrecision
from flows.show.console import line, print_json, table
from infra.storage import store
from warehouse.lake.query import QueryResult, run_sql

RESULTS = """
SELECT standing.scenario, standing."repeat", standing.verdict, completed AS ok, failed,
       output_throughput_tok_per_s AS tok_per_s, ttft_p50_ms, tpot_p50_ms, e2el_p50_ms,
       coalesce(reason, code || ': ' || message) AS reason
FROM standing LEFT JOIN findings_worst USING (night, run_id)
WHERE night = ? ORDER BY standing.scenario, standing.scenario_id, standing."repeat"
"""


VERDICTS = "SELECT verdict, count(*) FROM measurements WHERE night = ? GROUP BY ALL"
DOUBTS = """
SELECT verdict, code, count(DISTINCT run_id), arg_max(message, observed)
FROM findings JOIN (SELECT night, run_id, verdict FROM measurements) USING (night, run_id)
WHERE night = ? AND severity <> 'info' GROUP BY ALL ORDER BY 3 DESC, code
"""


def show_answer(found: QueryResult, form: Literal["table", "json", "csv"]) -> None:
    """Print the answer to a query."""
    rows = found.dicts()
    if form == "json":
        print_json(rows)
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(found.columns)
        writer.writerows([printable(one) if isinstance(one, str) else one for one in row] for row in found.rows)
    else:
        table(rows)


def show_night(data: Path, night: str) -> None:
    """Print a row per run with its verdict and the worst reason for doubt, and the paths of its reports."""
    table(run_sql(data.absolute(), RESULTS, (night,)).dicts(), f"night {night}")
    reached = store.repeats_file(data.absolute(), night)
    if reached.exists():
        for one in NightPrecision.model_validate_json(reached.read_bytes()).reached:
            line(str(one))
    line(f"report: {data.absolute() / 'reports' / f'{night}.html'}")
    for page in sorted((data.absolute() / "reports" / night).glob("*.html")):
        line(f"report of the suite: {page}")
    verdicts = dict(run_sql(data.absolute(), VERDICTS, (night,)).rows)
    doubts = [Doubt(*row) for row in run_sql(data.absolute(), DOUBTS, (night,)).rows]
    for said in closing(night, verdicts, doubts):
        line(said)
