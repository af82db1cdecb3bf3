"""What `nightbench audit` writes of a table for people and for GitHub, and how a header is explained to it."""

import os
import pty
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.errors import UsageError
from flows.cli import app, main

TABLE = (
    "Model,GPU,Precision,TP,ISL,OSL,Concurrency,Thr'put <b>,Mean TPOT (ms)\n"
    "Llama-3.1-70B,H100 SXM,fp16,1,1024,1024,1,240,4.1\n"
)
OURS = "Thr'put <b>=output_throughput[tok/s]"


def said(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["audit", *arguments])
    return done.exit_code, done.output


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vendor.csv").write_text(TABLE)
    return tmp_path / "vendor.csv"


@pytest.mark.parametrize("is_beside", [True, False])
def test_a_header_means_what_its_reader_says(table: Path, is_beside: bool) -> None:
    theirs, _, ours = OURS.partition("=")
    assert "1 numbers read" in said("vendor.csv")[1]

    if is_beside:
        table.with_name("vendor.context.toml").write_text(f'[columns]\n"{theirs}" = "{ours}"\n')
    output = said("vendor.csv", *([] if is_beside else ["--map", OURS]))[1]

    assert ("2 numbers read" in output, "not read" in output) == (True, False)


def test_a_person_at_a_terminal_is_asked_what_a_header_means_and_the_answer_is_kept(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table.write_text(TABLE.replace("Thr'put <b>", "Thruput (tok/s),Cards used").replace("240", "240,1"))
    table.with_name("vendor.context.toml").write_text('engine = "vllm"\n\n[columns] # known\n"Old" = "tp"\n')
    monkeypatch.setattr(sys, "argv", ["nightbench", "audit", "vendor.csv"])

    said_then = []
    for answer in ("happiness\nThroughput[tok/s]\nq\n", "q\n"):
        person, terminal = pty.openpty()
        os.write(person, answer.encode())
        with os.fdopen(terminal) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            with pytest.raises(SystemExit, match="1"):
                main()
        os.close(person)
        said_then.append(capsys.readouterr())

    kept = 'engine = "vllm"\n\n[columns] # known\n"Thruput (tok/s)" = "Throughput[tok/s]"\n"Old" = "tp"\n'
    assert table.with_name("vendor.context.toml").read_text() == kept
    assert "is not a metric or column of ours" in said_then[0].err
    assert ["2 numbers read" in each.out for each in said_then] == [True, True]


@pytest.mark.parametrize(("arguments", "is_asked"), [((), True), (("--no-ask",), False), (("--json",), False)])
def test_nothing_is_asked_of_a_program(
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    is_asked: bool,
) -> None:
    table.write_text(TABLE.replace("Thr'put <b>", "Thruput (tok/s)"))
    monkeypatch.setattr(sys, "argv", ["nightbench", "audit", "vendor.csv", *arguments])
    person, terminal = pty.openpty()
    os.write(person, b"\n")

    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(SystemExit, match="1"):
            main()
    os.close(person)

    assert ("What is it?" in capsys.readouterr().err) == is_asked
    assert not table.with_name("vendor.context.toml").exists()


@pytest.mark.parametrize(
    ("option", "said_of_it"),
    [
        ("Happiness", 'must have the form "their column=our metric[unit]"'),
        ("A=output_thruput[tok/s]", "is not a metric or column of ours; the nearest is"),
        ("A=output_throughput[ms]", "has no unit, or one of another metric"),
    ],
)
def test_a_name_that_is_not_ours_is_refused(table: Path, option: str, said_of_it: str) -> None:
    refused = CliRunner().invoke(app, ["audit", table.name, "--map", option]).exception

    assert isinstance(refused, UsageError)
    assert said_of_it in str(refused)


@pytest.mark.usefixtures("table")
def test_findings_are_annotations_of_their_line() -> None:
    code, output = said("vendor.csv", "--github")

    assert code == 1
    assert "::error file=vendor.csv,line=2,title=memory_fit::the claim needs 165%25 of the memory" in output


@pytest.mark.usefixtures("table")
def test_the_page_shows_the_table_with_the_arithmetic_on_its_cells(tmp_path: Path) -> None:
    said("vendor.csv", "--html", "page.html", "--map", OURS)

    page = (tmp_path / "page.html").read_text()
    assert "<th>Thr&#39;put &lt;b&gt;</th>" in page
    assert '<td class="wrong" title="roofline_bandwidth: the claim needs' in page
    assert "memory_fit: the claim needs 165% of the memory" in page
    assert "<script" not in page
    assert "<td>fp16</td>" in page


@pytest.mark.usefixtures("table")
def test_the_page_goes_into_a_pipe_which_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # the page fits in the pipe, so that nobody waits
    try:
        said("vendor.csv", "--html", "pipe")
        page = os.read(reader, 1 << 16)
    finally:
        os.close(reader)

    assert pipe.is_fifo()
    assert page.endswith(b"</html>\n")


@pytest.mark.usefixtures("table")
def test_the_page_is_written_to_the_file_that_a_symlink_names(tmp_path: Path) -> None:
    (tmp_path / "link.html").symlink_to("page.html")

    said("vendor.csv", "--html", "link.html")

    assert (tmp_path / "link.html").is_symlink()
    assert "<td>fp16</td>" in (tmp_path / "page.html").read_text()
