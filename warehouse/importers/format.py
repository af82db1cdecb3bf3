"""What an importer is: a format's name and version, how it is known by its content, and how it becomes claims."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.audit.claim import Claim, ClaimSource
from warehouse.importers.parsing.document import Document


@dataclass(frozen=True)
class Format:
    """One format of result files; `version` rises when the same bytes would become other claims.

    `recognises` raises nothing. `read` raises UnreadableResultError where the file is not what it looked like; what is
    wrong in one row is a remark on that row. `required` are the codes that must be checkable before a row of this
    format is accepted: what the format can always give.
    """

    name: str
    version: int
    recognises: Callable[[Document], bool]
    read: Callable[[Document, "Format"], Iterator[Claim]]
    required: frozenset[str] = frozenset()

    def lineage(
        self, document: Document, place: str = "", tool: str | None = None, version: str | None = None
    ) -> ClaimSource:
        """Where a claim of this document stands; `version` is that of the tool that wrote the file."""
        return ClaimSource(document.name, document.sha256, place, self.name, self.version, tool, version)
