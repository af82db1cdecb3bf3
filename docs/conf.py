"""How Sphinx builds the site of the documentation: `make docs` writes it to build/docs."""

import re
from pathlib import Path

from sphinx.application import Sphinx

project = "Nightbench"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = project
root_doc = "README"
source_suffix = {".md": "markdown"}
# The source folder is the checkout, because pages link to the README, METHOD.md and the code.
include_patterns = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "METHOD.md", "CHANGELOG.md", "docs/**"]
exclude_patterns = ["docs/conf.py"]
myst_heading_anchors = 4
# Examples of commands and of broken input are not valid in the language that they are shown in.
suppress_warnings = ["misc.highlighting_failure"]

# On the code host a page's list of pages is enough; the site needs a tree for its sidebar.
SIDEBAR = """
```{toctree}
:hidden:
:glob:
docs/README
docs/night
docs/how-it-judges
docs/how-to/*
docs/reference/*
docs/adr/README
docs/adr/*
METHOD
CHANGELOG
CONTRIBUTING
SECURITY
```
"""
LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s#:]+)\)")


def prepare(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the tree of pages to the first page, and keep only the words of links to folders, which have no page."""
    folder = Path(app.srcdir, page).parent

    def without_folder(link: re.Match[str]) -> str:
        return link[1] if (folder / link[2]).is_dir() else link[0]

    source[0] = LINK.sub(without_folder, source[0]) + (SIDEBAR if page == root_doc else "")


def setup(app: Sphinx) -> None:
    """Register what Sphinx calls while it reads pages."""
    app.connect("source-read", prepare)
