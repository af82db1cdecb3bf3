"""great-expectations' page of a validation (Data Docs) as one file without external resources.

External styles and scripts are removed, so that the page opens offline. Times and random ids are removed as well:
judging twice gives the same page.
"""

import re
from typing import Any

_ELSEWHERE = re.compile(
    r"""<script\b[^>]*\bsrc\s*=\s*["']?(?:https?:)?//[^>]*>\s*</script>"""
    r"""|<(?:link|img)\b[^>]*\b(?:href|src)\s*=\s*["']?(?:https?:)?//[^>]*>""",
    re.IGNORECASE,
)
_DRAWN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{8}T\d{6}\.\d{6}Z")


def data_docs(validated: Any) -> str:
    """The page of one validation result of great-expectations, as HTML."""
    from great_expectations.render import renderer, view  # noqa: PLC0415 - seconds to import

    renders: Any = renderer  # the names exist, but are not declared as exported
    views: Any = view
    page = views.DefaultJinjaPageView().render(renders.ValidationResultsPageRenderer().render(validated))
    return _DRAWN.sub("validation", _ELSEWHERE.sub("", page))
