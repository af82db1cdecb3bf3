"""Files as the importers see them, with what lies beside them."""

from pathlib import Path

from bench.audit.claim import Claim
from bench.audit.evidence.evidence import Subject
from tests.bench.judging import judge_claims
from warehouse.importers import read_claims
from warehouse.importers.parsing.document import Document, read_document
from warehouse.suite_report.published_rows import SEEDS

FORMATS = Path(__file__).parents[2] / "data/formats"
# Files of others, which are not ours to publish. Each test of them runs on a twin too, so that every clone runs it.
SHARED = Path(__file__).parents[3] / "../shared/data"
SAMPLES = SHARED / "samples"


def at_hand(*paths: Path) -> list[Path]:
    """Those of these files that are here, in their order: the twins always, the files of others in few clones."""
    return [path for path in paths if path.is_file()]


# Tables of published numbers: the catalogue's, a twin, and those of others.
OTHERS = SHARED / "published/others.csv"
TABLES = [SEEDS, FORMATS.with_name("published") / "others.csv", *at_hand(OTHERS)]


def folder_and_name(path: Path) -> str:
    """A file as the name of its test's case says it."""
    return f"{path.parent.name}/{path.name}"


def document_at(path: Path) -> Document:
    def beside(name: str) -> bytes | None:
        other = path.parent / name
        return other.read_bytes() if other.is_file() else None

    return read_document(path.name, path.read_bytes(), beside, sorted(each.name for each in path.parent.iterdir()))


def claims_at(path: Path) -> list[Claim]:
    return list(read_claims(document_at(path)))


def claims_of(name: str, text: str, **beside: str) -> list[Claim]:
    """The claims of a text; the files beside it by their name, `__` for a point."""
    others = {each.replace("__", "."): content.encode() for each, content in beside.items()}
    return list(read_claims(read_document(name, text.encode(), others.get, sorted([name, *others]))))


def alarms(claims: list[Claim]) -> list[str]:
    """What is WARN or FAIL of these, as a person reads it."""
    return [
        f"{finding.status} {finding.code}: {finding.message}"
        for judged in judge_claims(claims, lambda _claim: Subject())
        for finding in judged.findings
        if finding.status in ("WARN", "FAIL")
    ]
