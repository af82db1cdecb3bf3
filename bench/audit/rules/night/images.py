"""Whether a server reads the images of its prompts, each of which it has not seen before."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

IMAGE_RULES: tuple[Rule, ...] = (
    Rule(
        code="images_not_read",
        column=ev.IMAGES_READ_SHARE,
        family="client-server",
        passing=(1.0, None),
        tolerated=(1.0, None),
        sentence="the server read {value:.1%} of the images of the requests that it answered",
        driver="meter",
        is_required=False,
        only_where="images_sent",
        origin="definition: each image is looked up once; vLLM counts these in mm_cache_queries",
    ),
    Rule(
        code="images_cached",
        column=ev.IMAGE_CACHE_HIT_SHARE,
        family="client-server",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:.1%} of the images came from the server's cache, although all of them differ",
        driver="meter",
        is_required=False,
        only_where="images_sent",
        origin="definition: no image is sent twice; vLLM counts hits in mm_cache_hits",
    ),
)
