"""great-expectations' page of a validation (Data Docs) as one file without external resources.

External styles and scripts are removed, so that the page opens offline. Times and random ids are removed as well:
judging twice gives the same page.
"""

import re
from functools import cache
from typing import Any

_ELSEWHERE = re.compile(
    r"""<script\b[^>]*\bsrc\s*=\s*["']?(?:https?:)?//[^>]*>\s*</script>"""
    r"""|<(?:link|img)\b[^>]*\b(?:href|src)\s*=\s*["']?(?:https?:)?//[^>]*>""",
    re.IGNORECASE,
)
_DRAWN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{8}T\d{6}\.\d{6}Z")


def data_docs(validated: Any) -> str:
    """The page of one validation result of great-expectations, as HTML."""
    from great_expectations.render import renderer  # noqa: PLC0415 - seconds to import

    renders: Any = renderer  # the name exists, but is not declared as exported
    page = _page_view().render(renders.ValidationResultsPageRenderer().render(validated))
    return _DRAWN.sub("validation", _ELSEWHERE.sub("", page))


@cache
def _page_view() -> Any:
    """The library's view, once for a process: each one compiles its seventeen templates again."""
    from great_expectations.render import view  # noqa: PLC0415 - seconds to import

    views: Any = view
    return views.DefaultJinjaPageView()
