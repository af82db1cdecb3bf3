"""What a run of batches without a server gave: its tokens over its time; what only a stream shows is None."""

import numpy as np

from bench.loadgen.batch_report import BatchReport
from bench.metrics import PERCENTILE_ESTIMATOR
from warehouse.rows.measurement_results import statistics, usd_per_mtok_output
from warehouse.schema.row import Row


def batch_measured(report: BatchReport, usd_per_hour: float | None) -> Row:
    """The columns of counts, throughput and, where batches were repeated, of the time of a whole batch.

    A driver that loads the model itself fails as a whole, so that no single request of a report has failed.
    """
    row: Row = {
        "completed": report.requests,
        "failed": 0,
        "duration_s": report.elapsed_s,
        "total_input_tokens": report.input_tokens,
        "total_output_tokens": report.output_tokens,
        "request_throughput_per_s": report.requests_per_s,
        "output_throughput_tok_per_s": report.output_tok_per_s,
        "usd_per_mtok_output": usd_per_mtok_output(usd_per_hour, report.output_tok_per_s),
    }
    if not report.iteration_s:
        return row
    times = statistics(np.array(report.iteration_s), len(report.iteration_s))
    return row | {"percentile_estimator": PERCENTILE_ESTIMATOR} | {f"e2el_{name}": one for name, one in times.items()}
