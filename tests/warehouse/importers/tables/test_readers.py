"""Tables out of pages, reports, workbooks and text: what is read, and what a hostile file does not do."""

import io
import zipfile

import pytest

from bench.errors import UnreadableResultError
from tests.warehouse.importers.tables.workbooks import workbook
from warehouse.importers.parsing.printed import read_quantity
from warehouse.importers.tables.every import tables_of
from warehouse.importers.tables.table import Table
from warehouse.importers.tables.workbook import is_workbook


def tables(text: str | bytes) -> list[Table]:
    data = text.encode() if isinstance(text, str) else text
    return tables_of("page", data, data.decode)


def cells(table: Table) -> list[tuple[str, ...]]:
    return [row.cells for row in table.rows]


PAGE = """<!DOCTYPE html><html><script>"<table><tr><td>1</td></tr></table>"</script>
<h2>Llama 3.1 on <b>MI300X</b></h2><!-- <table><tr><td>2 -->
<p>All in FP8:</p>
<table>
<tr><th rowspan=2>Model</th><th colspan="2">tok/s</th></tr>
<tr><th>BF16</th><th>FP8</th></tr>
<tr><td rowspan="2">8B &amp; more</td><td>1&nbsp;024</td><td>2,048<br>(peak)</td></tr>
<tr><td>5</td><td><table><tr><td>inner</td><td>7</td></tr><tr><td>x</td><td>8</td></tr></table>6</td></tr>
</table>"""


def test_a_page_is_read_with_spans_entities_and_inner_tables() -> None:
    inner, outer = tables(PAGE)

    assert (outer.header, outer.heading, outer.caption) == (
        ("Model", "tok/s BF16", "tok/s FP8"),
        "Llama 3.1 on MI300X",
        "All in FP8:",
    )
    assert cells(outer) == [("8B & more", "1 024", "2,048 (peak)"), ("8B & more", "5", "6")]
    assert [row.line for row in outer.rows] == [7, 8]
    assert cells(inner) == [("x", "8")]


@pytest.mark.parametrize(
    ("cell", "text", "number"),
    [
        ("150<sup>2</sup>", "150 [2]", 150.0),
        ("<sup>2</sup>150", "150 [2]", 150.0),
        ("150<sup><a href='#n'>[2]</a></sup>", "150 [2]", 150.0),
        ("150<sub>2", "150 [2]", 150.0),
        ("150<sup>*</sup>", "150*", 150.0),
        ("150<sup>1</sup><sup>2</sup>", "150 [1] [2]", None),
        ("10<sup>3</sup>", "10^3", None),
        ("1.5 x 10<sup>-3</sup>", "1.5 x 10^-3", None),
        ("1<sup>st</sup> run", "1st run", None),
        ("95<br>120", "95 / 120", None),
        ("95<br/>-120", "95 / -120", None),
        ("<p>95</p><p>120</p>", "95 / 120", None),
        ("<div>95</div>120", "95 / 120", None),
        ("<ul><li>95<li>120</ul>", "95 / 120", None),
        ("Llama 3<br>405 B", "Llama 3 405 B", None),
        ("2,048<br>tok/s", "2,048 tok/s", 2048.0),
        ("<p>1&nbsp;024</p>", "1 024", 1024.0),
    ],
)
def test_what_stands_above_or_below_a_number_is_no_digit_of_it(cell: str, text: str, number: float | None) -> None:
    (table,) = tables(f"<table><tr><th>a<br>b<th>c</tr><tr><td>{cell}</td><td>7</td></tr></table>")

    assert (table.header, cells(table)) == (("a b", "c"), [(text, "7")])
    quantity = read_quantity(text)
    assert (quantity and quantity.number) == number


@pytest.mark.parametrize(
    "page",
    [
        "<table><tr><td>" + "1<br>" * 50_000,
        "<table><tr><td>" + "1<sup>2" * 50_000,
        "<table>" * 50_000,
        "<table><tr><td>" + "<td" * 50_000,
        "<html>" + "<!--" * 50_000 + "<table>",
        "<html>" + "<script>" * 50_000,
        "<html><table>" + "<tr>" * 50_000 + "<td>1<td>2" + "&" * 50_000,
    ],
)
def test_a_broken_page_ends(page: str) -> None:
    assert len(tables(page)) <= 1


def test_a_cell_that_claims_to_span_millions_is_refused() -> None:
    with pytest.raises(UnreadableResultError, match="page has more than 1,000,000 table cells"):
        tables("<html><table>" + "<tr><td rowspan=9999 colspan=9999>1</td></tr>" * 200 + "</table>")


REPORT = """# Results
## Time to first token (ms)
We ran **vLLM** on 8x H100:

| GPU | [Input](x) `len` | p99 |
|:---:|---|--:|
| **H100** | 128 | 1\\|2 |
|      | 256 | 3 |
after | a bar
"""


def test_a_report_is_read_with_the_words_around_its_tables() -> None:
    (table,) = tables(REPORT)

    assert (table.heading, table.caption) == ("Results: Time to first token (ms)", "We ran vLLM on 8x H100:")
    assert table.header == ("GPU", "Input len", "p99")
    assert cells(table)[:2] == [("H100", "128", "1|2"), ("", "256", "3")]
    assert [row.line for row in table.rows][:2] == [7, 8]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_columns_are_split_by_what_splits_most_lines_alike(mark: str) -> None:
    (table,) = tables("\ufeffMy results\nA,B,C\n1,2,3\n4,5\n".replace(",", mark))

    assert (table.caption, table.header, cells(table)) == (
        "\ufeffMy results",
        ("A", "B", "C"),
        [("1", "2", "3"), ("4", "5", "")],
    )


def test_two_headers_of_one_name_and_none_are_told_apart() -> None:
    (table,) = tables("A,A,\n1,2,3\n")

    assert table.header == ("A", "A (2)", "column 3")


def test_a_workbook_is_read_with_merged_cells_and_the_line_above() -> None:
    places = {"B2": "On MI300X", "B3": "Model", "C3": "tok/s", "B4": "Llama", "C4": "33.1", "C5": "0.30000000000000004"}

    (table,) = tables_of("book.xlsx", workbook(places, merged="B4:B5"), str)

    assert (table.header, table.caption, table.place) == (("Model", "tok/s"), "On MI300X", "sheet Results")
    assert cells(table) == [("Llama", "33.1"), ("Llama", "0.3")]


def test_a_workbook_with_entities_is_refused() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'

    with pytest.raises(UnreadableResultError, match="declares a document type"):
        tables_of("book.xlsx", workbook({"A1": "x"}, before=bomb), str)


@pytest.mark.parametrize("before", [f"<!--{' ' * 5000}-->", f"<!--{' ' * 70_000}-->"])
def test_entities_behind_a_long_comment_are_refused_too(before: str) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'

    with pytest.raises(UnreadableResultError, match="declares a document type"):
        tables_of("book.xlsx", workbook({"A1": "x"}, before=before + bomb), str)


def test_entities_in_another_encoding_are_refused_too() -> None:
    bomb = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE sst [<!ENTITY a "ha">]><sst>&a;</sst>'

    with pytest.raises(UnreadableResultError, match="declares a document type"):
        tables_of("book.xlsx", repacked({"xl/sharedStrings.xml": bomb.encode("utf-16")}), str)


MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
BOOK = {"A1": "Model", "B1": "tok/s", "A2": "Llama", "B2": "33.1"}
UNPLACED = (
    f"<worksheet {MAIN}><sheetData>"
    '<row><c t="inlineStr"><is><t>Model</t></is></c><c t="inlineStr"><is><t>tok/s</t></is></c></row>'
    '<row r="2"><c t="inlineStr"><is><t>Llama</t></is></c><c><v>33.1</v></c></row>'
    '<row><c/><c><v>34</v></c></row><row><c r="B4"><v>35</v></c><c><v>7</v></c></row></sheetData></worksheet>'
)
CELL = f'<worksheet {MAIN}><sheetData><row><c r="A1" t="s"><v>{{}}</v></c></row></sheetData></worksheet>'


def repacked(parts: dict[str, bytes]) -> bytes:
    """A workbook with some of its parts replaced."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook(BOOK))) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, parts.get(name, old.read(name)))
    return packed.getvalue()


def test_a_cell_without_a_place_follows_the_one_before_it() -> None:
    (table,) = tables_of("book.xlsx", repacked({"xl/worksheets/sheet1.xml": UNPLACED.encode()}), str)

    assert table.header == ("Model", "tok/s", "column 3")
    assert cells(table) == [("Llama", "33.1", ""), ("", "34", ""), ("", "35", "7")]


def flagged(data: bytes, at: int, value: bytes) -> bytes:
    """A workbook with these bytes in each entry of its directory, as an encrypting or newer packer writes them."""
    found = bytearray(data)
    start = found.find(b"PK\x01\x02")
    while start >= 0:
        found[start + at : start + at + len(value)] = value
        start = found.find(b"PK\x01\x02", start + 4)
    return bytes(found)


def damaged() -> bytes:
    """A workbook whose first packed bytes are no longer what the packer wrote."""
    found = bytearray(repacked({}))
    begin = found.find(b"xl/workbook.xml") + len("xl/workbook.xml")
    found[begin : begin + 20] = b"\xff" * 20
    return bytes(found)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            repacked({"xl/worksheets/sheet1.xml": CELL.format(99).encode()}),
            id="a text that is not there",
        ),
        pytest.param(
            repacked({"xl/worksheets/sheet1.xml": CELL.format("x").encode()}),
            id="a text without a number",
        ),
        pytest.param(
            repacked({"xl/worksheets/sheet1.xml": CELL.format(-1).encode()}),
            id="a text before the first",
        ),
        pytest.param(flagged(workbook(BOOK), 8, b"\x01\x00"), id="encrypted"),
        pytest.param(flagged(workbook(BOOK), 10, b"\x63\x00"), id="packed by an unknown method"),
        pytest.param(damaged(), id="damaged"),
        pytest.param(repacked({"xl/worksheets/sheet1.xml": b"<worksheet>"}), id="cut off"),
    ],
)
def test_a_broken_workbook_is_named_with_what_to_do(data: bytes) -> None:
    with pytest.raises(UnreadableResultError, match=r"book\.xlsx is a broken workbook: .+; save the sheet as CSV"):
        tables_of("book.xlsx", data, str)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(flagged(workbook(BOOK), 6, b"\x63\x00"), id="a newer zip"),
        pytest.param(flagged(flagged(workbook(BOOK), 9, b"\x08"), 46, b"\xff"), id="a name that is not UTF-8"),
        pytest.param(workbook(BOOK)[:-30], id="cut off"),
    ],
)
def test_an_archive_whose_directory_cannot_be_read_is_no_workbook(data: bytes) -> None:
    assert not is_workbook(data)
