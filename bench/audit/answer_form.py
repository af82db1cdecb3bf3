"""Whether answers have the form that their scenario demands."""

from bench import evidence_columns as ev
from bench.audit.rules import Evidence
from bench.loadgen.report import LoadReport
from bench.metrics import ratio
from bench.record import RunRecord


def answer_form_evidence(record: RunRecord, report: LoadReport) -> Evidence:
    """The share of valid answers over its floor; empty where no form is demanded."""
    form = record.asked.workload.answers
    if form is None:
        return {}
    return {ev.VALID_OVER_FLOOR: ratio(report.valid_share, form.valid_share_min) if form.valid_share_min else 1.0}
