"""The twins of MLPerf's summaries: `python -m tests.data.formats.mlperf.make` writes them anew."""

import json
from pathlib import Path
from typing import Any

RULE = "=" * 48
RESULT = {
    "Submitter": "Nobody",
    "Availability": "available",
    "Category": "closed",
    "Suite": "datacenter",
    "System": "8x Example",
    "Platform": "example-8",
    "Nodes": 2,
    "Accelerator": "AMD Instinct MI300X",
    "a#": 8,
    "Software": "vLLM",
    "UsedModel": "llama2-70b",
    "weight_data_types": "fp8",
    "has_power": False,
    "version": "v5.1",
}


def offline(result: str = "VALID", satisfied: str = "Yes") -> str:
    """Made after the fields that LoadGen prints; the numbers are nobody's."""
    ns = {
        "Min": 601,
        "Max": 640,
        "Mean": 620,
        "50.00 percentile": 619,
        "90.00 percentile": 636,
        "99.00 percentile": 639,
    }
    return "\n".join(
        [
            RULE, "MLPerf Results Summary", RULE,
            "SUT name : ExampleSUT", "Scenario : Offline", "Mode     : PerformanceOnly",
            "Samples per second: 38.4", "Tokens per second: 11520.5",
            f"Result is : {result}", f"  Min duration satisfied : {satisfied}", "  Min queries satisfied : Yes",
            "  Early stopping satisfied: Yes", "", RULE, "Additional Stats", RULE,
            *(f"{name} latency (ns)".ljust(32) + f": {seconds}000000000" for name, seconds in ns.items()),
            "", RULE, "Test Parameters Used", RULE,
            "samples_per_query : 24576", "target_qps : 38", "ttft_latency (ns): 2000000000",
            "min_duration (ms): 600000", "", "No warnings encountered during test.",
            "", "No errors encountered during test.", "",
        ]
    )  # fmt: skip


def server() -> str:
    lines = (
        RULE, "MLPerf Results Summary", RULE,
        "SUT name : ExampleSUT", "Scenario : Server", "Mode     : PerformanceOnly",
        "Completed samples per second    : 34.9", "Completed tokens per second: 10470.3",
        "Result is : VALID", "  Performance constraints satisfied : Yes", "  Min duration satisfied : Yes",
        "TTFT Early Stopping Result:", "", RULE, "Additional Stats", RULE,
        "Scheduled samples per second : 35.1",
        "Mean latency (ns)                : 21000000000", "99.00 percentile latency (ns)    : 45000000000",
        "Mean First Token latency (ns)    : 300000000", "99.00 percentile first token latency (ns) : 1200000000",
        "Mean Time to Output Token (ns)   : 70000000", "99.00 percentile time to output token (ns): 150000000",
        "", RULE, "Test Parameters Used", RULE, "target_qps : 35", "",
    )  # fmt: skip
    return "\n".join(lines)


def rows() -> list[dict[str, Any]]:
    def row(number: int, model: str, scenario: str, value: float, units: str) -> dict[str, Any]:
        said = {"Model": model, "Scenario": scenario, "Performance_Result": value, "Performance_Units": units}
        return {"ID": f"5.1-{number:04}", **RESULT, **said}

    return [
        row(1, "llama2-70b-99", "Offline", 56000.5, "Tokens/s"),
        row(1, "llama2-70b-99.9", "Offline", 56000.5, "Tokens/s"),
        row(1, "llama2-70b-99.9", "Server", 52000.25, "Tokens/s"),
        row(2, "stable-diffusion-xl", "Offline", 18.5, "Samples/s"),
    ]


def files() -> dict[str, str]:
    return {
        "offline_summary.txt": offline(),
        "server_summary.txt": server(),
        "summary_results.json": json.dumps(rows(), indent=1) + "\n",
    }


if __name__ == "__main__":
    for name, text in files().items():
        (Path(__file__).parent / name).write_text(text)
