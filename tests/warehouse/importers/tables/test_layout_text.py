"""PDFs: the tables of what pdftotext writes, and what is said where it is not installed."""

import os
import shutil
from pathlib import Path

import pytest

from bench.errors import UnknownFormatError, UnreadableResultError
from warehouse.importers import read_claims
from warehouse.importers.parsing.document import read_document
from warehouse.importers.tables.layout import tables_of_layout
from warehouse.importers.tables.table import Table

# As pdftotext 22.12 -layout writes the PDF below.
LAYOUT = """Throughput on one MI300X, 1024 in and 1024 out. All runs used the same image and the same
settings.

Table 1: Results on MI300X

                                                   Output               Mean TTFT
Model                     Precision                tok/s                (ms)
Llama 3.1 8B              FP8                      2,400.5              95

Llama 3.1 70B             BF16                     410                  1,020
Qwen3 32B                 FP8                                           340


The rest of the report is prose again, and has no numbers in columns.\f
"""
ROWS = [
    ["", "", "Output", "Mean TTFT"],
    ["Model", "Precision", "tok/s", "(ms)"],
    ["Llama 3.1 8B", "FP8", "2,400.5", "95"],
    ["Llama 3.1 70B", "BF16", "410", "1,020"],
    ["Qwen3 32B", "FP8", "", "340"],
]
FONT = "/F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
TABLE = [
    ("Llama 3.1 8B", "FP8", "2,400.5", "95"),
    ("Llama 3.1 70B", "BF16", "410", "1,020"),
    ("Qwen3 32B", "FP8", "", "340"),
]


def pdf() -> bytes:
    """A page with a caption and these rows, each cell placed by itself."""
    placed = [(72, 690, "Table 1: Results on MI300X")]
    placed += [
        (left, 670 - 14 * down, cell.replace("(", r"\(").replace(")", r"\)"))
        for down, row in enumerate(ROWS)
        for left, cell in zip((72, 180, 280, 380), row, strict=True)
        if cell
    ]
    shown = "BT /F1 9 Tf\n" + "".join(f"1 0 0 1 {x} {y} Tm ({text}) Tj\n" for x, y, text in placed) + "ET"
    parts = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << {FONT} >> >> >>",
        f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream",
    ]
    text, places = "%PDF-1.4\n", ""
    for number, part in enumerate(parts, start=1):
        places += f"{len(text):010d} 00000 n \n"
        text += f"{number} 0 obj\n{part}\nendobj\n"
    count = len(parts) + 1
    end = f"trailer << /Size {count} /Root 1 0 R >>\nstartxref\n{len(text)}\n%%EOF\n"
    return f"{text}xref\n0 {count}\n0000000000 65535 f \n{places}{end}".encode()


def the_table(found: list[Table]) -> Table:
    (table,) = found
    return table


def test_columns_that_spaces_hold_apart_are_a_table_with_its_caption() -> None:
    table = the_table(tables_of_layout("a.pdf", LAYOUT))

    assert table.header == ("Model", "Precision", "Output tok/s", "Mean TTFT (ms)")
    assert [row.cells for row in table.rows] == TABLE
    assert [row.line for row in table.rows] == [8, 10, 11]
    assert table.caption == "Table 1: Results on MI300X"


def test_pages_in_two_columns_are_no_table() -> None:
    prose = "The engine keeps each request in its queue     until the scheduler has room, which takes long\n"

    assert tables_of_layout("a.pdf", prose * 20) == []


def test_a_line_of_thousands_of_parts_ends() -> None:
    assert tables_of_layout("a.pdf", ("1  " * 50_000 + "\n") * 2) == []


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext on PATH")
def test_a_pdf_is_read_by_its_layout() -> None:
    document = read_document("a.pdf", pdf())

    assert [row.cells for row in the_table(document.tables).rows] == TABLE
    assert [claim.asked.gpu for claim in read_claims(document)] == ["MI300X"] * 3


def _tool(folder: Path, script: str) -> None:
    (folder / "pdftotext").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "pdftotext").chmod(0o755)


def test_the_layout_of_a_pdf_comes_from_the_tool_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out.txt").write_text(LAYOUT)
    _tool(tmp_path, f"cat > {tmp_path}/in.pdf; cat {tmp_path}/out.txt")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    claims = list(read_claims(read_document("a.pdf", pdf())))

    assert [claim.said.output_throughput_tok_per_s for claim in claims] == [2400.5, 410.0, None]
    assert (tmp_path / "in.pdf").read_bytes() == pdf()


@pytest.mark.parametrize(
    ("script", "error", "said"),
    [
        (
            "",
            UnknownFormatError,
            "a.pdf is a PDF, and pdftotext, which reads it, is not on PATH: install",
        ),
        ("cat > /dev/null", UnknownFormatError, "a.pdf has no text, only pictures of pages"),
        (
            "echo 'Syntax Error: no xref' >&2; exit 1",
            UnreadableResultError,
            "a.pdf is a broken PDF: Syntax Error",
        ),
    ],
)
def test_a_pdf_that_cannot_be_read_is_told_why(
    script: str, error: type[Exception], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script:
        _tool(tmp_path, script)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin" if script else str(tmp_path))

    with pytest.raises(error, match=said):
        read_document("a.pdf", pdf())
