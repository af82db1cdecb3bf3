"""What the audit checked of a night's runs, and what it could not check, with the reason."""

from pathlib import Path

from markupsafe import Markup

from warehouse.report.markup import details, table_html
from warehouse.report.pictures import asked, sources_html

_COUNTS = """
SELECT family, count(DISTINCT code) AS checks, count(*) FILTER (status = 'PASS') AS passed,
    count(*) FILTER (status = 'WARN') AS warned, count(*) FILTER (status = 'FAIL') AS failed,
    count(*) FILTER (status = 'NOT-CHECKABLE') AS could_not_be_checked
FROM findings WHERE night = {{ night }} GROUP BY family ORDER BY failed DESC, warned DESC, family
"""
_UNCHECKED = """
SELECT code, family, count(*) AS results, first(message ORDER BY run_id) AS reason
FROM findings WHERE night = {{ night }} AND status = 'NOT-CHECKABLE' GROUP BY code, family ORDER BY results DESC, code
"""
_MORE = Markup("<div class='more'>{}</div>")


def checked_html(data: Path, night: str) -> Markup:
    """The counts by family, and below them the reasons."""
    counts, unchecked = asked(data, night, _COUNTS), asked(data, night, _UNCHECKED)
    if not counts.rows:
        return Markup("<p>No check of this night is in the warehouse.</p>")
    total = {name: sum(row[name] for row in counts.rows) for name in ("passed", "warned", "failed")}
    lacking = sum(row["could_not_be_checked"] for row in counts.rows)
    said = Markup(
        "<p>{checks} checks on its runs: {passed} results passed, {warned} warn, {failed} failed, "
        "and {lacking} could not be had because an input is missing.</p>"
    ).format(checks=sum(row["checks"] for row in counts.rows), lacking=lacking, **total)
    reasons = details("What could not be checked, and why", table_html(unchecked.rows))
    more = _MORE.format(sources_html(counts, "checks", ())) + (
        reasons + _MORE.format(sources_html(unchecked, "unchecked", ())) if unchecked.rows else Markup()
    )
    return said + table_html(counts.rows) + more
