"""What `nightbench report --suite` shows: the tables of a suite, and which published figures stand beside them."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bench.frozen import Frozen

TableKind = Literal[
    "scenarios",
    "commands",
    "pivot",
    "means",
    "peaks",
    "levels",
    "variants",
    "totals",
    "setup",
    "specifications",
    "cost",
    "night_cost",
    "memory",
    "memory_fit",
    "roofline",
    "published",
    "machine_pair_means",
    "machine_pairs",
    "machine_prices",
    "searches",
]
# In a figure: its metric in catalog/published.csv, where it is not the table's, and why a ratio to it means nothing.
METRIC, INCOMPARABLE = "metric", "incomparable"


class ReportTable(Frozen):
    """One table of a report.

    `scenarios`: one row a scenario. `commands`: one row for each metric of a command. `pivot`: the first of `metrics`,
    by the workload's keys `rows` and `columns`. `means`: mean and standard deviation over the scenarios of each model
    and machine. `peaks`: the scenario of each model and machine with the highest first metric. `levels`: one row for
    each model and concurrency, probes of searches too, with the status that the study gives it. `variants`: the second
    variant over the first, by scenario. `totals`: requests, tokens and success rate. `setup`: what each machine of the
    night was, as found. `specifications`: what the catalogue has of each machine. `cost`: the price of an hour, a day,
    a month and of a million tokens. `night_cost`: what this night cost. `memory`: what each model needs. `memory_fit`:
    which models fit which machines, by precision. `roofline`: the ceilings of each GPU, model and precision beside what
    was measured. `published`: the figures of the report's sources that have one of `metrics`. `machine_pair_means`: the
    ratio of two machines over all scenarios. `machine_pairs`, `machine_prices`, `searches`: the rows of that view.
    """

    title: str = Field(min_length=1)  # its heading
    note: str = ""  # sentences below its heading, such as which terms are guesses
    kind: TableKind = "scenarios"  # what its rows are
    only: str = ""  # the beginning of the names of its scenarios; "": all
    machine: str | None = None  # the name of the suite's machine that its scenarios run on; None: any
    without: tuple[str, ...] = Field(default=(), strict=False)  # the names of scenarios that it leaves out
    # More GPUs or kinds of machines of the catalogue beside the suite's, for `specifications` and `memory_fit`.
    machines: tuple[str, ...] = Field(default=(), strict=False)
    models: tuple[str, ...] = Field(default=(), strict=False)  # more models of the catalogue, for `memory_fit`
    # Tokens of the one request that must fit beside the weights, for `memory_fit`; without it: the longest scenario's.
    context_tokens: int | None = Field(default=None, ge=1)
    # Columns of the table of measurements, and total_throughput_tok_per_s and success_share.
    metrics: tuple[str, ...] = Field(default=("output_throughput_tok_per_s",), strict=False, min_length=1)
    # Terms beside the load: columns of the table of measurements, keys of a scenario, or flags such as --max-num-seqs.
    show: tuple[str, ...] = Field(default=(), strict=False)
    published: str | None = None  # the metric in catalog/published.csv that stands beside the first one
    published_scale: float = Field(default=1.0, gt=0)  # published times this has the unit of our column
    # By row: the columns of its published figure, its `metric`, and as `incomparable` why a ratio to it means nothing.
    figures: dict[str, dict[str, str]] = Field(default_factory=dict)
    # By row: what a source prints of the first metric, in its unit, where catalog/published.csv lacks the figure.
    printed: dict[str, float] = Field(default_factory=dict)
    printed_terms: dict[str, str] = Field(default_factory=dict)  # terms of all `printed`, by columns of published.csv
    # By the beginning of a row's name: why a ratio to what is `printed` of it means nothing.
    printed_incomparable: dict[str, str] = Field(default_factory=dict)
    stated: dict[str, dict[str, str | int | float]] = Field(default_factory=dict)  # by row: columns that sources state
    rows: str | None = None  # a key of the workload, for a `pivot`
    columns: str | None = None  # a key of the workload, for a `pivot`

    @model_validator(mode="after")
    def _pivots_by_two_keys(self) -> Self:
        if (self.kind == "pivot") != (self.rows is not None and self.columns is not None):
            msg = 'kind = "pivot" needs rows and columns, and no other kind has them'
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _figures_have_a_metric(self) -> Self:
        for row, columns in self.figures.items():
            if self.published is None and METRIC not in columns:
                msg = f"figures: {row!r} names no published figure: give it a metric, or the table published"
                raise ValueError(msg)
        return self


class Report(Frozen):
    """The report of a suite. It is a label: no id depends on it."""

    title: str | None = None  # of the page; without it: the suite's name
    sources: tuple[str, ...] = Field(default=(), strict=False)  # in catalog/published.csv
    # By model: the source of `printed` and the terms that it states, by columns of catalog/published.csv.
    printed_by: dict[str, dict[str, str]] = Field(default_factory=dict)
    requests: dict[str, bool | int | float | str] = Field(default_factory=dict)  # keys of the sources' requests
    # In the order of the page.
    tables: tuple[ReportTable, ...] = Field(default=(ReportTable(title="Scenarios"),), strict=False, min_length=1)
