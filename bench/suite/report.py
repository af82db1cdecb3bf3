"""What `nightbench report --suite` shows: the tables of a suite, and which published figures stand beside them."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bench.frozen import Frozen

TableKind = Literal[
    "scenarios",
    "commands",
    "pivot",
    "cost",
    "memory",
    "memory_fit",
    "roofline",
    "published",
    "machine_pairs",
    "machine_prices",
    "searches",
]


class ReportTable(Frozen):
    """One table of a report.

    `scenarios`: one row a scenario. `commands`: one row for each metric of a command. `pivot`: the first of `metrics`,
    by the workload's keys `rows` and `columns`. `cost`: the price of an hour, a day, a month and of a million
    tokens. `memory`: what each model needs. `memory_fit`: which models fit which machines, by precision. `roofline`:
    the ceilings of each GPU, model and precision beside what was measured. `published`: the figures of the report's
    sources that have one of `metrics`. `machine_pairs`, `machine_prices`, `searches`: the rows of that view.
    """

    title: str = Field(min_length=1)  # its heading
    kind: TableKind = "scenarios"  # what its rows are
    only: str = ""  # the beginning of the names of its scenarios; "": all
    # Columns of the table of measurements.
    metrics: tuple[str, ...] = Field(default=("output_throughput_tok_per_s",), strict=False, min_length=1)
    published: str | None = None  # the metric in catalog/published.csv that stands beside the first one
    published_scale: float = Field(default=1.0, gt=0)  # published times this has the unit of our column
    figures: dict[str, dict[str, str]] = Field(default_factory=dict)  # by scenario: the columns of its published figure
    rows: str | None = None  # a key of the workload, for a `pivot`
    columns: str | None = None  # a key of the workload, for a `pivot`

    @model_validator(mode="after")
    def _pivots_by_two_keys(self) -> Self:
        if (self.kind == "pivot") != (self.rows is not None and self.columns is not None):
            msg = 'kind = "pivot" needs rows and columns, and no other kind has them'
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _figures_are_of_one_metric(self) -> Self:
        if self.figures and (self.kind not in ("scenarios", "commands") or self.published is None):
            msg = "figures names the published figures of scenarios or commands: give published too"
            raise ValueError(msg)
        return self


class Report(Frozen):
    """The report of a suite. It is a label: no id depends on it."""

    title: str | None = None  # of the page; without it: the suite's name
    sources: tuple[str, ...] = Field(default=(), strict=False)  # in catalog/published.csv
    requests: dict[str, bool | int | float | str] = Field(default_factory=dict)  # keys of the sources' requests
    # In the order of the page.
    tables: tuple[ReportTable, ...] = Field(default=(ReportTable(title="Scenarios"),), strict=False, min_length=1)
