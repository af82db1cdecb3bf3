"""`llms.txt`: what the site has, for a language model that reads it (llmstxt.org)."""

from datetime import datetime

from warehouse.site.atom import FEED
from warehouse.site.badge import BADGE
from warehouse.site.dump import DUMPS
from warehouse.site.latest import LATEST

LLMS = "llms.txt"
_TEXT = """# Nightbench results

> Nightly benchmarks of LLM inference servers: throughput, latency and price of models on machines, with 95 % intervals,
> the audit's verdict on each run, and the changes that were found. Newest data: {newest}.

Only accepted runs are compared. A missing value is null, never 0; the key that ends in `_missing` says why.

## Data

- [{latest}]({latest}): the newest numbers of each model and machine, the changes of 30 days, and notices that stand
- [{feed}]({feed}): changes and notices as an Atom feed
{dumps}
- [data/overview.csv](data/overview.csv): the lines of the start page
- [{badge}]({badge}): how many regressions stand

## Pages

- [Start](index.html): each model and machine in a line, changes, frontiers of throughput and price
- [Series](series/index.html): a page and a CSV for each series
- [Nights](night/index.html): the report of each night
- [Compare](compare.html): engine versions side by side
- [Cost](cost.html): price of tokens, costs of nights
- [Trust](trust.html): verdicts, findings and how small a change can be seen

## Terms

- tok/s per user: output tokens a second of one request, the median of 1000 / TPOT
- TTFT, TPOT, ITL, E2EL: time to first token, mean time per token after it, gap between tokens, end-to-end latency; ms
- USD per Mtok: price of the machine over output throughput, for a million output tokens
"""


def llms_text(newest: datetime | None) -> str:
    """The file as text."""
    dumps = "\n".join(f"- [{address}]({address}): {said}" for address, (_, said) in DUMPS.items())
    when = "none yet" if newest is None else f"{newest:%Y-%m-%d %H:%M} UTC"
    return _TEXT.format(newest=when, latest=LATEST, feed=FEED, badge=BADGE, dumps=dumps)
