"""Published works that suites run again, and what each of their tables needs for it."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from bench.catalog.csv_rows import Count, CsvRow

# Of what the rows of a published table are: numbers that are measured or computed, what a machine or a method was, or
# statements without a number.
RowKind = Literal["result", "setup", "statement"]


@dataclass(frozen=True, kw_only=True)
class Work(CsvRow):
    """A published work; `source` says where and when it was published."""

    KEY: ClassVar = ("work",)

    work: str  # its short name
    title: str
    suite: str  # the name of its file in suites/, without the ending


@dataclass(frozen=True)
class TableColumn:
    """A column of a published table, and the one of ours that has its values; `report`: where not the table's own."""

    published: str
    ours: str | None
    report: str | None

    @classmethod
    def of(cls, text: str) -> Self:
        """A column as `published=ours`, `published=Title/ours` or `published=`."""
        published, _, where = text.partition("=")
        report, _, ours = where.rpartition("/")
        return cls(published, ours or None, report or None)


@dataclass(frozen=True, kw_only=True)
class WorkTable(CsvRow):
    """A table of a work, with the table of a suite's report that has its rows again.

    `source` is where the table is printed. `machine_rows` counts the rows that run again on machines that a cloud
    offers, `own_rows` further ones that need a host of your own, `local_rows` those that run on this computer, in
    miniature or simulated. `columns` names the columns of the published table and of ours. `lacks` says what else is
    missing, or why rows do not run again.
    """

    KEY: ClassVar = ("work", "number")

    work: str
    number: str  # T05; F01 for a figure
    caption: str
    kind: RowKind
    rows: Count
    machine_rows: Count
    own_rows: Count
    local_rows: Count
    suite: str | None  # None: no suite has it
    report: str | None  # the title of a table in the suite's report
    columns: str  # `published=ours; other=Title/ours; lacking=`
    lacks: str | None

    @property
    def all_columns(self) -> tuple["TableColumn", ...]:
        """The columns of the published table, in its order."""
        return tuple(map(TableColumn.of, self.columns.split("; ")))
