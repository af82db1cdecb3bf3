"""What the book of events adds to the site's feed; the warehouse does not know of it."""

from pathlib import Path

from infra.notices.kept_events import kept_events
from infra.reporting import Say
from warehouse.site.atom import Notice


def site_notices(data: Path, say: Say) -> list[Notice]:
    """The events of a data folder as the site shows them."""
    return [Notice(one.key, one.title, one.began_at, one.ended_at) for one in kept_events(data, say)]
