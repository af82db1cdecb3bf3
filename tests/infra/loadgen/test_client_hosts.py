"""The error of the load client with its load on several hosts, against the truth server; shells stand for the hosts."""

from pathlib import Path

import pytest

from bench.client_error.calibration import LoadCell
from bench.errors import CalibrationError
from bench.loadgen.drivers.target import ClientHost
from infra.loadgen.calibration import Clients, run_cell
from infra.loadgen.client_address import address_for
from infra.loadgen.truth.run import build_server, find_compiler
from infra.settings import Settings

SHELL = ("sh", "-c")


def at(address: str, name: str = "a") -> ClientHost:
    return ClientHost(name, ("sh", "-c", f"SSH_CONNECTION='{address} 1 2 3'; eval \"$0\""))


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler here")
def test_the_error_of_the_merged_client_is_that_of_all_its_requests(tmp_path: Path) -> None:
    hosts = (ClientHost("a", SHELL), ClientHost("b", SHELL))
    cell = LoadCell(streams=4, ttft_ms=20, itl_ms=5, output_tokens=10, request_count=8, client_hosts=2)

    point = run_cell(cell, build_server(Settings().cache), tmp_path, Clients(hosts, "127.0.0.5"))

    assert (point.client_hosts, point.requests, point.ok) == (2, 8, 8)
    assert point.ttft_mean_error_ms >= 0  # a client cannot see a token before it is written


def test_this_computer_has_the_address_that_the_hosts_see() -> None:
    assert address_for(()) == "127.0.0.1"
    assert address_for([at("10.0.0.7"), at("10.0.0.7", "b")]) == "10.0.0.7"


@pytest.mark.parametrize(
    ("hosts", "reason"),
    [
        ([at("10.0.0.7"), at("10.1.0.7", "b")], "different addresses: a sees 10.0.0.7, b sees 10.1.0.7"),
        ([at("fd00::7")], "the truth server has IPv4 only"),
        ([ClientHost("a", ("sh", "-c", "echo refused >&2; exit 255"))], "client host a cannot be reached: refused"),
    ],
)
def test_hosts_that_cannot_reach_this_computer_are_reported(hosts: list[ClientHost], reason: str) -> None:
    with pytest.raises(CalibrationError, match=reason):
        address_for(hosts)
