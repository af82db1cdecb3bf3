"""What published tables call their metrics and columns, each as its source prints it."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from bench.catalog.csv_rows import CsvRow


@dataclass(frozen=True, kw_only=True)
class Spelling(CsvRow):
    """One name of a metric or column. `means` are our names, separated by `|` if the words may mean any of them.

    A latency is named `metric.statistic`; without a statistic, the words state none.
    """

    KEY: ClassVar = ("kind", "spelling")

    kind: Literal["metric", "column"]
    spelling: str
    means: str

    @property
    def candidates(self) -> tuple[str, ...]:
        """Our names that these words may mean."""
        return tuple(self.means.split("|"))
