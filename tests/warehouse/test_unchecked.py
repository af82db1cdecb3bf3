"""A row of which nothing could be checked is never accepted, and the audit says what is missing."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.errors import UsageError
from flows.cli import app
from tests.warehouse.importers.reading import TABLES, folder_and_name
from tests.warehouse.test_audit_files import SERVE
from warehouse.audit import AuditOptions, audit

HEAD = "source,gpu,gpu_count,tp,model,precision,isl,osl,concurrency_or_batch,metric,value,unit\n"
# A GPU that no catalogue has, so that the row stays without physics.
ROW = "vendor,Unknown GPU 80GB,1,1,meta-llama/Llama-3.3-70B-Instruct,FP16,128,2048,1,output_throughput,2800,tok/s\n"
KNOWN = ROW.replace("Unknown GPU 80GB", "H100 SXM")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "claims.csv"
    path.write_text(HEAD + ROW)
    return path


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["audit", *arguments])
    return done.exit_code, done.output


def test_a_number_held_against_nothing_is_unchecked(table: Path) -> None:
    (judged,) = audit([str(table)], AuditOptions()).judged

    assert judged.verdict == "unchecked"
    assert judged.coverage.unchecked == ("output_throughput_tok_per_s",)
    assert judged.coverage.needs[0] == "the GPU 'Unknown GPU 80GB' is not in the catalogue: pass --gpu"


def test_an_impossible_number_is_rejected_and_not_unchecked(table: Path) -> None:
    table.write_text(HEAD + KNOWN)

    (judged,) = audit([str(table)], AuditOptions()).judged

    assert (judged.verdict, judged.coverage.unchecked) == ("rejected", ())


def test_a_model_that_fits_in_memory_checks_no_number(table: Path) -> None:
    table.write_text(HEAD + KNOWN.replace("output_throughput,2800,tok/s", "quality,0.9,").replace(",FP16,", ",FP8,"))

    (judged,) = audit([str(table)], AuditOptions()).judged

    assert judged.verdict == "unchecked"


def test_the_exit_code_is_1_unless_unchecked_rows_are_allowed(table: Path) -> None:
    assert run(str(table))[0] == 1
    assert run(str(table), "--allow-unchecked")[0] == 0


def test_an_allowed_unchecked_row_hides_no_failed_rule(table: Path) -> None:
    table.write_text(HEAD + ROW + KNOWN)

    assert run(str(table), "--allow-unchecked")[0] == 1


def test_the_summary_counts_numbers_and_names_what_is_missing(table: Path) -> None:
    table.write_text(HEAD + ROW + ROW.replace(",1,output_throughput", ",2,output_throughput"))

    _, said = run(str(table))

    assert "2 judged, 0 accepted, 2 unchecked" in said
    assert "2 numbers read, 0 checked" in said
    assert "to check the rest: the GPU 'Unknown GPU 80GB' is not in the catalogue: pass --gpu (2 rows)" in said
    reasons = [
        line for line in said.splitlines() if line.startswith("  not checkable: ") and "roofline_compute" in line
    ]
    assert len(reasons) == 2
    assert all(line.endswith(": the GPU 'Unknown GPU 80GB' is not in the catalogue: pass --gpu") for line in reasons)


def test_a_row_of_which_no_number_was_read_says_so_and_needs_nothing(table: Path) -> None:
    table.write_text(HEAD + ROW.replace("output_throughput,2800,tok/s", "happiness,9,smiles"))

    code, said = run(str(table))

    assert (code, "0 numbers read, 0 checked\n1 row without a number that could be read" in said) == (1, True)
    assert "to check the rest" not in said


def test_json_says_the_same_of_each_row(table: Path) -> None:
    (row,) = json.loads(run(str(table), "--json")[1])

    assert row["verdict"] == "unchecked"
    assert row["numbers"] | {"needs": []} == {
        "read": 1,
        "checked": 0,
        "unchecked": ["output_throughput_tok_per_s"],
        "needs": [],
    }
    assert row["numbers"]["needs"][0] == "the GPU 'Unknown GPU 80GB' is not in the catalogue: pass --gpu"


def test_the_rules_of_one_class_leave_the_coverage_as_it_is() -> None:
    whole, part = (audit([str(SERVE)], AuditOptions(only=only)).judged[0] for only in (None, "money"))

    assert part.coverage == whole.coverage
    assert part.verdict != "unchecked"


@pytest.mark.parametrize("path", TABLES, ids=folder_and_name)
def test_no_published_row_is_accepted_of_which_nothing_was_checked(path: Path) -> None:
    found = audit([str(path)], AuditOptions())

    believed = [each for each in found.judged if each.verdict in ("accepted", "suspect")]
    assert believed
    assert [each.claim.label for each in believed if not each.coverage.checked] == []
    assert any(each.verdict == "unchecked" for each in found.judged)


def test_what_was_not_read_is_named_with_its_nearest_in_text_and_in_json(table: Path) -> None:
    head = HEAD.replace("\n", ",kv_dtyp\n")
    metric = ROW.replace("output_throughput,2800,tok/s", "Thruput,2800,tok/s,fp8")
    value = ROW.replace("2800,tok/s", '"33,1",tok/s,').replace(",1,output", ",2,output")
    table.write_text(head + metric + value)

    _, said = run(str(table))
    rows = json.loads(run(str(table), "--json")[1])

    assert [line for line in said.splitlines() if line.startswith("not read: ")] == [
        "not read: column 'kv_dtyp' = 'fp8': its name is not in catalog/spellings.csv; nearest: 'kv_cache_dtype'",
        "not read: metric 'Thruput' = '2800 tok/s': its name is not in catalog/spellings.csv; nearest: 'Throughput'",
        (
            "not read: value 'output_throughput' = '33,1 tok/s': its comma may stand for a decimal point or for"
            " thousands: write 33.1 or 1,234"
        ),
    ]
    assert [each["name"] for row in rows for each in row["not_read"]] == ["kv_dtyp", "Thruput", "output_throughput"]
    assert rows[0]["not_read"][0]["nearest"] == "kv_cache_dtype"


@pytest.mark.parametrize("header", ["metric,value,unit\n", "Model,TTFT (ms)\n"])
def test_a_table_without_a_row_is_unreadable(header: str, table: Path) -> None:
    table.write_text(header)

    code, said = run(str(table))

    assert (code, "has a header and no row: add the measurements below it" in said) == (1, True)


def test_a_row_of_a_wide_table_without_a_number_is_unchecked(table: Path) -> None:
    table.write_text("Model,TTFT (ms),Odd\nm,,5\n")

    code, said = run(str(table))

    assert (code, "1 judged, 0 accepted, 1 unchecked\n0 numbers read, 0 checked" in said) == (1, True)
    assert "not read: column 'Odd' = '5'" in said


@pytest.mark.parametrize(
    ("option", "value", "near"),
    [
        ("--gpu", "MI300", "MI300X"),
        ("--model", "meta-llama/Llama-3.3-71B", "Llama-3.3-70B"),
        ("--precision", "fp9", "fp8"),
    ],
)
def test_an_option_that_the_catalogue_lacks_names_the_nearest(table: Path, option: str, value: str, near: str) -> None:
    failed = CliRunner().invoke(app, ["audit", str(table), option, value]).exception

    assert isinstance(failed, UsageError)
    assert str(failed).startswith(f"{option} '{value}' is not in the catalogue; the nearest names are: ")
    assert near in str(failed)


@pytest.mark.parametrize(
    ("printed", "unknown", "said"),
    [
        ("H100 SXM", "MI301X", "gpu 'MI301X' is not in the catalogue (nearest: MI3"),
        (
            "Llama-3.3-70B",
            "Llama-3.3-71B",
            "model 'meta-llama/Llama-3.3-71B-Instruct' is not in the catalogue (nearest: Lla",
        ),
        ("FP16", "FP17", "precision 'fp17' is not in the catalogue (nearest: fp"),
    ],
)
def test_a_printed_name_that_the_catalogue_lacks_names_the_nearest_on_the_line_of_the_verdict(
    table: Path, printed: str, unknown: str, said: str
) -> None:
    table.write_text(HEAD + KNOWN.replace(printed, unknown))

    first = run(str(table))[1].splitlines()[0]

    assert first.startswith(("accepted", "suspect", "rejected", "unchecked"))
    assert said in first


def test_an_option_that_names_several_cards_is_no_error(table: Path) -> None:
    assert run(str(table), "--gpu", "H100")[0] == 1


def test_an_ambiguous_gpu_is_rejected_where_no_card_of_the_name_can_do_it(table: Path) -> None:
    table.write_text(HEAD + ROW.replace("Unknown GPU 80GB", "NVIDIA H100 80GB"))

    (judged,) = audit([str(table)], AuditOptions()).judged

    assert judged.verdict == "rejected"
    assert any(
        "above 100% under every reading: H100-SXM 165%, H100-PCIe 165%" in each.message for each in judged.findings
    )
