"""A night whose load comes from two client hosts, each a real sshd on this computer."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from bench.errors import SuiteError
from flows.show.plan import client_hosts
from infra.loadgen.suite_file import make_night
from infra.loadgen.truth.run import find_compiler
from tests.emulators.sshd import Sshd, make_key, running_machine
from tests.flows.conftest import NightFixture
from tests.flows.serving import PATIENCE_S
from tests.flows.test_endpoint import findings_of, measure, record_of, row_of, write_suite
from tests.meter.conftest import StartTruth, start_truth

__all__ = ["start_truth"]  # a fixture
CLIENT = '\n[client]\nhosts = ["root@127.0.0.7:{}", "root@127.0.0.8:{}"]\n'


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Sshd, ...]]:
    """Two hosts that let this computer in, and whose keys it knows."""
    public = make_key(tmp_path / "client")
    with ExitStack() as stack:
        machines = tuple(
            stack.enter_context(running_machine(tmp_path / address, public, address=address))
            for address in ("127.0.0.7", "127.0.0.8")
        )
        known = "".join(f"[{one.address}]:{one.port} {one.host_public_key}\n" for one in machines)
        (tmp_path / "known_hosts").write_text(known)
        monkeypatch.setenv("NIGHTBENCH_SSH_KEY", str(tmp_path / "client"))
        monkeypatch.setenv("NIGHTBENCH_SSH_KNOWN_HOSTS", str(tmp_path / "known_hosts"))
        yield machines


def shared_suite(house: NightFixture, hosts: tuple[Sshd, ...]) -> Path:
    suite = write_suite(house)
    client = CLIENT.format(*(one.port for one in hosts))
    suite.write_text(suite.read_text().replace("concurrency = 1", "concurrency = 3") + client)
    return suite


@pytest.mark.usefixtures("nights_without_prefect")
@pytest.mark.skipif(find_compiler() is None, reason="no C compiler here")
def test_two_client_hosts_share_the_load_of_a_night_and_are_calibrated_together(
    house: NightFixture, start_truth: StartTruth, hosts: tuple[Sshd, ...]
) -> None:
    truth = start_truth()

    night = measure(house, truth.url, shared_suite(house, hosts))

    record, folder = record_of(house, night)
    assert (record.outcome, record.reason, record.asked.client_hosts) == ("measured", None, 2)
    head = json.loads((folder / "load" / "meter.json").read_bytes())
    assert [one["name"] for one in head["hosts"]] == [f"root@{one.address}:{one.port}" for one in hosts]
    assert [one["requests"] for one in head["hosts"]] == [7, 6]
    assert (head["ok"], len({entry["request_id"] for entry in truth.log("received")} - {""})) >= (12, 13)
    assert row_of(house, "client_hosts", "client_clock_error_ms > 0", "completed") == (2, True, 12)
    assert "client_clocks_apart" in findings_of(house)
    (table,) = (house.data / "runs" / night).glob("calibration*.json")
    points = json.loads(table.read_bytes())["points"]
    assert {(point["client_hosts"], point["ok"] == point["requests"]) for point in points} == {(2, True)}
    assert record.calibration is not None
    assert {load.client_hosts for load in record.calibration.loads} <= {2}
    assert psutil.wait_procs([one for host in hosts for one in host.marked()], timeout=PATIENCE_S)[1] == []


def test_the_plan_names_the_client_hosts(house: NightFixture) -> None:
    suite = write_suite(house)
    suite.write_text(suite.read_text().replace("concurrency = 1", "concurrency = 2") + CLIENT.format(22, 2222))

    night = make_night(suite, "http://127.0.0.1:1", poc=False)

    assert list(client_hosts(night)) == [
        "the load comes from 2 client hosts, each with a share of every run: root@127.0.0.7:22, root@127.0.0.8:2222"
    ]


def test_a_server_that_the_night_starts_has_no_client_hosts(house: NightFixture) -> None:
    suite = write_suite(house)
    text = suite.read_text().replace('name = "endpoint"\nversion = "as found"', 'name = "vllm"\nversion = "0.32.0"')
    suite.write_text(text.replace("concurrency = 1", "concurrency = 2") + CLIENT.format(22, 22))

    with pytest.raises(SuiteError, match=r"client.hosts send the load to a server that already runs.*local"):
        make_night(suite, "local", poc=False)
