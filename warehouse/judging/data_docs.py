"""great-expectations' pages of validations (Data Docs) as one file without external resources.

External styles and scripts are removed, so that the page opens offline; a few rules of ours stand for the styles. Times
and random ids are removed as well: judging twice gives the same page.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

_ELSEWHERE = re.compile(
    r"""<script\b[^>]*\bsrc\s*=\s*["']?(?:https?:)?//[^>]*>\s*</script>"""
    r"""|<(?:link|img)\b[^>]*\b(?:href|src)\s*=\s*["']?(?:https?:)?//[^>]*>""",
    re.IGNORECASE,
)
_OTHER_PAGES = re.compile(r'(<a) href="\.\./[^"]*"')
_DRAWN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{8}T\d{6}\.\d{6}Z")
# In place of the external styles and icons; what needs the external scripts or leads to no page of ours is hidden.
_STYLE = """<style>
body{font:14px/1.45 system-ui,sans-serif;max-width:1200px;margin:2rem auto;padding:0 1rem}
h5{font-size:1.1rem}h6{margin:0}table{border-collapse:collapse}
th,td{border-bottom:1px solid #8886;padding:.2rem .6rem;text-align:left;vertical-align:top}
footer,.ge-breadcrumbs,.collapse,[data-toggle=collapse],.sticky>.card:first-of-type{display:none}
.fa-check-circle::before{content:"\\2714";color:#15803d}.fa-times::before{content:"\\2718";color:#b91c1c}
.fa-exclamation-triangle::before{content:"\\26a0";color:#a16207}
</style>"""


def data_docs(validations: Mapping[str, Any]) -> str:
    """The page of the results of great-expectations, table by table, as HTML."""
    from great_expectations.render import renderer  # noqa: PLC0415 - seconds to import

    renders: Any = renderer  # the name exists, but is not declared as exported
    documents = {table: renders.ValidationResultsPageRenderer().render(one) for table, one in validations.items()}
    whole = next(iter(documents.values()))
    for table, document in documents.items():
        for section in document.sections:
            section.section_name = f"{table}: {section.section_name}"
            section.content_blocks[0].header.string_template["template"] = section.section_name
    whole.sections = [section for document in documents.values() for section in document.sections]
    page = _page_view().render(whole)
    return _DRAWN.sub("validation", _OTHER_PAGES.sub(r"\1", _ELSEWHERE.sub("", page))).replace(
        "</head>", f"{_STYLE}</head>", 1
    )


@cache
def _page_view() -> Any:
    """The library's view, once for a process: each one compiles its seventeen templates again."""
    from great_expectations.render import view  # noqa: PLC0415 - seconds to import

    views: Any = view
    return views.DefaultJinjaPageView()
