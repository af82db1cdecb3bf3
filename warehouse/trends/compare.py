"""Compare two sides of the warehouse, or one with a published number, and lay the answer out as rows."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.errors import UsageError
from bench.student import quantile
from bench.trends.night_judge import SUSPECT_P, min_effect_of
from bench.trends.sides import ORDER, Compared, Lease, Pair, Side, compare_sides
from bench.wording import counted
from warehouse.trends.beside_published import compare_published, is_published
from warehouse.trends.choose import choose_measured
from warehouse.trends.leases import history_leases, near, own_leases, own_setups
from warehouse.trends.missing import Missing, missing_of

NO_LOSS = "one lease says nothing of the noise between leases, so that no loss can be confirmed there"
VALUES_SHOWN = 3  # of a field
_REFUSED = ("series", "reason", "metrics")


@dataclass(frozen=True)
class Comparison:
    """What was compared, and the answer."""

    one: str
    other: str
    found: Compared
    missing: Sequence[Missing] = ()

    @property
    def exit_code(self) -> int:
        """1 where a loss is confirmed."""
        return int(self.found.has_loss)

    @property
    def summary(self) -> str:
        """One line: how many pairs have which verdict, and what could not be seen."""
        counts = Counter(pair.verdict for pair in self.found.pairs)
        parts = [f"{counts[verdict]} {verdict}" for verdict in ORDER if counts[verdict]]
        blind = [pair.difference.least for pair in self.found.pairs if pair.verdict == "inconclusive"]
        unseen = f"; changes below {max(_pct(least or 0.0) for least in blind):.1f} % may not be seen" if blind else ""
        alone = f"; {NO_LOSS}" if counts["within one lease"] else ""
        if not parts:
            return "no pair was compared: nothing is known of a loss or a gain"
        noisy = {
            one.name for pair in self.found.pairs for one in (*pair.one, *pair.other) if "doubted_for" in one.facts
        }
        doubt = f"; noise on the host makes runs of {', '.join(sorted(noisy))} suspect" if noisy else ""
        return f"{counted(len(self.found.pairs), 'pair')}: {', '.join(parts)}{unseen}{alone}{doubt}"

    def answer(self) -> dict[str, Any]:
        """The whole answer, as `nightbench compare --json` prints it."""
        return {
            "a": self.one,
            "b": self.other,
            "has_confirmed_loss": self.found.has_loss,
            "summary": self.summary,
            "p_max": SUSPECT_P,
            "geometric_means": geometric_means(self.found.pairs),
            "pairs": [pair_row(pair) for pair in self.found.pairs],
            "missing": [vars(one) for one in self.missing],
            "refused": [{name: getattr(one, name) for name in _REFUSED} for one in self.found.refused],
        }


def compare(data: Path, one: str, other: str) -> Comparison:
    """Compare A with B: a change is that of B against A.

    Raises UsageError where a side matches nothing, or both are published numbers.
    """
    setups = own_setups(data)
    facts, histories = [*setups.values()], list[Lease]()
    if is_published(one) or is_published(other):
        return Comparison(one, other, compare_published(data, setups, one, other))
    try:
        sides = [choose_measured(data, text, facts) for text in (one, other)]
    except UsageError:
        histories += history_leases(data)
        facts += [lease.facts for lease in histories]
        sides = [choose_measured(data, text, facts) for text in (one, other)]
    return compare_chosen(data, [*own_leases(data, near(setups, sides)), *histories], *sides)


def compare_chosen(data: Path, leases: Sequence[Lease], one: Side, other: Side) -> Comparison:
    """Compare two sides of these leases, with what each lacks and why."""
    found = compare_sides(leases, one, other)
    return Comparison(one.text, other.text, found, missing_of(data, found.refused, one, other))


def pair_row(pair: Pair) -> dict[str, Any]:
    """One pair as an object; percents are of A."""
    found = pair.difference
    margin = found.margin
    return {
        "series": pair.series,
        "metric": pair.metric,
        "verdict": pair.verdict,
        "a": float(np.exp(np.log([lease.point.value for lease in pair.one]).mean())),
        "b": float(np.exp(np.log([lease.point.value for lease in pair.other]).mean())),
        "effect_pct": _pct(found.shift),
        "ci_lo": None if margin is None else _pct(found.shift - margin),
        "ci_hi": None if margin is None else _pct(found.shift + margin),
        "p": found.p,
        "min_effect_pct": 100 * min_effect_of(pair.metric),
        "mde_pct": None if found.least is None else _pct(found.least),
        "a_leases": len(pair.one),
        "b_leases": len(pair.other),
        "interval": "between leases" if found.is_between_leases else "within one lease" if margin else "unknown",
        "is_lower_better": pair.is_lower_better,
        "differs": dict(pair.differs),
    }


def few_values(stated: str) -> str:
    """What the leases of a side state of a field; of many values their number, since a commit may be new each night."""
    values = stated.split(", ")
    return (stated or "unknown") if len(values) <= VALUES_SHOWN else f"{len(values)} values"


def geometric_means(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """The geometric mean of the ratios of each metric, above 1: B is better; with its interval, at least 95 %.

    The pairs of one lease share its host, so their errors are added as if they all moved together. The best and the
    worst series stand beside it with their changes.
    """
    by_metric: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.difference.is_between_leases and pair.is_lower_better is not None:
            by_metric[pair.metric].append(pair)
    return [_geometric_mean(metric, of) for metric, of in sorted(by_metric.items())]


def _geometric_mean(metric: str, pairs: Sequence[Pair]) -> dict[str, Any]:
    sign = -1 if pairs[0].is_lower_better else 1
    shift = sign * float(np.mean([pair.difference.shift for pair in pairs]))
    error = float(np.mean([pair.difference.error or 0.0 for pair in pairs]))
    margin = quantile(0.05, min(pair.difference.degrees for pair in pairs)) * error
    low, middle, high = (float(np.exp(each)) for each in (shift - margin, shift, shift + margin))
    ordered = sorted(pairs, key=lambda pair: sign * pair.difference.shift)
    worst, best = ordered[0], ordered[-1]
    return {
        "metric": metric,
        "pairs": len(pairs),
        "ratio": middle,
        "ci_lo": low,
        "ci_hi": high,
        "best": best.series,
        "best_pct": _pct(best.difference.shift),
        "worst": worst.series,
        "worst_pct": _pct(worst.difference.shift),
    }


def _pct(shift: float) -> float:
    return float(np.expm1(shift)) * 100
