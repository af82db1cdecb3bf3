"""What only several claims together show."""

from bench import evidence_columns as ev
from bench.audit.evidence import scaling
from bench.audit.rules.rule import ZERO, Range, Rule

_SCALING = "scaling of one configuration: more GPUs, streams or narrower weights give at most in proportion"
_PROPORTION: Range = (None, 1.05)

COHERENCE_RULES: tuple[Rule, ...] = (
    Rule(
        code="concurrency_not_reached",
        column=ev.LOAD_GROWTH,
        family="coherence",
        passing=(scaling.GROWTH_MIN, None),
        tolerated=(scaling.GROWTH_MIN, None),
        sentence="more concurrency was asked and the load did not grow: it differs by {value:.2%}",
        scope="group",
        origin="the project's audit table, section 4: by Little's law throughput times latency is what is in flight",
    ),
    Rule(
        code="scaling_conflict",
        column=ev.OVER_LINEAR,
        family="coherence",
        passing=(None, 1.02),
        tolerated=(None, 1.10),
        sentence="each stream has {value:.2f} times the throughput of one alone",
        scope="group",
        origin=f"{_SCALING}; 2 % for noise, and a first run that was cold explains some more",
    ),
    Rule(
        code="scaling_conflict",
        column=ev.THROUGHPUT_DIP,
        family="coherence",
        passing=(None, 0.10),
        tolerated=None,
        sentence="throughput falls by {value:.0%} with more streams and rises again with still more",
        scope="group",
        origin="throughput falls only when it is saturated",
    ),
    Rule(
        code="scaling_conflict",
        column=ev.TPOT_DROP,
        family="coherence",
        passing=(None, 0.10),
        tolerated=None,
        sentence="a token takes {value:.0%} less time among more streams",
        scope="group",
        origin="a larger batch reads and computes more; a tenth for noise and for a first run that was cold",
    ),
    Rule(
        code="tp_scaling",
        column=ev.TP_GAIN,
        family="coherence",
        passing=_PROPORTION,
        tolerated=None,
        sentence=(
            "each GPU gives {value:.2f} times what one of fewer GPUs does: only a KV cache that was "
            "too small explains it"
        ),
        scope="group",
        origin=_SCALING,
    ),
    Rule(
        code="precision_speedup",
        column=ev.PRECISION_GAIN,
        family="coherence",
        passing=_PROPORTION,
        tolerated=None,
        sentence="{value:.2f} times what half the bytes and twice the arithmetic give",
        scope="group",
        origin=_SCALING,
    ),
    Rule(
        code="stale_copy",
        column=ev.STALE_COPIES,
        family="coherence",
        passing=ZERO,
        tolerated=None,
        sentence=(
            "{value:#measurement of another version or date has|measurements of another version or date have} "
            "a number that is the same"
        ),
        scope="group",
        origin="the project's audit table, section 7; numbers of five digits and more",
    ),
    Rule(
        code="too_quiet",
        column=ev.SPREAD_OF_REPEATS,
        family="coherence",
        passing=(0.0005, None),
        tolerated=None,
        sentence="repeats differ by {value:.4%}: quieter than any machine",
        scope="group",
        origin="ten repeats and more on as many days",
    ),
)
