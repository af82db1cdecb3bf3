"""What the audit says of runs that nothing is wrong with: simulated, and written in each tool's format.

`python -m benchmarks.false_alarms [SEED]` prints the verdicts by format, and each finding that rejects a row.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.audit.judge import Judged
from benchmarks.bars import Bar, Benchmark, Measured
from benchmarks.simulated import clients, tables, vllm
from benchmarks.simulated.runs import SimulatedRun, campaigns
from warehouse.audit import AuditOptions, audit

ROWS = 10_000
REJECTED = Bar("false_alarms.rejected", "clean simulated rows that are rejected", "", 0.0, is_portable=True)
UNREAD = Bar("false_alarms.unread", "clean simulated files that are not read", "", 0.0, is_portable=True)
Writer = Callable[[Sequence[SimulatedRun]], Mapping[str, str]]

WRITERS: Mapping[str, Writer] = {
    "vLLM serve": vllm.serve,
    "vLLM serve, appended": vllm.appended,
    "vLLM serve, Rust": vllm.rust,
    "vLLM sweep": vllm.sweep,
    "vLLM throughput": vllm.throughput,
    "vLLM latency": vllm.latency,
    "InferenceX raw": vllm.inferencex_raw,
    "InferenceX aggregate": vllm.inferencex_agg,
    "GuideLLM": clients.guidellm,
    "AIPerf": clients.aiperf,
    "inference-perf": clients.inference_perf,
    "llm-d": clients.llmd,
    "MAD, metrics": tables.mad_metrics,
    "MAD, reports": tables.mad_reports,
    "NVIDIA CSV": tables.nvidia_csv,
    "NVIDIA JSON": tables.nvidia_json,
    "MLPerf": tables.mlperf,
    "claims, long": tables.claims_long,
    "claims, wide": tables.claims_wide,
}


@dataclass
class Verdicts:
    """What the audit said of one format."""

    verdicts: Counter[str] = field(default_factory=Counter)
    codes: Counter[tuple[str, str]] = field(default_factory=Counter)  # a status with a code, by rows
    alarms: list[str] = field(default_factory=list)  # a sentence for each rejected row
    unread: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Judged rows."""
        return self.verdicts.total()

    def add(self, one: Judged) -> None:
        """Count a row."""
        self.verdicts[one.verdict] += 1
        doubts = {(finding.status, finding.code) for finding in one.findings if finding.status in ("WARN", "FAIL")}
        self.codes.update(doubts)
        if one.verdict in ("rejected", "failed"):
            why = [f"{each.code}: {each.message}" for each in one.findings if each.status == "FAIL"]
            self.alarms.append(f"{one.claim.label} {one.claim.lineage.file} {one.claim.lineage.place}: {why}")


def verdicts(rows: int, seed: int, writers: Mapping[str, Writer] = WRITERS) -> dict[str, Verdicts]:
    """The verdicts of at least so many rows, an equal share of each format."""
    found = {name: Verdicts() for name in writers}
    least = -(-rows // len(writers))
    for runs in campaigns(seed):
        missing = [name for name, each in found.items() if each.rows < least]
        if not missing:
            return found
        for name in missing:
            _judge(writers[name](runs), found[name])
    raise AssertionError("campaigns are endless")


def _judge(files: Mapping[str, str], into: Verdicts) -> None:
    """Audit a campaign's files as one folder."""
    if not files:
        return
    with TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, "utf-8")
        found = audit([folder], AuditOptions())
    for one in found.judged:
        into.add(one)
    into.unread.extend(found.left_out)


def measure() -> Mapping[str, Measured]:
    """Rejected rows and unread files."""
    found = verdicts(ROWS, seed=1).values()
    return {
        REJECTED.name: Measured(sum(len(each.alarms) for each in found)),
        UNREAD.name: Measured(sum(len(each.unread) for each in found)),
    }


def lines(found: Mapping[str, Verdicts]) -> Iterator[str]:
    """Shares by format, codes, and each alarm."""
    for name, each in found.items():
        shares = ", ".join(f"{verdict} {rows / each.rows:.1%}" for verdict, rows in each.verdicts.most_common())
        yield f"{name}: {each.rows} rows: {shares}"
        yield "  " + ", ".join(f"{status} {code} {rows}" for (status, code), rows in each.codes.most_common())
        yield from (f"  REJECTED {alarm}" for alarm in each.alarms)
        yield from (f"  NOT READ {why}" for why in each.unread)


BENCHMARK = Benchmark("false_alarms", (REJECTED, UNREAD), measure, is_slow=True)


if __name__ == "__main__":
    print("\n".join(lines(verdicts(ROWS, int((sys.argv[1:] or ["1"])[0])))))
