"""The addresses of pages: the same for the same series, whatever else the site has."""

import re
from hashlib import sha256

SLUG_LENGTH = 60


def series_page(source: str, series: str) -> str:
    """The file name of a series' page, without folder and ending; two names never share one."""
    return page_name(source, series)


def page_name(kind: str, name: str) -> str:
    """The file name of a page by the name of what it shows; two names of a kind never share one."""
    slug = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:SLUG_LENGTH]
    digest = sha256(f"{kind}\n{name}".encode()).hexdigest()[:10]
    return f"{slug}-{digest}" if slug else digest


def series_address(source: str, series: str) -> str:
    """The address of a series' page from the start page."""
    return f"series/{series_page(source, series)}.html"


def series_address_from_folder(source: str, series: str) -> str:
    """The address of a series' page from a page in a folder of the site."""
    return f"../{series_address(source, series)}"
