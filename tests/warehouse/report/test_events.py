"""The note on an event links the traces that it names, and runs nothing of what a person wrote there."""

from warehouse.report.events import feed_html, no_address
from warehouse.schema.row import Row

TRACE = "runs/2026-03-01T010000Z/profile-0123456789abcdef/0/rank0.1.pt.trace.json.gz"


def feed(note: str, address: object = no_address) -> str:
    texts = ("metric", "direction", "cause", "event_id", "series", "source", "why", "last_good")
    row: Row = dict.fromkeys(texts, "x") | {"effect_pct": 9.0, "ci_lo": 8.0, "ci_hi": 10.0, "until": None}
    row |= {"state": "confirmed", "acknowledged_by": "nightbench bisect", "note": note}
    row |= {"first_bad": "n", "first_bad_at": 1}
    return str(feed_html([row], address))  # type: ignore[arg-type]  # one of two functions


def test_a_trace_is_linked_where_the_folders_of_nights_are_beside_the_page() -> None:
    note = f"2 is the first one\ntrace of 1: {TRACE}"

    assert f"trace of 1: <a href='../{TRACE}'>{TRACE}</a>." in feed(note)
    assert f"trace of 1: {TRACE}." in feed(note, lambda _source, _series: "")  # a site, which is uploaded alone


def test_what_looks_like_a_trace_and_leads_elsewhere_is_text() -> None:
    for note in (TRACE.replace("2026", "..%2f"), TRACE.replace("/0/", "/../"), f"<script>{TRACE[:20]}</script>"):
        assert "<a href='../" not in feed(note)
        assert "<script>" not in feed(note)
