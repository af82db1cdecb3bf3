"""The files for programs: each read by somebody else's reader, and documented."""

import json
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.warehouse.site.conftest import Grown
from warehouse.lake.query import ask
from warehouse.schema.row import Row
from warehouse.site.atom import Notice, atom_feed
from warehouse.site.badge import badge, regressions

ATOM = "{http://www.w3.org/2005/Atom}"
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "site-files.md"
AT = datetime(2026, 3, 1, 1, tzinfo=UTC)
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def change(event: str = "e1", **more: object) -> Row:
    names: Row = {"event_id": event, "source": "s", "series": "m/chat", "metric": "tpot_p50_ms", "unit": ""}
    size: Row = {"effect_pct": 9.0, "ci_lo": 8.0, "ci_hi": 10.0, "direction": "worse", "state": "confirmed"}
    dates: Row = {"first_bad_at": AT, "first_bad": "2026-03-01", "last_good": "2026-02-28", "until": None}
    said: Row = {"said_at": AT, "cause": "engine", "why": "0.31 to 0.32", "note": None}
    return names | size | dates | said | {"acknowledged_at": None, "acknowledged_by": None} | more


def read_feed(text: str) -> list[ET.Element]:
    """The entries of a feed that has what RFC 4287 requires: id, title, updated and an author."""
    feed = ET.fromstring(text)  # noqa: S314 - our own
    assert feed.tag == f"{ATOM}feed"
    assert feed.findtext(f"{ATOM}author/{ATOM}name")
    entries = feed.findall(f"{ATOM}entry")
    for one in (feed, *entries):
        assert re.match(r"[a-z]+:", one.findtext(f"{ATOM}id") or "")
        assert one.find(f"{ATOM}title") is not None
        assert MOMENT.fullmatch(one.findtext(f"{ATOM}updated") or "")
        assert len(one.findall(f"{ATOM}link[@rel='alternate'][@type='text/html']")) == 1
    ids = [entry.findtext(f"{ATOM}id") for entry in entries]
    assert len(set(ids)) == len(ids)
    return entries


def test_the_feed_of_a_site_has_its_changes_with_links_that_lead_to_pages(site: Path) -> None:
    entries = read_feed((site / "events.atom").read_text())

    assert entries
    for entry in entries:
        link = entry.find(f"{ATOM}link")
        assert link is not None
        assert (site / unquote(link.get("href") or "")).is_file()
    assert "<link rel='alternate' type='application/atom+xml'" in (site / "index.html").read_text()


def test_an_event_keeps_its_id_and_is_updated_when_it_is_acknowledged() -> None:
    later = AT.replace(day=5)

    (before,) = read_feed(atom_feed([change(), change(series="m/other", effect_pct=4.0)], (), AT))
    (after,) = read_feed(atom_feed([change(acknowledged_at=later, note="driver", state="explained")], (), AT))

    assert before.findtext(f"{ATOM}title") == "tpot_p50_ms +9.0 %, worse, confirmed: m/chat, and 1 more"
    assert before.findtext(f"{ATOM}id") == after.findtext(f"{ATOM}id")
    assert after.findtext(f"{ATOM}updated") == "2026-03-05T01:00:00Z"


def test_a_notice_stands_in_the_feed_and_is_over_later() -> None:
    stands = Notice("stale/nightly", "no new data of nightly", AT)

    (entry,) = read_feed(atom_feed([], [stands], None))
    (ended,) = read_feed(
        atom_feed([], [Notice("stale/nightly", "no new data of nightly", AT, AT.replace(day=2))], None)
    )

    assert entry.findtext(f"{ATOM}title") == "no new data of nightly"
    assert ended.findtext(f"{ATOM}title") == "over: no new data of nightly"
    assert entry.findtext(f"{ATOM}id") == ended.findtext(f"{ATOM}id")


@settings(max_examples=30)
@given(st.text(max_size=20))
def test_any_text_leaves_feed_and_badge_well_formed(text: str) -> None:
    event = change(series=text, metric=text, why=text, note=text, acknowledged_by=text)

    (entry,) = read_feed(atom_feed([event], [], AT))
    picture = ET.fromstring(badge([event], AT))  # noqa: S314 - our own

    assert {one.tag for one in entry.iter()} <= {
        f"{ATOM}{n}" for n in ("entry", "id", "title", "updated", "link", "category", "summary")
    }
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"


def test_a_feed_without_events_is_a_feed() -> None:
    assert read_feed(atom_feed([], [], None)) == []


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ([change()], 1),
        ([change(state="explained")], 0),
        ([change(direction="better")], 0),
        ([change(until="2026-03-04")], 0),
        ([change(), change(series="other"), change("e2")], 2),
    ],
)
def test_the_badge_counts_confirmed_events_that_stand(changes: list[Row], count: int) -> None:
    said = "no regression" if count == 0 else f"{count} regression"

    assert regressions(changes) == count
    assert f"nightbench: {said}" in badge(changes, AT)


def test_the_badge_of_an_empty_warehouse_says_so() -> None:
    assert "no data" in badge([], None)


def test_latest_json_has_the_lines_of_the_start_page_and_each_key_is_documented(grown: Grown) -> None:
    said = json.loads((grown.site / "latest.json").read_text())
    documented = set(re.findall(r"`([a-z0-9_]+)`", PAGE.read_text()))

    assert (said["version"], said["night"]) == (1, grown.newest)
    assert said["night_line"] in (grown.site / "index.html").read_text()
    (line, *_) = said["lines"]
    assert (line["model"], line["engine"], line["night"]) == ("m", "vllm", grown.newest)
    keys = {*said, *said["files"], *(name.removesuffix("_change_pct").removesuffix("_missing") for name in line)}
    assert keys - documented == set()
    assert all((grown.site / file).is_file() for file in (said["files"]["feed"], *said["files"]["dumps"]))


def test_the_events_of_latest_json_are_documented(tmp_path: Path, site: Path) -> None:
    del tmp_path
    said = json.loads((site / "latest.json").read_text())
    documented = set(re.findall(r"`([a-z0-9_]+)`", PAGE.read_text()))

    assert said["night"] is None
    assert said["events"]
    assert all(set(event) <= documented for event in said["events"])


def test_the_parquet_dump_has_each_accepted_run(grown: Grown) -> None:
    table = pq.read_table(grown.site / "data" / "measurements.parquet")
    (count,) = ask(grown.data, "SELECT count(*) FROM accepted").rows[0]

    assert table.num_rows == count > 0
    assert {"night", "model", "tok_per_s_per_user", "usd_per_mtok_output"} <= set(table.column_names)


def test_every_link_of_llms_txt_leads_to_a_file(grown: Grown) -> None:
    text = (grown.site / "llms.txt").read_text()
    links = re.findall(r"\]\(([^)]+)\)", text)

    assert text.startswith("# ")
    assert "\n> " in text
    assert len(links) > 8
    assert [link for link in links if not (grown.site / link).is_file()] == []
