"""An importer: name and version of a format, a function that recognises it, and one that reads its claims."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.audit.claim import Claim, ClaimSource
from warehouse.importers.parsing.document import Document


@dataclass(frozen=True)
class Format:
    """One format of result files; `version` increases when the same bytes give other claims.

    `recognises` never raises. `read` raises UnreadableResultError for a broken file; an error in one row is a remark on
    that row. `required` are the rule codes that must be checkable before a row of this format is accepted: those for
    which the format always has the inputs.
    """

    name: str
    version: int
    recognises: Callable[[Document], bool]
    read: Callable[[Document, "Format"], Iterator[Claim]]
    required: frozenset[str] = frozenset()

    def lineage(
        self, document: Document, place: str = "", tool: str | None = None, version: str | None = None
    ) -> ClaimSource:
        """The source of a claim in this document; `version` is that of the tool that wrote the file."""
        return ClaimSource(document.name, document.sha256, place, self.name, self.version, tool, version)
