"""The end of a lease sets power caps back, here and on a host of one's own, however its night ended."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bench.errors import CloudError
from bench.machine.names import MachineName
from bench.suite.target import OwnHost
from infra.clock import SystemClock
from infra.clouds.cloud import Cloud, MachineOrder
from infra.clouds.local import LocalCloud
from infra.clouds.static import StaticCloud
from infra.hardware.power_cap import hold_cap
from infra.remote.deploy import HOME
from infra.remote.host import Access
from infra.remote.ssh_host import SshHost
from tests.emulators.sshd import make_key, running_machine
from tests.infra.fake_gpus import FakeGpus


@pytest.fixture(params=["here", "over SSH"])
def rented(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Cloud, Path]]:
    """A cloud and its folder of machines."""
    if request.param == "here":
        yield LocalCloud(tmp_path / "machines"), tmp_path / "machines"
        return
    path = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    with running_machine(tmp_path / "far", make_key(tmp_path / "client"), environment=path) as far:
        access = Access(far.address, far.port, "root", tmp_path / "client", far.host_public_key)
        own = OwnHost("root", far.address, far.port)
        yield (
            StaticCloud(own, lambda: SshHost(access, patience_s=1, connect_s=2), SystemClock()),
            (far.home / HOME / "data" / "machines"),
        )


def test_a_released_machine_has_the_caps_of_before_and_is_not_free_without_them(
    rented: tuple[Cloud, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    cloud, folder = rented
    gpus = FakeGpus(tmp_path / "gpus", tmp_path / "bin")
    name = MachineName("aaa", 1, SystemClock().now() + timedelta(hours=1))
    machine = cloud.rent(MachineOrder(name, cloud.offers()[0], night="2026-03-01"))
    hold_cap(folder / machine.machine_id, 400.0, print)
    capped, tool = gpus.caps, tmp_path / "bin" / "nvidia-smi"
    tool.rename(aside := tmp_path / "aside")

    with pytest.raises(CloudError, match=r"undo-power-cap\.sh"):
        cloud.release(machine.machine_id)
    still_held = cloud.find_by_id(machine.machine_id)
    aside.rename(tool)
    cloud.release(machine.machine_id)

    assert (capped, gpus.caps) == ((400.0, 400.0), (700.0, 700.0))
    assert still_held is not None
    assert cloud.find_ours() == []
    assert list(folder.glob("*")) == []
