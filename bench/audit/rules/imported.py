"""What an importer may remark on a file: unreadable values, unknown units and metrics without meaning."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

IMPORTED_RULES: tuple[Rule, ...] = (
    Rule(
        code="unreadable_value",
        column=ev.REMARKED_UNREADABLE_VALUE,
        family="completeness",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#value|values} could not be read",
        origin=("definition: a value of the wrong type, NaN or infinity is missing; the readable values still count"),
    ),
    Rule(
        code="unit_unknown",
        column=ev.REMARKED_UNIT_UNKNOWN,
        family="units",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#value has|values have} an unknown unit",
        scope="metric",
        origin="definition: without a unit a value cannot be compared",
    ),
    Rule(
        code="failed_not_zero",
        column=ev.REMARKED_FAILED_NOT_ZERO,
        family="completeness",
        passing=ZERO,
        tolerated=ZERO,
        sentence=(
            "{value:#metric that must be positive is|metrics that must be positive are} 0: a failure, not a speed"
        ),
        means_failed=True,
        origin="definition: a failed run has no speed, and 0 is one",
    ),
    Rule(
        code="meaningless_metric",
        column=ev.REMARKED_MEANINGLESS_METRIC,
        family="units",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#metric has no meaning and is|metrics have no meaning and are} left out",
        scope="metric",
        origin=(
            "definition: a statistic of a transformed statistic has no meaning, such as 1 / std or a mean of"
            " percentiles"
        ),
    ),
    Rule(
        code="table_arithmetic",
        column=ev.REMARKED_TABLE_ARITHMETIC,
        family="arithmetic",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#number does|numbers do} not follow from the others of the table",
        origin=(
            "arithmetic: totals, means, ratios, and products that hold in at least four rows and 80 % of them, with "
            "less than one in a thousand by chance; 2 % for rounded numbers that are rounded again"
        ),
    ),
    Rule(
        code="fact_conflict",
        column=ev.REMARKED_FACT_CONFLICT,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#stated fact is not that|stated facts are not those} of the catalogue",
        origin=(
            "catalog/gpus.csv and catalog/models.csv, within 3 % for rounding and GB against GiB; peaks dense or "
            "sparse, of one GPU or of the 2, 4 or 8 of a node"
        ),
    ),
    Rule(
        code="memory_budget",
        column=ev.MEMORY_BUDGET_WRONG,
        family="arithmetic",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#number does|numbers do} not fit the memory budget",
        origin=(
            "arithmetic: used is the sum of the parts and free the rest, in GB or GiB, within half a unit of each last "
            "digit; weights are parameters x bytes within 5 % (20 % for 4-bit and GGUF), KV within 2 %, cards within "
            "3 %"
        ),
    ),
    Rule(
        code="memory_unit",
        column=ev.MEMORY_BUDGET_UNIT,
        family="units",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#number fits|numbers fit} the memory budget in another unit than is printed",
        origin="definition: a GiB is 1.074 GB; tools that print GB often count GiB",
    ),
    Rule(
        code="metric_ambiguous",
        column=ev.REMARKED_METRIC_AMBIGUOUS,
        family="units",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#latency does|latencies do} not name the statistic or the metric; the rules ask least of it",
        origin="definition: mean and median, and gaps and means per request, are different numbers",
    ),
    Rule(
        code="tokens_ambiguous",
        column=ev.REMARKED_TOKENS_AMBIGUOUS,
        family="units",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#throughput does|throughputs do} not name the tokens that it counts",
        origin="definition: generated and total tokens per second are different metrics",
    ),
    Rule(
        code="cost_denominator_unstated",
        column=ev.REMARKED_COST_DENOMINATOR_UNSTATED,
        family="money",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#cost per token does|costs per token do} not name the tokens that it counts",
        scope="metric",
        withdraws=("usd_per_mtok",),
        origin="definition: costs of input, output and total tokens are different metrics",
    ),
    Rule(
        code="cost_denominator_fits",
        column=ev.COST_DENOMINATOR_FITS,
        family="money",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#cost per token does|costs per token do} not name the tokens that it counts, but fits some",
        scope="metric",
        origin="price over the throughput of input, output or total tokens, within 2 % as cost_identity",
    ),
)
