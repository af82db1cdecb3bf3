"""`nightbench audit`: judge result files of any supported tool; needs no server, no warehouse and no GPU."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.errors import UsageError
from flows.cli.annotations import annotations
from flows.cli.arguments import JsonFlag, examples
from flows.cli.audit_ask import ask_for_headers
from flows.show import console

if TYPE_CHECKING:
    from bench.audit.claim import ClaimedConfig
    from bench.audit.judge import Finding, Judged
    from bench.audit.rules import Rule
    from warehouse.audit import Audit

commands = typer.Typer()
GB, GIB = 1e9, 1 << 30
NEEDS_SHOWN = 8
VALUES_SHOWN = 8  # of one metric or column; --json lists them all


@commands.command(epilog=examples("nightbench audit data/runs", "nightbench audit --explain client_bound"))
def audit(  # noqa: PLR0913, PLR0917 - each option is an argument
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE|DIR|-...", help="Result files, run folders, folders of them, or - for stdin."),
    ] = None,
    as_json: JsonFlag = False,
    only: Annotated[str | None, typer.Option(metavar="CLASS", help="Apply only the rules of this class.")] = None,
    explain: Annotated[
        str | None, typer.Option(metavar="CODE", help="Explain this finding code and judge nothing.")
    ] = None,
    use_gx: Annotated[
        bool, typer.Option("--gx", help="Judge with great-expectations; takes a few seconds longer.")
    ] = False,
    allow_unchecked: Annotated[
        bool, typer.Option("--allow-unchecked", help="Do not exit 1 for rows of which no number could be checked.")
    ] = False,
    mapped: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="THEIRS=OURS[UNIT]", help="What a header of a table means; may be repeated."),
    ] = None,
    is_comparison: Annotated[
        bool, typer.Option("--compare", help="Compare the rows of two files and name the terms that differ.")
    ] = False,
    may_ask: Annotated[
        bool, typer.Option("--ask/--no-ask", help="At a terminal, ask what headers mean that are like a name of ours.")
    ] = True,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write the tables and verdicts as a page to send on."),
    ] = None,
    github: Annotated[
        bool, typer.Option("--github", help="Print findings as annotations of a GitHub workflow.")
    ] = False,
    gpu: Annotated[str | None, typer.Option(help="GPU, if the file does not state it: MI300X, H100, ...")] = None,
    gpu_count: Annotated[int | None, typer.Option(min=1, help="Number of GPUs.")] = None,
    model: Annotated[str | None, typer.Option(help="Model, by its maker's name.")] = None,
    precision: Annotated[str | None, typer.Option(help="Precision of the weights: bf16, fp8, int4, ...")] = None,
    tp: Annotated[int | None, typer.Option(min=1, help="Tensor parallel size: GPUs per replica.")] = None,
    usd_per_hour: Annotated[
        float | None, typer.Option(min=0, help="Price of all rented machines, in USD per hour.")
    ] = None,
    max_model_len: Annotated[int | None, typer.Option(min=1, help="Context length of the server, in tokens.")] = None,
    weights_gb: Annotated[
        float | None, typer.Option(min=0, help="Size of the weights as loaded, in 10^9 bytes.")
    ] = None,
) -> None:
    """Judge result files, ours or another tool's: one verdict per row, and its findings with their arithmetic.

    Options, or a context.toml beside the file, add what the file does not state; nothing is guessed. Files may be
    gzipped. Exits 1 if a rule fails, or if no number of a row could be checked.
    """
    from bench.audit.claim import ClaimedConfig  # noqa: PLC0415
    from warehouse.context import require_known  # noqa: PLC0415

    if explain is not None:
        _explain(explain)
        return
    if not files:
        raise UsageError("nothing to audit: pass a result file, a folder, or - for standard input")
    context = ClaimedConfig(
        model=model,
        precision=precision,
        gpu=gpu,
        gpu_count=gpu_count,
        tp_size=tp,
        usd_per_hour=usd_per_hour,
        max_model_len=max_model_len,
        weights_gib=None if weights_gb is None else weights_gb * GB / GIB,
    )
    require_known(context, lambda key: f"--{key}")
    found = _judge_files(files, context, only, mapped or [], use_gx=use_gx)
    if may_ask and not (as_json or github) and ask_for_headers(found):
        found = _judge_files(files, context, only, mapped or [], use_gx=use_gx)
    if is_comparison:
        _compare(files, found)
        return
    if html is not None:
        _write_page(html, found)
    _print(found, as_json=as_json, github=github)
    for why in found.left_out:
        console.warn(f"left out: {why}")
    if not found.is_clean or (found.unchecked_count and not allow_unchecked):
        raise typer.Exit(1)


def _print(found: "Audit", *, as_json: bool, github: bool) -> None:
    if github:
        console.line("\n".join(annotations(found.judged)))
    elif as_json:
        typer.echo(json.dumps([as_values(each) for each in found.judged], indent=2, allow_nan=False))
    else:
        console.line("\n".join(line for each in found.judged for line in _lines(each)))
        console.line("\n".join(_summary(found)))


def _compare(files: list[str], found: "Audit") -> None:
    """Print the ratios of two files; exits 1 if one of them is of rows that differ in more than one term."""
    from bench.audit.comparison import compare  # noqa: PLC0415
    from flows.cli.audit_compare import comparison_lines  # noqa: PLC0415

    if len(files) != 2:  # noqa: PLR2004 - A and B
        raise UsageError(f"--compare takes two files, and {len(files)} are given")
    first, second = ([each.claim for each in found.judged if each.claim.lineage.file == file] for file in files)
    pairs = compare(first, second)
    if not pairs:
        raise UsageError("nothing to compare: no row of both files states the same number at the same load and lengths")
    console.line("\n".join(comparison_lines(pairs)))
    if not all(each.stands for each in pairs):
        raise typer.Exit(1)


def _write_page(path: Path, found: "Audit") -> None:
    from flows.cli.output_file import write_output  # noqa: PLC0415
    from warehouse.audit_page import page_of  # noqa: PLC0415

    try:
        write_output(path, page_of(found.judged))
    except OSError as error:
        raise UsageError(f"--html {path} cannot be written: {error.strerror}") from error


def _judge_files(
    files: list[str], context: "ClaimedConfig", only: str | None, mapped: list[str], *, use_gx: bool
) -> "Audit":
    from bench.audit.rules import RULES  # noqa: PLC0415
    from warehouse.audit import AuditOptions  # noqa: PLC0415
    from warehouse.audit import audit as judge_files  # noqa: PLC0415
    from warehouse.column_names import columns_of_options  # noqa: PLC0415

    families = sorted({rule.family for rule in RULES})
    if only is not None and only not in families:
        raise UsageError(f"--only {only!r} is not a class of rules; the classes are: {', '.join(families)}")
    return judge_files(files, AuditOptions(context, only, use_gx, columns_of_options(mapped)))


def _summary(found: "Audit") -> Iterator[str]:
    """How many rows and numbers were checked, and what is missing for the rest, most often missing first."""
    accepted = sum(each.verdict == "accepted" for each in found.judged)
    yield f"{len(found.judged)} judged, {accepted} accepted, {found.unchecked_count} unchecked"
    coverages = [each.coverage for each in found.judged]
    read, unchecked = sum(len(each.read) for each in coverages), sum(len(each.unchecked) for each in coverages)
    yield f"{read} numbers read, {read - unchecked} checked"
    without = sum(not each.read for each in coverages)
    if without:
        yield f"{without} row{'s' if without > 1 else ''} without a number that could be read"
    needs = Counter(need for each in coverages for need in each.needs)
    for need, count in needs.most_common(NEEDS_SHOWN):
        yield f"to check the rest: {need} ({count} row{'s' if count > 1 else ''})"
    if len(needs) > NEEDS_SHOWN:
        yield f"{len(needs) - NEEDS_SHOWN} more missing inputs: --json lists them by row"
    yield from _not_read(found)


def _not_read(found: "Audit") -> Iterator[str]:
    """Each metric, column and value of a table that was not read, with its nearest known name and its rows."""
    values: dict[tuple[str, str, str, str | None], Counter[str]] = {}
    for each in (each for judged in found.judged for each in judged.claim.not_read):
        values.setdefault((each.what, each.name, each.why, each.nearest), Counter())[each.value] += 1
    for (what, name, why, nearest), counted in values.items():
        shown = ", ".join(map(repr, list(counted)[:VALUES_SHOWN]))
        more = f" and {len(counted) - VALUES_SHOWN} more" if len(counted) > VALUES_SHOWN else ""
        rows = f" ({counted.total()} rows)" if counted.total() > 1 else ""
        near = f"; nearest: {nearest!r}" if nearest else ""
        yield f"not read: {what} {name!r} = {shown}{more}{rows}: {why}{near}"


def as_values(judged: "Judged") -> dict[str, Any]:
    """What `--json` prints of a row; docs/reference/audit-json.md describes it."""
    return {
        "file": judged.claim.lineage.file,
        "row": judged.claim.lineage.place,
        "verdict": judged.verdict,
        "numbers": {
            "read": len(judged.coverage.read),
            "checked": len(judged.coverage.read) - len(judged.coverage.unchecked),
            "unchecked": list(judged.coverage.unchecked),
            "needs": list(judged.coverage.needs),
        },
        "not_read": [asdict(each) for each in judged.claim.not_read],
        "findings": [_finding_values(finding) for finding in judged.findings],
    }


def _finding_values(finding: "Finding") -> dict[str, Any]:
    return {
        "code": finding.code,
        "class": finding.family,
        "severity": finding.severity,
        "scope": finding.scope,
        "outcome": finding.status,
        "observed": finding.observed,
        "bound": finding.bound,
        "margin": finding.margin,
        "message": finding.message,
    }


def _lines(judged: "Judged") -> Iterator[str]:
    lineage = judged.claim.lineage
    row = " ".join(part for part in (f"{judged.verdict:9}", lineage.file, lineage.place, judged.claim.label) if part)
    yield "; ".join((row, *_unknown(judged)))
    for finding in judged.findings:
        if finding.status in ("FAIL", "WARN"):
            yield f"  {finding.status:5} {finding.code}: {finding.message}{_arithmetic(finding)}"
    if judged.verdict == "unchecked":
        needs = judged.coverage.needs or ("no number of ours was read: --map says what a header means",)
        yield f"  unchecked: {'; '.join(needs[:NEEDS_SHOWN])}"
    unclear: dict[str, set[str]] = {}
    for finding in judged.findings:
        if finding.status == "NOT-CHECKABLE":
            unclear.setdefault(finding.message.removeprefix("not checkable: "), set()).add(finding.code)
    for why, codes in unclear.items():
        yield f"  not checkable: {', '.join(sorted(codes))}: {why}"


def _unknown(judged: "Judged") -> Iterator[str]:
    """Each name of the row that is not in the catalogue, with the nearest of those that are."""
    from warehouse.context import unknown_names  # noqa: PLC0415

    for key, name, near in unknown_names(judged.claim.asked):
        hint = f" (nearest: {', '.join(near)})" if near else ""
        yield f"{key} {name!r} is not in the catalogue{hint}"


def _arithmetic(finding: "Finding") -> str:
    if finding.observed is None or finding.bound is None:
        return ""
    from bench.wording import written_out  # noqa: PLC0415

    return written_out(f" [{finding.observed:.6g}, bound {finding.bound:.6g}]")


def _explain(code: str) -> None:
    from bench.audit.rules import RULES  # noqa: PLC0415

    rules = [rule for rule in RULES if rule.code == code]
    if not rules:
        close = sorted({rule.code for rule in RULES if code[:4] in rule.code}) or sorted({rule.code for rule in RULES})
        raise UsageError(f"--explain {code!r} is not a finding code; codes are: {', '.join(close)}")
    console.line("\n\n".join("\n".join(_explained(rule)) for rule in rules))


def _explained(rule: "Rule") -> Iterator[str]:
    from bench.audit.rules.wording import bounds_text  # noqa: PLC0415
    from bench.wording import shown  # noqa: PLC0415

    yield f"{rule.code} ({rule.family}, of the {rule.scope})"
    yield f"  message   {shown(rule.sentence)}"
    yield f"  evidence  {rule.column}: {bounds_text(rule)}"
    if rule.withdraws:
        yield f"  withdraws {', '.join(rule.withdraws)}"
    if rule.origin:
        yield f"  origin    {rule.origin}"
