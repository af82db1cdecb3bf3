"""Writes the site's files for programs: latest.json, the badge, the feed, Parquet files and llms.txt."""

from pathlib import Path

from nights.durable import write_if_changed
from warehouse.site.atom import FEED, atom_feed
from warehouse.site.badge import BADGE, badge
from warehouse.site.contents import Contents
from warehouse.site.dump import write_dumps
from warehouse.site.latest import LATEST, latest
from warehouse.site.llms import LLMS, llms_text


def write_program_files(data: Path, out: Path, contents: Contents) -> None:
    """Write those that changed."""
    write_if_changed(out / LATEST, latest(data, contents))
    write_if_changed(out / BADGE, badge(contents.recent_changes, contents.newest))
    write_if_changed(out / FEED, atom_feed(contents.changes, contents.notices, contents.newest))
    write_if_changed(out / LLMS, llms_text(contents.newest))
    write_dumps(data, out)
