"""Two load clients on one load, side by side: what differs, and what of it their known errors explain.

A client's bias is its value minus that of the truth server, both in the same run, by the same formulas.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from pydantic import ValidationError

from bench.client_error.truth import ClientTimes, Truth, at_places, nearest_rank
from bench.errors import UsageError
from bench.loadgen.report import LoadReport
from bench.metrics import Floats, output_throughput_tok_per_s
from bench.suite.engine import Engine
from bench.suite.machine import Machine
from bench.suite.model import Model
from bench.suite.scenario import Scenario
from bench.suite.workload import Driver, Workload

METER = "meter"
# Of these the meter gives the same metric for every client, from its times a request.
UNITS = {
    "ttft_mean": "ms",
    "ttft_p50": "ms",
    "itl_event_mean": "ms",
    "itl_event_p50": "ms",
    "itl_event_p99": "ms",
    "output_throughput": "tok/s",
}
Values = dict[str, float | None]


@dataclass(frozen=True)
class ClientRun:
    """One client's run of the load: its values, and the error of its run against the truth server."""

    client: str
    version: str | None
    said: Values
    bias: Values
    requests: int
    failed: int


@dataclass(frozen=True)
class CrosscheckRow:
    """One metric by the meter and by another client; None where one of them does not say it.

    `difference` is the other's minus the meter's, `left` what of it the two biases do not explain.
    """

    metric: str
    unit: str
    client: str
    meter_value: float | None
    value: float | None
    difference: float | None
    meter_bias: float | None
    bias: float | None
    left: float | None


def truth_scenario(workload: Workload) -> Scenario:
    """A load on the truth server, which has no version and runs no model."""
    engine = Engine(version="truth", max_model_len=workload.isl + workload.osl)
    return Scenario(
        name="crosscheck",
        machine=Machine(),
        model=Model(name="truth", source="generated:tiny?seed=0"),
        engine=engine,
        workload=workload,
    )


def driven_by(scenario: Scenario, driver: Driver) -> Scenario:
    """The same scenario driven by this client; UsageError where the client cannot ask that.

    No load is sized by a probe here: both clients send `request_count` requests.
    """
    try:
        workload = Workload.model_validate(scenario.workload.model_dump() | {"driver": driver, "load_s": None})
    except ValidationError as error:
        said = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"scenario {scenario.name!r} cannot be cross-checked: {said}") from error
    return scenario.model_copy(update={"workload": workload})


def said_by(report: LoadReport) -> Values:
    """What a client says of its good requests."""
    requests = report.requests
    throughput = output_throughput_tok_per_s(requests)
    ttft_ms = requests.ttft_s[~np.isnan(requests.ttft_s)] * 1e3
    return _values(ttft_ms, requests.ok_gap_s * 1e3, throughput)


def written_in(truth: Truth, measured: int) -> Values:
    """What was true of the last requests that arrived, so many as were measured: warm-up came before them."""
    seen = at_places(truth, np.arange(len(truth.ids))[-measured:])
    return _values(seen.ttft_ms, seen.gaps_ms, _written_tok_per_s(truth, seen, measured))


def _written_tok_per_s(truth: Truth, seen: ClientTimes, measured: int) -> float | None:
    if not len(seen.event_ns):
        return None
    tokens = int(truth.tokens[truth.at[-measured - 1] :].sum())
    return tokens / float(seen.event_ns.max() - seen.send_ns.min()) * 1e9


def _values(ttft_ms: Floats, gaps_ms: Floats, throughput: float | None) -> Values:
    return {
        "ttft_mean": float(ttft_ms.mean()) if len(ttft_ms) else None,
        "ttft_p50": _rank(ttft_ms, 0.5),
        "itl_event_mean": float(gaps_ms.mean()) if len(gaps_ms) else None,
        "itl_event_p50": _rank(gaps_ms, 0.5),
        "itl_event_p99": _rank(gaps_ms, 0.99),
        "output_throughput": throughput,
    }


def _rank(values: Floats, share: float) -> float | None:
    return nearest_rank(values, share) if len(values) else None


def minus(these: Mapping[str, float | None], those: Mapping[str, float | None]) -> Values:
    """These values less those, by name; None where one is missing."""
    return {name: _less(these[name], those[name]) for name in UNITS}


def _less(this: float | None, that: float | None) -> float | None:
    return None if this is None or that is None else this - that


def side_by_side(sides: list[ClientRun]) -> Iterator[CrosscheckRow]:
    """A row for each metric and each client beside the meter, which is the first side."""
    meter, *others = sides
    for other in others:
        difference, explained = minus(other.said, meter.said), minus(other.bias, meter.bias)
        left = minus(difference, explained)
        for metric, unit in UNITS.items():
            yield CrosscheckRow(
                metric=metric,
                unit=unit,
                client=other.client,
                meter_value=meter.said[metric],
                value=other.said[metric],
                difference=difference[metric],
                meter_bias=meter.bias[metric],
                bias=other.bias[metric],
                left=left[metric],
            )
