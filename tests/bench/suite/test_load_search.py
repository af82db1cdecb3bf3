"""`[[sweeps]]` and `[[searches]]`: what they stand for, and what is refused before a night."""

import pytest

from bench.errors import SuiteError
from bench.plan import plan_runs
from bench.suite.parse import parse_suite
from bench.suite.scaling import scaled
from bench.suite.search import Goodput, Saturation
from bench.suite.suite import Suite

HEAD = """\
name = "load"
repeats = 3

[model]
name = "tiny"
source = "generated:tiny?seed=0"

[engine]
version = "0.32.0"
max_model_len = 4096
"""
SWEEP = """
[[sweeps]]
name = "users"
isl = 128
osl = 64
concurrency_max = 256
"""
SEARCH = """
[[searches]]
name = "chat"
isl = 128
osl = 64
request_count = 400
request_rate_per_s_min = 0.5
request_rate_per_s_max = 32.0
slo = { ttft_ms_max = 500.0 }
"""
LOCAL = """
[local]
length_scale = 0.1
probes_max = 5
concurrency_max = 8
request_rate_per_s_max = 4.0
slo = { ttft_ms_max = 2000.0, share_min = 0.9 }
model = { name = "small", source = "generated:small?seed=0" }
engine = { version = "0.32.0", max_model_len = 512 }
"""


def parsed(text: str) -> Suite:
    return parse_suite(HEAD + text, "suites/load.toml")


def refusal(text: str) -> str:
    with pytest.raises(SuiteError) as caught:
        parsed(text)
    return str(caught.value)


def test_a_search_is_planned_as_its_first_probe_once() -> None:
    suite = parsed(SWEEP + SEARCH)
    first, second = sorted(plan_runs(suite), key=lambda run: run.scenario.name == "users", reverse=True)
    assert (first.scenario.workload.concurrency, first.scenario.workload.request_count) == (1, 10)
    assert (second.scenario.workload.request_rate_per_s, second.scenario.workload.arrivals) == (0.5, "poisson")


def test_a_probe_has_the_id_of_the_same_scenario_written_out_and_is_run_once_for_both() -> None:
    written = """
[[scenarios]]
name = "one"
isl = 128
osl = 64
concurrency = 1
request_count = 10
warmup_count = 1
"""
    suite = parsed(written + SWEEP)
    assert len({scenario.scenario_id for scenario in suite.expand()}) == 1
    runs = plan_runs(suite)
    assert sorted(run.repeat for run in runs) == [0, 1, 2], "three repeats of the scenario, the first one for both"
    assert next(run.scenario.name for run in runs if run.repeat == 0) == "users"


def test_the_slo_of_the_suite_is_that_of_a_search_without_one() -> None:
    suite = parsed(SEARCH.replace("slo = { ttft_ms_max = 500.0 }", "") + "[slo]\ntpot_ms_max = 40.0\n")
    slo = suite.slo_of("chat/rate=2")
    assert slo is not None
    assert slo.bounds_ms == {"tpot": 40.0}


def test_an_slo_on_tokens_says_nothing_of_embeddings() -> None:
    slo = "[slo]\nttft_ms_max = 40.0\ne2el_ms_max = 500.0\n"
    plain = '[[scenarios]]\nname = "vectors"\ntask = "embed"\nisl = 8\nconcurrency = 1\nrequest_count = 8\n'
    search = SEARCH.replace("osl = 64", 'task = "embed"').replace("slo = { ttft_ms_max = 500.0 }", "")
    suite = parsed(plain + search + SWEEP + slo)

    assert [str(suite.slo_of(name)) for name in ("vectors", "chat/rate=2")] == [
        "99% of requests with e2el <= 500 ms"
    ] * 2
    assert str(suite.slo_of("users/concurrency=4")) == "99% of requests with ttft <= 40 ms and e2el <= 500 ms"
    assert parsed(plain + slo.replace("e2el_ms_max = 500.0", "")).slo_of("vectors") is None


def test_local_has_few_and_small_probes() -> None:
    suite = parsed(SWEEP + SEARCH + LOCAL)
    assert suite.local is not None
    sweep, search = (entry.search for entry in scaled(suite, suite.local).scenarios)
    assert isinstance(sweep, Saturation)
    assert isinstance(search, Goodput)
    assert (sweep.last, sweep.probes_max, sweep.requests_per_slot) == (8, 5, 10)
    assert (search.request_rate_per_s_min, search.request_rate_per_s_max) == (0.5, 4.0)
    assert search.slo == suite.local.slo


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SWEEP + "requests_per_slot = 5\n", "5 requests for each request in flight do not fill a level"),
        (SWEEP + "levels = [4, 2]\n", "each higher than the one before"),
        (SWEEP + "concurrency = 4\n", "concurrency_min and concurrency_max"),
        (SWEEP + "concurency_min = 4\n", "did you mean 'concurrency_min'?"),
        (SWEEP.replace("256", "1"), "concurrency_max must be above concurrency_min (1)"),
        (SWEEP + 'prompts = { kind = "multi-turn", turns = 2 }\n', "multi-turn is not possible"),
        (SEARCH.replace("32.0", "0.5"), "request_rate_per_s_max must be above request_rate_per_s_min (0.5)"),
        (SEARCH.replace("400", "50"), "give at least 100"),
        (SWEEP.replace("osl = 64", 'task = "embed"'), "a sweep looks at output tokens, and embeddings have none"),
        (
            SEARCH.replace("osl = 64", 'task = "embed"'),
            "search 'chat' has no SLO that embeddings can keep: give it slo = {e2el_ms_max",
        ),
        (SEARCH.replace("ttft_ms_max = 500.0", "share_min = 0.9"), "an SLO needs a bound"),
        (SEARCH.replace("slo = { ttft_ms_max = 500.0 }", ""), "load.toml:12: search 'chat' has no SLO"),
        (
            SEARCH.replace("400", "50").replace("slo = { ttft_ms_max = 500.0 }", "[slo]\nttft_ms_max = 9.0"),
            "load.toml:16: 50 requests cannot show that a share of 0.99 keeps the SLO: give at least 100",
        ),
        (SEARCH + SEARCH.replace('"chat"', '"twin"').replace("500.0", "900.0"), "begin with the same probe"),
    ],
)
def test_a_search_that_cannot_be_made_is_refused_with_file_and_line(text: str, said: str) -> None:
    refused = refusal(text)
    assert said in refused
    assert refused.startswith("suites/load.toml:")


def test_a_scenario_cannot_be_given_a_search() -> None:
    scenario = '[[scenarios]]\nname = "one"\nisl = 1\nosl = 1\nconcurrency = 1\nrequest_count = 1\nsearch = {}\n'
    assert "write a [[sweeps]] or a [[searches]] table" in refusal(scenario)
