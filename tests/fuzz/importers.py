"""Fuzz what reads and judges foreign files: only claims may come of bytes, or UnreadableResultError.

`make fuzz SECONDS=600` installs atheris beside the locked environment and starts from every file under tests/data.
"""

import sys
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["warehouse.importers", "warehouse.rows.claim_request_rows", "bench.audit.evidence"]
):
    from bench.errors import UnreadableResultError
    from tests.bench.judging import judge_claims
    from warehouse.importers import read_claims
    from warehouse.importers.parsing.document import read_document
    from warehouse.rows.catalog_subject import subject_of
    from warehouse.rows.claim_request_rows import request_tables

DATA = Path(__file__).parents[1] / "data"
ENDINGS = (".json", ".jsonl", ".csv", ".yaml", ".txt", ".log", ".gz", ".md", ".html", ".xlsx")
SEED_BYTES_MAX = 20_000
PARTED = b"PAR1"
# The names under which a file's bytes find those beside it, and those under which they are found.
PAIRS = {
    "profile_export_aiperf.json": "profile_export.jsonl",
    "stage_0_lifecycle_metrics.json": "stage_0_prometheus_metrics.json",
}


def judge_bytes(data: bytes) -> None:
    """Read and judge a file of these bytes, with another beside it, and make rows of its requests."""
    # A Parquet file's magic parts the two: it is the beginning of nothing that is read.
    own, _, other = data.partition(PARTED)
    for name, beside in PAIRS.items():
        files = {name: own, beside: other}
        with suppress(UnreadableResultError):
            claims = list(read_claims(read_document(name, own, files.get, tuple(files))))
            judge_claims(claims, subject_of)
            for claim in claims:
                for rows in request_tables("import-fuzzed/0", claim):
                    rows.validate()


def seed(corpus: Path) -> None:
    """Put every small data file into the corpus."""
    corpus.mkdir(parents=True, exist_ok=True)
    for path in DATA.rglob("*"):
        if path.suffix in ENDINGS and path.stat().st_size <= SEED_BYTES_MAX:
            (corpus / "-".join(path.relative_to(DATA).parts)).write_bytes(path.read_bytes())
    for name, beside in PAIRS.items():
        for folder in {path.parent for path in DATA.rglob(name) if (path.parent / beside).is_file()}:
            # The first lines of the second file are enough to be led astray by.
            head = b"".join((folder / beside).read_bytes().splitlines(keepends=True)[:9])
            seeded = (folder / name).read_bytes() + PARTED + head
            (corpus / f"{folder.name}-{name}-pair").write_bytes(seeded)


if __name__ == "__main__":
    seed(Path(sys.argv[-1]))
    atheris.Setup(sys.argv, judge_bytes)
    atheris.Fuzz()
