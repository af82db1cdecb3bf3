"""Files on which each code is found, files on which none is, and two judges that say the same of all of them."""

import gzip
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bench.audit.judge import Judged
from bench.audit.rules import CLAIM_RULES
from bench.errors import UsageError
from tests.warehouse.importers.reading import SAMPLES
from warehouse.audit import Audit, AuditOptions, audit
from warehouse.importers.parsing.document import BYTES_MAX

DATA = Path(__file__).parents[1] / "data"
CONTEXT = ".context.toml"
SERVE = DATA / "vllm-results" / "vllm_bench_serve.json"


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    kept = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix not in (".py", ".md", ".pyc"))
    return [path for path in kept if not path.name.endswith(CONTEXT) and path.parent.name != "__pycache__"]


# A file of several parts is a folder: what is expected of it stands in the folder's name.
BAD = sorted({DATA / "audit" / path.relative_to(DATA / "audit").parts[0] for path in _files(DATA / "audit")})
GOOD = _files(DATA / "good")


def _codes(found: Audit) -> set[str]:
    return {f.code for each in found.judged for f in each.findings if f.status in ("WARN", "FAIL")}


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.name)
def test_what_is_wrong_with_a_file_is_found(path: Path) -> None:
    code = path.name.split(".", maxsplit=1)[0].split("-", maxsplit=1)[0]

    assert code in _codes(audit([str(path)], AuditOptions()))


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name)
def test_a_good_file_raises_no_doubt(path: Path) -> None:
    found = audit([str(path)], AuditOptions())

    assert (_codes(found), [each.verdict for each in found.judged]) == (set(), ["accepted"] * len(found.judged))


def test_great_expectations_says_of_every_file_what_the_audit_says() -> None:
    paths = [str(path) for path in (*BAD, *GOOD, *_files(DATA / "vllm-results"))]

    direct, by_gx = audit(paths, AuditOptions()), audit(paths, AuditOptions(use_gx=True))

    assert len(direct.judged) >= len(paths)
    assert [_told(each) for each in direct.judged] == [_told(each) for each in by_gx.judged]


def _told(judged: Judged) -> tuple[str, str, list[tuple[str, str]]]:
    return judged.claim.lineage.file, judged.verdict, [(each.column, each.status) for each in judged.findings]


# What a sample of a real tool is too small for: true, and no false alarm.
TOO_SMALL = {"duration_short", "too_few_prompts", "tail_unsupported"}


# Real results of our own, and others where they are at hand.
REAL = {path.name: path for path in (*_files(SAMPLES), *_files(DATA / "vllm-results"))}


@pytest.mark.parametrize("name", [name for name in REAL if "schema" not in name and "example" not in name])
def test_a_real_file_raises_no_false_alarm(name: str) -> None:
    found = audit([str(REAL[name])], AuditOptions())

    assert found.judged
    assert {f.code for each in found.judged for f in each.findings if f.status == "FAIL"} <= TOO_SMALL


BROKEN: dict[str, tuple[bytes, str]] = {
    "empty.json": (b"", "is empty"),
    "blank.json": (b" \n ", "is empty"),
    "text.json": (b"hello", "has no known format"),
    "truncated.json": (b'{"date": "2026', "line 1 column 10"),
    "twins.json": (b'{"duration": 1, "duration": 2}', "'duration' occurs twice"),
    "list.json": (b"[]", "has no known format"),
    "deep.json": (b"[" * 200_000, "is not valid JSON"),
    "binary.bin": (b"\x80\x81\x82", "is not text: byte 0"),
    "broken.json.gz": (gzip.compress(b"{}")[:-9], "is a broken gzip file"),
    "unknown.json": (b'{"a": 1}', "has no known format"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_a_sentence_that_names_it(name: str, tmp_path: Path) -> None:
    content, said = BROKEN[name]
    (tmp_path / name).write_bytes(content)

    (judged,) = audit([str(tmp_path / name)], AuditOptions()).judged

    assert judged.verdict == "failed"
    assert said in judged.findings[0].message
    assert name in judged.findings[0].message


def test_a_zip_archive_is_named_as_one(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "results.zip", "w") as archive:
        archive.writestr("a.json", "{}")

    (judged,) = audit([str(tmp_path / "results.zip")], AuditOptions()).judged

    assert "results.zip is a zip archive" in judged.findings[0].message


def test_a_file_too_large_for_memory_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(BYTES_MAX * 2)

    (judged,) = audit([str(tmp_path / "large.json")], AuditOptions()).judged

    assert "large.json has 2.15 GB, the limit is 1.07 GB" in judged.findings[0].message


def test_a_small_file_that_unpacks_to_a_large_one_is_not_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "bomb.json.gz", "wb", compresslevel=9) as file:
        for _ in range(BYTES_MAX // (1 << 24) + 1):
            file.write(bytes(1 << 24))

    (judged,) = audit([str(tmp_path / "bomb.json.gz")], AuditOptions()).judged

    assert "the limit is 1.07 GB" in judged.findings[0].message


def test_half_a_character_in_a_name_is_shown_as_a_question_mark(tmp_path: Path) -> None:
    result = json.loads(SERVE.read_bytes()) | {"model_id": "half \ud83d"}
    (tmp_path / "half.json").write_text(json.dumps(result))

    argv = [str(Path(sys.executable).with_name("nightbench")), "audit", str(tmp_path / "half.json")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert "half.json half ?" in done.stdout
    assert done.stderr == ""


def test_one_bad_file_stops_no_other(tmp_path: Path) -> None:
    (tmp_path / "a-broken.json").write_bytes(b'{"cut')
    (tmp_path / "b.json").write_bytes(SERVE.read_bytes())
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(SERVE.read_bytes()))
    (tmp_path / "notes.txt").write_text("a note")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n")

    found = audit([str(tmp_path)], AuditOptions())

    assert [Path(each.claim.lineage.file).name for each in found.judged] == ["a-broken.json", "b.json", "c.json.gz"]
    assert found.judged[0].findings[0].code == "unreadable"
    one, other = ([(f.column, f.observed) for f in each.findings if f.scope != "group"] for each in found.judged[1:])
    assert one == other
    assert sorted(why.rsplit("/", maxsplit=1)[-1].split(" ")[0] for why in found.left_out) == [
        "notes.txt",
        "picture.png",
    ]


def test_standard_input_is_a_file_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SERVE.read_bytes())))

    (judged,) = audit(["-"], AuditOptions()).judged

    assert judged.claim.lineage.file == "standard input"


def test_only_one_class_can_be_asked_for() -> None:

    (judged,) = audit([str(SERVE)], AuditOptions(only="arithmetic")).judged

    assert {finding.family for finding in judged.findings} == {"arithmetic"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpuu = 'H100'", "'gpuu' is not a known key; the nearest key is 'gpu'"),
        ("tp_size = 1.5", "tp_size = 1.5 has the wrong type: give a whole number"),
        ("tp = 'eight'", "tp = 'eight' has the wrong type: give a whole number"),
        ("tp = 8\ntp_size = 4", "'tp_size' is there twice, under two names: keep one"),
        ("weights_source = 'guess'", "give one of 'log', 'index', 'device'"),
        ("= 1", "cannot be read"),
    ],
)
def test_a_wrong_context_file_is_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(b"{}")
    (tmp_path / "context.toml").write_text(text)

    with pytest.raises(UsageError, match=r"context\.toml") as raised:
        audit([str(tmp_path / "results.json")], AuditOptions())

    assert said in str(raised.value)


def test_a_context_file_says_what_the_result_does_not(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(SERVE.read_bytes())
    (tmp_path / "r.context.toml").write_text('gpu = "MI300X"\nweights_gb = 16\nusd_per_hour = 2')

    (judged,) = audit([str(tmp_path / "r.json")], AuditOptions()).judged

    asked = judged.claim.asked
    assert (asked.gpu, asked.usd_per_hour, round(asked.weights_gib or 0, 3)) == ("MI300X", 2.0, 14.901)


@pytest.mark.parametrize("which", [".", "results.json"])
def test_a_context_file_of_another_file_is_named_and_a_used_one_is_not(which: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(SERVE.read_bytes())
    (tmp_path / "results.context.toml").write_text('gpu = "MI300X"')
    (tmp_path / "resultss.context.toml").write_text('gpu = "H100 SXM"')

    found = audit([str(tmp_path / which)], AuditOptions())

    assert [each.claim.asked.gpu for each in found.judged] == ["MI300X"]
    (said,) = found.left_out
    assert said.startswith(f"{tmp_path}/resultss.context.toml applies to no file: none beside it is named resultss.*")
    assert said.endswith("; rename it to results.context.toml if it is for results.json")


def test_a_context_file_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "context.toml").write_text('gpu = "MI300X"')

    with pytest.raises(UsageError, match="is a context file and no result: pass the result beside it"):
        audit([str(tmp_path / "context.toml")], AuditOptions())


def test_the_command_prints_json_that_the_reference_describes() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "audit-json.md").read_text(encoding="utf-8")
    from flows.cli.audit import as_values  # noqa: PLC0415

    (judged,) = audit([str(SERVE)], AuditOptions()).judged

    values = json.loads(json.dumps(as_values(judged), allow_nan=False))

    assert [name for name in (*values, *values["findings"][0]) if f"`{name}`" not in page] == []


# No format that is read says these: unit tests of the evidence see them fire.
NOT_IN_FILES = {
    # Samples are of devices by name, and so is what aiperf and InferenceX sum up: nobody else tells joules.
    "energy_attribution": "every format that tells energy says that it is of the GPUs",
    # Telemetry begins when the engine holds its own weights already, which look like anybody's.
    "clock_drop": "no format that is read tells clocks and utilisation, second by second",
    "gpu_errors": "no format tells the errors that the kernel logged during a load",
    "gpu_not_clean": "no format tells memory from before the engine, and our nights refuse such a GPU unmeasured",
}


def test_every_code_is_found_in_some_file_or_says_why_not() -> None:
    in_files = {path.name.split(".", maxsplit=1)[0].split("-", maxsplit=1)[0] for path in BAD}

    assert {rule.code for rule in CLAIM_RULES} - in_files == set(NOT_IN_FILES)


def test_an_audit_starts_without_what_only_other_commands_need() -> None:
    # Pydantic reads the catalogue's cells (ADR 18), and Typer has imported it by then.
    slow = {"pydantic_settings", "pandas", "pyarrow", "duckdb", "prefect", "great_expectations"}
    code = "import sys, flows.cli, warehouse.audit; print(*sys.modules)"

    found = subprocess.run(
        [sys.executable, "-c", code], cwd=DATA.parents[1], capture_output=True, text=True, check=True
    )

    assert slow.isdisjoint(found.stdout.split())
