"""The client hosts of a suite: which forms they have, and which loads they cannot share."""

import pytest

from bench.errors import SuiteError
from bench.suite.parse import parse_suite
from bench.suite.suite import Suite

SUITE = """
name = "shared"

[model]
name = "small"
source = "generated:small"

[engine]
name = "vllm"
version = "0.32.0"
max_model_len = 4096

[client]
hosts = {hosts}

[[scenarios]]
name = "one"
isl = 16
osl = 8
request_count = 12
{load}
"""
TWO = '["me@a", "me@b:2222"]'


def suite(hosts: str = TWO, load: str = "concurrency = 4") -> Suite:
    return parse_suite(SUITE.format(hosts=hosts, load=load), "suites/shared.toml")


def test_the_number_of_hosts_is_in_the_id_of_a_scenario_and_their_names_are_not() -> None:
    (one,), (two,), (other,) = (suite(hosts).expand() for hosts in ("[]", TWO, '["me@c", "you@d"]'))

    assert (one.client_hosts, two.client_hosts) == (0, 2)
    assert two.scenario_id == other.scenario_id != one.scenario_id
    assert two.server_id == one.server_id


@pytest.mark.parametrize(
    ("hosts", "load", "reason"),
    [
        ('["a"]', "concurrency = 4", "'a' must have the form user@host or user@host:port"),
        ('["me@a", "me@a:22"]', "concurrency = 4", "me@a:22 is named twice"),
        (TWO, "concurrency = 1", "they have 2 workers, and its concurrency is 1"),
        (TWO, "concurrency = 4\nworkers = 4", "they have 8 workers, and its concurrency is 4"),
        (TWO, 'concurrency = 4\ndriver = "vllm-bench"', "the driver vllm-bench has one client"),
        (
            f"[{', '.join(f'''{chr(34)}me@{n}{chr(34)}''' for n in range(13))}]",
            "request_rate_per_s = 1.0\narrivals = 'constant'",
            "it has 12 requests",
        ),
    ],
)
def test_what_hosts_cannot_share_is_refused_with_its_reason(hosts: str, load: str, reason: str) -> None:
    with pytest.raises(SuiteError, match=r"suites/shared\.toml:") as refused:
        suite(hosts, load)

    assert reason in str(refused.value)
