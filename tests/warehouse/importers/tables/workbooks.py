"""Workbooks of a few cells, as spreadsheet programs store them."""

import io
import zipfile
from collections.abc import Mapping
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def workbook(cells: Mapping[str, str], merged: str = "", before: str = "") -> bytes:
    """A workbook with one sheet of these cells, by their place; `before` stands at the start of the sheet's XML."""
    shared = list(dict.fromkeys(text for text in cells.values() if not _is_number(text)))
    places = "".join(
        f'<c r="{place}"><v>{text}</v></c>'
        if _is_number(text)
        else f'<c r="{place}" t="s"><v>{shared.index(text)}</v></c>'
        for place, text in cells.items()
    )
    merges = f'<mergeCells><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
    sheet = f'{before}<worksheet xmlns="{_MAIN}"><sheetData><row>{places}</row></sheetData>{merges}</worksheet>'
    strings = "".join(f"<si><t>{escape(text)}</t></si>" for text in shared)
    parts = {
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets><sheet name="Results" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="r1" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
        "xl/sharedStrings.xml": f'<sst xmlns="{_MAIN}">{strings}</sst>',
        "xl/worksheets/sheet1.xml": sheet,
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as into:
        for name, text in parts.items():
            into.writestr(name, text)
    return packed.getvalue()


def _is_number(text: str) -> bool:
    return text.replace(".", "").isdigit()
