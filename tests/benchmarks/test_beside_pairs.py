"""The rules on a history beside the truth about its pairs: what changed is found, and what is equal is left alone."""

from datetime import UTC, datetime
from pathlib import Path

from benchmarks.detector import ours, ten_percent
from benchmarks.history.beside_pairs import pairs_section, read_truths
from benchmarks.history.pairs import Difference, MeasuredPair, export_pairs
from benchmarks.history.resampled import METRICS
from warehouse.demo.story import NEW_ENGINE, OLD_ENGINE


def differences(verdict: str, effect_pct: float) -> tuple[Difference, ...]:
    return tuple(
        Difference(scenario=name, metric=METRICS[0], verdict=verdict, effect_pct=effect_pct, ci_lo=None, ci_hi=None)
        for name in ("chat-1", "chat-4", "no-such-scenario")
    )


def pair(*found: Difference, reason: str = "") -> MeasuredPair:
    return MeasuredPair(
        engine="vllm",
        one=OLD_ENGINE,
        other=NEW_ENGINE,
        rounds=5,
        night=None,
        began_at=datetime(2026, 11, 26, tzinfo=UTC),
        wall_s=1.0,
        commit=None,
        reason=reason,
        found=found,
    )


def section(loaded: tuple[Path, Path], *pairs: MeasuredPair) -> str:
    export_pairs(pairs, loaded[1])
    return pairs_section({"Nightbench": ours, "10 % threshold": ten_percent}, *loaded)


def test_a_change_that_the_long_run_confirms_is_found(loaded: tuple[Path, Path]) -> None:
    page = section(loaded, pair(*differences("gain", 11.1)))

    assert "| Nightbench | 2 of 2 | 0 of 0 |" in page
    assert "| 10 % threshold | 0 of 2 | 0 of 0 |" in page
    assert f"| vllm | {OLD_ENGINE} | {NEW_ENGINE} | chat-1 | {METRICS[0]} | +11.1 % (gain) | a change | none |" in page


def test_a_change_seen_where_both_releases_are_equal_counts_against_a_rule(loaded: tuple[Path, Path]) -> None:
    page = section(loaded, pair(*differences("equivalent", 0.1)))

    assert "| Nightbench | 0 of 0 | 2 of 2 |" in page
    assert "| chat-1 |" in page


def test_a_pair_that_is_not_known_counts_for_nobody(loaded: tuple[Path, Path]) -> None:
    page = section(loaded, pair(*differences("inconclusive", 3.0)), pair(reason="it did not start"))

    assert "| Nightbench | 0 of 0 | 0 of 0 |" in page
    assert len(list(read_truths(loaded[1]))) == 3


def test_a_history_without_pairs_has_no_section(loaded: tuple[Path, Path], tmp_path: Path) -> None:
    assert pairs_section({"Nightbench": ours}, loaded[0], tmp_path) == ""
