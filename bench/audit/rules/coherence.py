"""What only several claims together show."""

from bench import evidence_columns as ev
from bench.audit.evidence import scaling
from bench.audit.rules.rule import ZERO, Range, Rule

_SCALING = "scaling of one configuration: more GPUs, streams or narrower weights give at most in proportion"
_PROPORTION: Range = (None, 1.05)

COHERENCE_RULES: tuple[Rule, ...] = (
    Rule(
        "concurrency_not_reached",
        ev.LOAD_GROWTH,
        "coherence",
        (scaling.GROWTH_MIN, None),
        (scaling.GROWTH_MIN, None),
        "more concurrency was asked and the load did not grow: it differs by {value:.2%}",
        scope="group",
        origin="the project's audit table, section 4: by Little's law throughput times latency is what is in flight",
    ),
    Rule(
        "scaling_conflict",
        ev.OVER_LINEAR,
        "coherence",
        (None, 1.02),
        (None, 1.10),
        "each stream has {value:.2f} times the throughput of one alone",
        scope="group",
        origin=f"{_SCALING}; 2 % for noise, and a first run that was cold explains some more",
    ),
    Rule(
        "scaling_conflict",
        ev.THROUGHPUT_DIP,
        "coherence",
        (None, 0.10),
        None,
        "throughput falls by {value:.0%} with more streams and rises again with still more",
        scope="group",
        origin="throughput falls only when it is saturated",
    ),
    Rule(
        "scaling_conflict",
        ev.TPOT_DROP,
        "coherence",
        (None, 0.10),
        None,
        "a token takes {value:.0%} less time among more streams",
        scope="group",
        origin="a larger batch reads and computes more; a tenth for noise and for a first run that was cold",
    ),
    Rule(
        "tp_scaling",
        ev.TP_GAIN,
        "coherence",
        _PROPORTION,
        None,
        "each GPU gives {value:.2f} times what one of fewer GPUs does: only a KV cache that was too small explains it",
        scope="group",
        origin=_SCALING,
    ),
    Rule(
        "precision_speedup",
        ev.PRECISION_GAIN,
        "coherence",
        _PROPORTION,
        None,
        "{value:.2f} times what half the bytes and twice the arithmetic give",
        scope="group",
        origin=_SCALING,
    ),
    Rule(
        "stale_copy",
        ev.STALE_COPIES,
        "coherence",
        ZERO,
        None,
        "{value:#measurement of another version or date has|measurements of another version or date have} "
        "a number that is the same",
        scope="group",
        origin="the project's audit table, section 7; numbers of five digits and more",
    ),
    Rule(
        "too_quiet",
        ev.SPREAD_OF_REPEATS,
        "coherence",
        (0.0005, None),
        None,
        "repeats differ by {value:.4%}: quieter than any machine",
        scope="group",
        origin="ten repeats and more on as many days",
    ),
)
