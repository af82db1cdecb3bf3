"""A generalized machine has the software, and no keys, secrets or data of its machine or lease."""

import os
import subprocess
from pathlib import Path

import pytest

from infra.images.generalize import generalize_script


def run_sealed(home: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    """Generalize a folder as if it were a machine's home, in a mount namespace of its own."""
    argv = ["unshare", "--mount", "sh", "-c", f'{before}\nsh -c "$SEAL"; code=$?; cat /proc/mounts; exit $code']
    environment = {**os.environ, "HOME": str(home), "SEAL": generalize_script()}
    return subprocess.run(argv, cwd=home, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mount namespaces cannot be made here")
    home = tmp_path / "home"
    for name in ("venv/a/bin/python", "cache/engines/b", "cache/truth/c", "leases/1/secret.env", "code/d", "ready"):
        (home / "nightbench" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "nightbench" / name).write_text("x")
    (home / "nightbench" / "data" / "scratch").mkdir(parents=True)
    (home / ".ssh").mkdir()
    (home / ".ssh" / "authorized_keys").write_text("ssh-ed25519 AAAA")
    return home


def files(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}


def test_only_software_is_left(home: Path) -> None:
    done = run_sealed(home)

    assert done.returncode == 0, done.stderr
    assert files(home) == {"nightbench/venv/a/bin/python", "nightbench/cache/engines/b"}


def test_a_scratch_disk_is_unmounted_and_its_files_stay(home: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    (disk / "models").mkdir(parents=True)
    (disk / "models" / "weights").write_text("x")

    done = run_sealed(home, f'mount --bind "{disk}" "$HOME/nightbench/data/scratch"')

    assert done.returncode == 0, done.stderr
    assert f"{home}/nightbench/data/scratch" not in done.stdout
    assert (disk / "models" / "weights").exists()
    assert files(home) == {"nightbench/venv/a/bin/python", "nightbench/cache/engines/b"}
