"""Droplets that are real: each is its own sshd on its own loopback address, with a folder as its disk.

Its first boot does what cloud-init would: installs the host key of `user_data`, lets the account's keys in, answers
"please wait" for a while, and then runs `runcmd`.
"""

import itertools
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bench.suite.secret_names import looks_secret
from infra.settings import Settings
from tests.emulators.digitalocean.resources import Droplet, Image, Volume
from tests.emulators.sshd import MARK, Sshd, find_server, make_machine

_fleets = itertools.count(1)


def _bare(home: Path) -> None:
    """What an image holds before anybody puts something into it."""
    del home


@dataclass
class SshdDroplets:
    """A fleet in a folder. All its machines listen on `port`, each on its own address of 127.0.0.0/8.

    `furnish` puts what the image would hold into a new machine's HOME, before its first boot. Raises NoServerError
    where there is no sshd and none can be had.
    """

    folder: Path
    please_wait_s: float = 0.2  # of the wall's clock
    furnish: Callable[[Path], None] = _bare
    cache: Path = field(default_factory=lambda: Settings().cache)
    machines: dict[int, Sshd] = field(default_factory=dict)
    port: int = 0

    def __post_init__(self) -> None:
        find_server(self.cache)
        # Two test processes at once share the loopback network, so their machines have a second number of their own.
        self._network = f"127.{os.getpid() % 250 + 2}.{next(_fleets) % 250}"
        self._hosts = itertools.count(2)
        if not self.port:
            with socket.socket() as probe:
                probe.bind((f"{self._network}.1", 0))
                self.port = int(probe.getsockname()[1])

    def start(self, droplet: Droplet, keys: list[str]) -> str:
        """Bring the machine up; its first boot goes on in the background."""
        folder = self.folder / str(droplet.droplet_id)
        folder.mkdir(parents=True)
        boot = _cloud_config(droplet.user_data)
        host_key = (boot.get("ssh_keys") or {}).get("ed25519_private")
        if host_key:
            (folder / "host_key").write_text(host_key.rstrip() + "\n")
            (folder / "host_key").chmod(0o600)
        address = f"{self._network}.{next(self._hosts)}"
        machine = make_machine(folder, self.cache, address=address, port=self.port)
        self._fill(machine.home, droplet.image)
        machine.authorize(*keys, *(boot.get("ssh_authorized_keys") or []))
        machine.please_wait(True)
        machine.start()
        self.machines[droplet.droplet_id] = machine
        threading.Thread(target=self._first_boot, args=(machine, boot.get("runcmd") or []), daemon=True).start()
        return address

    def _fill(self, home: Path, image: Image) -> None:
        disk = self._disk(image)
        if disk.exists():
            shutil.copytree(disk, home, symlinks=True, dirs_exist_ok=True)
        else:
            self.furnish(home)

    def _disk(self, image: Image) -> Path:
        return self.folder / "snapshots" / str(image.image_id)

    def _first_boot(self, machine: Sshd, commands: list[Any]) -> None:
        """Ends early, and harmlessly, where the machine is taken away in the middle."""
        time.sleep(self.please_wait_s)
        if machine.process is None:
            return
        machine.please_wait(False)
        script = "\n".join(one if isinstance(one, str) else subprocess.list2cmdline(one) for one in commands)
        # A new machine has none of this computer's secrets.
        ours = {name: value for name, value in os.environ.items() if not looks_secret(name)}
        environment = {**ours, "HOME": str(machine.home), MARK: machine.mark}
        with (machine.folder / "first-boot.log").open("ab") as log:
            subprocess.run(
                ["/bin/sh", "-c", script],
                cwd=machine.home,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                check=False,
            )

    def halt(self, droplet: Droplet) -> None:
        """Switch it off; its disk stays."""
        machine = self.machines.get(droplet.droplet_id)
        if machine is not None:
            machine.stop()

    def wake(self, droplet: Droplet) -> None:
        """Switch it on again, without a first boot."""
        machine = self.machines.get(droplet.droplet_id)
        if machine is not None and machine.process is None:
            machine.start()

    def keep(self, droplet: Droplet, image: Image) -> None:
        """Copy its disk into a snapshot."""
        machine = self.machines.get(droplet.droplet_id)
        if machine is not None:
            shutil.copytree(machine.home, self._disk(image), symlinks=True)

    def plug(self, droplet: Droplet, volume: Volume) -> None:
        """Mount a volume under its label, as the real ones are under /mnt; here a mount is a link to its folder."""
        machine = self.machines.get(droplet.droplet_id)
        if machine is not None and volume.filesystem_label:
            disk = self.folder / "volumes" / volume.volume_id
            disk.mkdir(parents=True, exist_ok=True)
            (machine.home / "mnt").mkdir(exist_ok=True)
            (machine.home / "mnt" / volume.filesystem_label).symlink_to(disk)

    def unplug(self, droplet: Droplet, volume: Volume) -> None:
        """Take the link away."""
        machine = self.machines.get(droplet.droplet_id)
        if machine is not None and volume.filesystem_label:
            (machine.home / "mnt" / volume.filesystem_label).unlink(missing_ok=True)

    def stop(self, droplet: Droplet) -> None:
        """Take it away with its processes and its disk."""
        machine = self.machines.pop(droplet.droplet_id, None)
        if machine is not None:
            machine.stop()
            shutil.rmtree(machine.folder, ignore_errors=True)


def _cloud_config(text: str | None) -> dict[str, Any]:
    """What user_data asks for; user_data of another kind asks for nothing here."""
    if text is None or not text.startswith("#cloud-config"):
        return {}
    return dict(yaml.safe_load(text) or {})
