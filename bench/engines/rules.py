"""Which rules of an engine a configuration breaks, before anything is rented for it.

What a rule needs, how grave it is and for which versions it holds stands in the catalogue; what it looks at, in
bench/engines/checks.py. A rule whose inputs are not known is not broken.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from bench.catalog.csv_rows import CsvRow
from bench.engines.checks import CHECKS
from bench.engines.config import EngineConfig
from bench.engines.fixes import steps_of
from bench.engines.versions import is_between

Severity = Literal["FAIL", "WARN", "INFO"]


@dataclass(frozen=True, kw_only=True)
class EngineRule(CsvRow):
    """One rule. FAIL: will not start, or gives wrong results. WARN: may do so. INFO: worth knowing."""

    KEY: ClassVar = ("rule", "engine")

    rule: str
    engine: str
    first_version: str | None  # None: not known how far back
    last_version: str | None  # with all that begins so: 0.17 is 0.17.1 too; None: holds still
    severity: Severity
    needs: str
    fix: str | None = None  # of --apply-rules, as bench/engines/fixes.py reads it; None: there is no single one

    def holds_for(self, version: str) -> bool:
        """Whether it does for this version of the engine; a bounded rule does not for one that is not known."""
        return is_between(version, self.first_version, self.last_version)


@dataclass(frozen=True)
class BrokenRule:
    """A rule that a configuration breaks, and what was found."""

    rule: EngineRule
    found: str
    steps: tuple[str, ...] = ()  # of its fix, for this configuration

    @property
    def sentence(self) -> str:
        """What was found, what is needed, the rule's name, and what --apply-rules would change."""
        fix = f"; --apply-rules: {', '.join(self.steps)}" if self.steps else ""
        return f"{self.found}: {self.rule.needs} ({self.rule.rule}{fix})"


def broken_rules(config: EngineConfig, rules: Iterable[EngineRule]) -> tuple[BrokenRule, ...]:
    """Every rule that a configuration breaks, in the order of the catalogue."""
    return tuple(_broken(config, rules))


def _broken(config: EngineConfig, rules: Iterable[EngineRule]) -> Iterator[BrokenRule]:
    for rule in rules:
        if rule.engine == config.engine and rule.holds_for(config.version):
            found = CHECKS[rule.rule](config)
            if found:
                yield BrokenRule(rule, found, steps_of(rule.fix, config))
