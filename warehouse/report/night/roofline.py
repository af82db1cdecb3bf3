"""How much of the hardware's limits each scenario used: memory bandwidth and compute, by the audit's arithmetic."""

from pathlib import Path

from markupsafe import Markup

from warehouse.report.night.bars import Measure, bars
from warehouse.report.pictures import asked, picture_html, sources_html

_SHARES = """
SELECT scenario, code, count(*) AS runs, median(observed) AS used_share,
    first(message ORDER BY observed IS NULL, "order") AS message
FROM findings JOIN (
    SELECT night, run_id, scenario, "order" FROM measurements
    WHERE night = {{ night }} AND is_control IS NOT TRUE AND outcome = 'measured'
) AS runs USING (night, run_id)
WHERE night = {{ night }} AND code IN ('roofline_bandwidth', 'roofline_compute')
GROUP BY scenario, code
ORDER BY min("order"), code
"""
_LIMITS = {"roofline_bandwidth": ("bandwidth", "bar"), "roofline_compute": ("compute", "stage")}
_MORE = Markup("<div class='more'>{}</div>")
_LEAD = Markup(
    "<p>Of the peaks in the catalogue: the bytes that the answers need at least, over the memory bandwidth; "
    "the operations that prompts and answers need at least, over the compute. The higher one is the limit.</p>"
)


def roofline_html(data: Path, night: str) -> Markup:
    """The picture; where no share is known, why."""
    answer = asked(data, night, _SHARES)
    known = [row for row in answer.rows if row["used_share"] is not None]
    if not known:
        reasons = sorted({row["message"].removeprefix("not checkable: ") for row in answer.rows}) or [
            "no run was measured, or no check was kept"
        ]
        why = Markup("<p>No share of the hardware's limits is known: {}.</p>").format("; ".join(reasons))
        return why + _MORE.format(sources_html(answer, "roofline"))
    measures = [
        Measure(row["scenario"], 100 * row["used_share"], f"{row['used_share']:.0%} of {words}", kind)
        for row in known
        for words, kind in [_LIMITS[row["code"]]]
    ]
    said = "; ".join(f"{one.label} {one.said}" for one in measures)
    title = "Share of peak memory bandwidth and compute that was used (%)"
    return _LEAD + picture_html(answer, "roofline", title, said, bars(measures, (100.0, "limit")))
