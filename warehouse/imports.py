"""Import other tools' result files: keep their bytes by SHA-256, judge their claims, and write rows.

`imports/<sha256>/` holds the original file, the neighbouring files that were read with it, and import.json with its
name and the context that the user passed. Importing a file again changes nothing; a rebuild reads these copies.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals
from bench.audit.judge import Judged, group_evidence, judge_claim, row_evidence
from bench.errors import UnreadableResultError
from nights.durable import make_folder, sync_all, write_bytes, write_json
from warehouse.context import context_of, in_context
from warehouse.histories import kept_histories, stage_histories
from warehouse.importers import read_claims
from warehouse.importers.parsing.document import Document, read_document, too_large_for_memory
from warehouse.importers.parsing.error_text import storable
from warehouse.judging.expectations import said_of_each
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import IMPORTS, STAGING, PartWriter, one_loader, write_rows, writing
from warehouse.lake.swap import moves_of_import, swap_in
from warehouse.rows.catalog_subject import subject_of
from warehouse.rows.claim_request_rows import request_tables
from warehouse.rows.finding_row import finding_row
from warehouse.rows.units import MS_PER_S
from warehouse.schema.claim_columns import DEVICE_FIELDS, METRICS, STATISTICS
from warehouse.schema.columns import withdrawn_columns
from warehouse.schema.row import Row

RAW, ABOUT, BESIDE = "raw", "import.json", "beside"


@dataclass(frozen=True)
class Imported:
    """The result of importing one file."""

    name: str
    sha256: str
    judged: tuple[Judged, ...]
    is_new: bool


def partition_of(sha256: str) -> str:
    """The lake's partition of an import."""
    return f"import-{sha256[:16]}"


def import_file(data: Path, path: Path) -> Imported:
    """Import a file: keep its bytes, judge its claims and add them to the warehouse.

    Raises UnreadableResultError if the file cannot be read; then nothing is kept.
    """
    read: dict[str, bytes] = {}
    raw = _bytes_of(path)
    document = _document(str(path), raw, path.parent, read)
    context = context_of(path, ClaimedConfig())
    with writing(data / IMPORTS), one_loader(data) as lake:
        judged = _stage(lake / STAGING, document, context)
        is_new = not (data / IMPORTS / document.sha256 / ABOUT).exists()
        folder = data / IMPORTS / STAGING / document.sha256
        _stage_copy(folder, document, context, {RAW: raw} | _beside(read))
        swap_in(lake, imported=moves_of_import(folder))
        build_warehouse(data)
    return Imported(str(path), document.sha256, judged, is_new)


def stage_imports(data: Path, staging: Path) -> None:
    """Write every kept import and history into the staging folder."""
    for about in _kept(data):
        told = json.loads(about.read_bytes())
        document = _document(told["name"], (about.parent / RAW).read_bytes(), about.parent / BESIDE, {})
        _stage(staging, document, ClaimedConfig(**told["context"]))
    stage_histories(data, staging)


def kept_partitions(data: Path) -> set[str]:
    """The lake's partitions of the imports and histories that this data folder keeps."""
    return {partition_of(about.parent.name) for about in _kept(data)} | kept_histories(data)


def _kept(data: Path) -> list[Path]:
    """The description of every kept import, sorted."""
    return sorted(each for each in (data / IMPORTS).glob(f"*/{ABOUT}") if not each.parent.name.startswith("."))


def _bytes_of(path: Path) -> bytes:
    try:
        too_large_for_memory(str(path), path.stat().st_size)
        return path.read_bytes()
    except OSError as error:
        raise UnreadableResultError(f"{path} cannot be read: {error.strerror}") from error


def _document(name: str, raw: bytes, folder: Path, read: dict[str, bytes]) -> Document:
    """The document; it records in `read` which neighbouring files it used."""

    def sibling(other: str) -> bytes | None:
        beside = folder / Path(other).name
        if not beside.is_file():
            return None
        read[beside.name] = _bytes_of(beside)
        return read[beside.name]

    names = sorted(each.name for each in folder.iterdir() if each.is_file()) if folder.is_dir() else []
    return read_document(name, raw, sibling, names)


def _beside(read: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{BESIDE}/{name}": content for name, content in read.items()}


def _stage_copy(folder: Path, document: Document, context: ClaimedConfig, files: dict[str, bytes]) -> None:
    """Keep exactly the bytes that were hashed and judged, and what the user passed with them."""
    make_folder(folder / BESIDE)  # also an empty one, which replaces that of an earlier import
    for name, content in files.items():
        write_bytes(folder / name, content)
    said = {name: value for name, value in asdict(context).items() if value is not None}
    write_json(folder / ABOUT, {"name": document.name, "sha256": document.sha256, "context": said})
    sync_all(folder.parent)


def _stage(staging: Path, document: Document, context: ClaimedConfig) -> tuple[Judged, ...]:
    """Write every row of a file into the staging folder; raises UnreadableResultError if it cannot be read."""
    partition = partition_of(document.sha256)
    with PartWriter(staging, "claim_requests", partition) as requests:
        judged = _judge(_told(document, context, requests))
    rows = [_storable(_claim_row(partition, at, each)) for at, each in enumerate(judged)]
    write_rows(staging, "claims", partition, rows)
    write_rows(staging, "claim_findings", partition, [_storable(row) for row in _finding_rows(partition, judged)])
    return judged


def _told(document: Document, context: ClaimedConfig, requests: PartWriter) -> Iterator[Claim]:
    """Every claim of a file with the user's context; writes the claim's requests."""
    partition = partition_of(document.sha256)
    for at, said in enumerate(read_claims(document)):
        for rows in request_tables(f"{partition}/{at}", said):
            requests.add(rows)
        yield in_context(said, context)


def _judge(told: Iterator[Claim]) -> tuple[Judged, ...]:
    """Judge these claims with great-expectations, including evidence that compares several of them."""
    claims: list[Claim] = []
    evidence = []
    for claim in told:
        evidence.append(row_evidence(claim, subject_of(claim)))
        claims.append(replace(claim, series=None))
    whole = [own | more for own, more in zip(evidence, group_evidence(claims), strict=True)]
    return tuple(
        judge_claim(claim, each, said) for claim, each, said in zip(claims, whole, said_of_each(whole), strict=True)
    )


def _storable(row: Row) -> Row:
    return {name: storable(value) if isinstance(value, str) else value for name, value in row.items()}


def _claim_row(partition: str, at: int, judged: Judged) -> Row:
    claim, lineage = judged.claim, judged.claim.lineage
    row = {
        "night": partition,
        "claim_id": f"{partition}/{at}",
        **asdict(lineage),
        **{name: getattr(claim, name) for name in ("label", "kind", "outcome")},
        "verdict": judged.verdict,
        **{each.name: getattr(claim.asked, each.name) for each in fields(ClaimedConfig)},
        **{each.name: getattr(claim.said, each.name) for each in fields(ClaimedTotals)},
        **{name: getattr(claim.device, name, None) for name in DEVICE_FIELDS},
        **_latencies(claim),
        "unread": json.dumps(claim.unread, sort_keys=True, default=str),
    }
    return row | {"withdrawn": withdrawn_columns("claims", row, judged.withdrawn)}


def _latencies(claim: Claim) -> dict[str, Any]:
    return {
        f"{metric}_{name}_ms": None
        if (value := claim.latency_s.get(metric, {}).get(statistic)) is None
        else value * MS_PER_S
        for metric in METRICS
        for statistic, name in STATISTICS.items()
    }


def _finding_rows(partition: str, judged: Sequence[Judged]) -> Iterator[Row]:
    for at, each in enumerate(judged):
        for finding in each.findings:
            yield {"night": partition, "claim_id": f"{partition}/{at}", **finding_row(finding)}
