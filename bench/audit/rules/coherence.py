"""Doubts that only several claims together raise: scaling, copies and repeats."""

from bench import evidence_columns as ev
from bench.audit.evidence import scaling
from bench.audit.rules.rule import ZERO, Range, Rule

_PROPORTION: Range = (None, 1.05)

COHERENCE_RULES: tuple[Rule, ...] = (
    Rule(
        code="concurrency_not_reached",
        column=ev.LOAD_GROWTH,
        family="coherence",
        passing=(scaling.GROWTH_MIN, None),
        tolerated=(scaling.GROWTH_MIN, None),
        sentence="the load differs by {value:.2%} although more concurrency was requested",
        scope="group",
        origin=(
            "Little's law: request throughput times mean latency is the mean number in flight; equal "
            "throughput at equal latency means that the load did not grow"
        ),
    ),
    Rule(
        code="scaling_conflict",
        column=ev.OVER_LINEAR,
        family="coherence",
        passing=(None, 1.02),
        tolerated=(None, 1.10),
        sentence="each stream has {value:.2f} times the throughput of one stream alone",
        scope="group",
        origin=(
            "more GPUs, streams or narrower weights speed up one configuration at most in proportion; 2 % "
            "for noise, and a cold first run explains a little more"
        ),
    ),
    Rule(
        code="scaled_up",
        column=ev.SCALED_INSTANCES,
        family="coherence",
        passing=(None, 1.0),
        tolerated=None,
        sentence="the throughput is exactly {value:.0f} times that on fewer GPUs, so it was scaled up and not measured",
        scope="group",
        origin="two measurements do not agree to five digits by chance",
    ),
    Rule(
        code="scaling_conflict",
        column=ev.THROUGHPUT_DIP,
        family="coherence",
        passing=(None, 0.10),
        tolerated=None,
        sentence=("throughput falls by {value:.0%} at higher concurrency and rises again at a still higher one"),
        scope="group",
        origin="throughput falls with concurrency only after saturation; 10 % for noise",
    ),
    Rule(
        code="scaling_conflict",
        column=ev.TPOT_DROP,
        family="coherence",
        passing=(None, 0.10),
        tolerated=None,
        sentence="mean time per token is {value:.0%} shorter at a higher concurrency",
        scope="group",
        origin="a larger batch reads and computes more per step; 10 % for noise and a cold first run",
    ),
    Rule(
        code="tp_scaling",
        column=ev.TP_GAIN,
        family="coherence",
        passing=_PROPORTION,
        tolerated=None,
        sentence=(
            "each GPU delivers {value:.2f} times what it delivers in a smaller group; only a KV cache that "
            "was too small explains more than 1"
        ),
        scope="group",
        origin=(
            "more GPUs, streams or narrower weights speed up one configuration at most in proportion; 5 % for noise"
        ),
    ),
    Rule(
        code="precision_speedup",
        column=ev.PRECISION_GAIN,
        family="coherence",
        passing=_PROPORTION,
        tolerated=None,
        sentence="the speed-up is {value:.2f} times what half the bytes and twice the compute allow",
        scope="group",
        origin=(
            "more GPUs, streams or narrower weights speed up one configuration at most in proportion; 5 % for noise"
        ),
    ),
    Rule(
        code="stale_copy",
        column=ev.STALE_COPIES,
        family="coherence",
        passing=ZERO,
        tolerated=None,
        sentence=(
            "{value:#measurement of another version or date has|measurements of another version or date "
            "have} the same number"
        ),
        scope="group",
        origin="two measurements do not agree in all of five digits or more",
    ),
    Rule(
        code="too_quiet",
        column=ev.SPREAD_OF_REPEATS,
        family="coherence",
        passing=(0.0005, None),
        tolerated=None,
        sentence="repeats differ by {value:.4%}, less than any machine varies",
        scope="group",
        origin=("chosen by Nightbench: a coefficient of variation below 0.05 % over ten repeats on as many days"),
    ),
)
