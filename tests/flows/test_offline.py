"""A night with its engine and model at hand needs no network: it runs where there is only this computer itself."""

import subprocess
import sys

import pytest

from tests.flows.conftest import NightFixture
from tests.flows.deployed import ROOT

# A new network namespace has a loopback that is down; SIOCSIFFLAGS sets IFF_UP and IFF_RUNNING.
ALONE = """
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14s", b"lo", 0x41, b""))
os.execv(sys.executable, [sys.executable, "-m", "flows", *sys.argv[1:]])
"""


@pytest.mark.matrix  # a whole night, of which only the network differs
@pytest.mark.prefect
def test_a_night_without_a_network_ends_as_any_other(house: NightFixture) -> None:
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not create a network namespace")
    argv = ["unshare", "-rn", sys.executable, "-c", ALONE, "run", str(house.suite), "--poc"]

    done = subprocess.run(
        argv, cwd=ROOT, env=house.environment, capture_output=True, text=True, timeout=600, check=False
    )

    assert done.returncode in {0, 1}, done.stderr  # 1: the noise of this host
    assert "report: " in done.stdout
