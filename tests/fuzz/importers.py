"""Fuzz what reads and judges foreign files: only claims may come of bytes, or UnreadableResultError.

`make fuzz SECONDS=600` installs atheris beside the locked environment and starts from every file under tests/data.
"""

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["warehouse.importers", "bench.evidence"]):
    from bench.errors import UnreadableResultError
    from bench.judging import judge_claims
    from warehouse.importers import read_claims
    from warehouse.importers.document import read_document
    from warehouse.subject import subject_of

DATA = Path(__file__).parents[1] / "data"
ENDINGS = (".json", ".jsonl", ".csv", ".yaml", ".txt", ".gz")
SEED_BYTES_MAX = 20_000


def judge_bytes(data: bytes) -> None:
    """Read and judge a file of these bytes."""
    try:
        judge_claims(list(read_claims(read_document("fuzzed", data))), subject_of)
    except UnreadableResultError:
        return


def seed(corpus: Path) -> None:
    """Put every small data file into the corpus."""
    corpus.mkdir(parents=True, exist_ok=True)
    for path in DATA.rglob("*"):
        if path.suffix in ENDINGS and path.stat().st_size <= SEED_BYTES_MAX:
            (corpus / "-".join(path.relative_to(DATA).parts)).write_bytes(path.read_bytes())


if __name__ == "__main__":
    seed(Path(sys.argv[-1]))
    atheris.Setup(sys.argv, judge_bytes)
    atheris.Fuzz()
