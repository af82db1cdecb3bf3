"""Whether a server that is not ours answered every request itself."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

ENDPOINT_RULES: tuple[Rule, ...] = (
    Rule(
        code="rate_limited",
        column=ev.RATE_LIMITED_SHARE,
        family="client-server",
        passing=ZERO,
        tolerated=(0.0, 0.05),
        sentence="the server refused {value:.1%} of the requests by its rate limit (HTTP 429): ask for a lower load",
        driver="meter",
        is_required=False,
        origin="definition: a limited load is not the one that the suite asks for; 5 % as for other failures",
    ),
    Rule(
        code="cached_answers",
        column=ev.CACHE_HIT_SHARE,
        family="client-server",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:.1%} of the answers came out of a cache between client and server, as their headers say",
        driver="meter",
        is_required=False,
        origin="definition: an answer out of a cache was not generated",
    ),
)
