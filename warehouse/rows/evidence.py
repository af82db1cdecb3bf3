"""The evidence of our own runs: from their rows, and as claims like any other file."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed
from bench.audit.judge import group_evidence, row_evidence
from bench.audit.rules import NIGHT_RULES, Rule
from bench.audit.rules.rule import loop_of
from bench.suite.workloads.embedding import EMBED
from warehouse.rows.catalog_subject import subject_of
from warehouse.schema.columns import outside_bounds


@dataclass(frozen=True)
class RunClaim:
    """A measured run as a claim without its series, and its own evidence."""

    claim: Claim
    evidence: EvidenceByColumn


def ask(claim: Claim) -> RunClaim:
    """Compute the evidence of one run and drop its series to free memory."""
    return RunClaim(replace(claim, series=None), row_evidence(claim, subject_of(claim)))


def together(asked: Sequence[RunClaim]) -> dict[str, EvidenceByColumn]:
    """The evidence of a night's runs by run id, including evidence that compares several runs."""
    groups = group_evidence([each.claim for each in asked])
    return {each.claim.lineage.file: each.evidence | group for each, group in zip(asked, groups, strict=True)}


def night_evidence(row: Mapping[str, Any]) -> EvidenceByColumn:
    """The evidence columns of a measured row for the rules that apply to it."""
    found: EvidenceByColumn = {rule.column: _evidence_of(rule, row) for rule in NIGHT_RULES if _applies(rule, row)}
    names = outside_bounds(row)
    return found | {ev.IMPOSSIBLE_VALUES: Observed(len(names), ", ".join(f"{name} = {row[name]}" for name in names))}


def _evidence_of(rule: Rule, row: Mapping[str, Any]) -> Observed | MissingInput:
    value = row[rule.column]
    if value is not None and not math.isnan(value):
        return Observed(float(value), note_of(rule, row))
    return MissingInput(f"{rule.column} is missing" if rule.lacking is None else rule.lacking.format_map(row))


def note_of(rule: Rule, row: Mapping[str, Any]) -> str:
    """The arithmetic behind a rule's value, with what the row has of it; empty where the rule has none."""
    if not rule.note:
        return ""
    return rule.note.format_map({name: _Unknown() if value is None else value for name, value in row.items()})


class _Unknown:
    """What a note shows of a value that the row lacks: nothing, whatever its format."""

    def __format__(self, _spec: str) -> str:
        return ""


def _applies(rule: Rule, row: Mapping[str, Any]) -> bool:
    if rule.only_where is not None and not row[rule.only_where]:
        return False
    kind = {"is_exact": row["prompt_form"] == "tokens", "has_tokens": row.get("task") != EMBED}
    return rule.applies(loop_of(row["arrivals"]), row["driver"], **kind)
