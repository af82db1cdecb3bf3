import base64
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.errors import UsageError
from bench.machine.cloud_init import (
    BYTES_MAX,
    DeadMan,
    HostKey,
    User,
    forgetting_script,
    install_needed,
    is_ready_command,
    ready_word,
    user_data,
)

KEY = HostKey(private="-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END-----\n", public="ssh-ed25519 AAAA nb")
DEAD_MAN = DeadMan(
    program="import time\ntime.sleep(0)\n",
    endpoint="https://127.0.0.1:1",
    token="dop_v1_secret",  # noqa: S106 - nobody's
    machine_name="nb-01k9x-a1-x1795248000",
    deadline=1795248000,
)


def _parsed(text: str) -> dict[str, Any]:
    assert text.startswith("#cloud-config\n")
    value = yaml.safe_load(text)
    assert isinstance(value, dict)
    return value


def _run(text: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands as cloud-init does: from one file, as a shell script."""
    script = home / "runcmd"
    script.write_text("#!/bin/sh\n" + "\n".join(_parsed(text)["runcmd"]) + "\n")
    environment = {**os.environ, "HOME": str(home)}
    return subprocess.run(
        ["sh", str(script)], env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def test_the_machine_gets_the_host_key_that_we_made() -> None:
    boot = _parsed(user_data(KEY, dead_man=None))

    assert boot["ssh_keys"] == {"ed25519_private": KEY.private, "ed25519_public": KEY.public}
    assert boot["ssh_deletekeys"] is True
    assert boot["ssh_pwauth"] is False


def test_it_is_ascii_whatever_a_key_is_called() -> None:
    text = user_data(HostKey("private", "ssh-ed25519 AAAA Jürgen"), dead_man=None)

    assert text.isascii()
    assert _parsed(text)["ssh_keys"]["ed25519_public"].endswith("Jürgen")


def test_a_character_that_yaml_would_garble_is_refused() -> None:
    with pytest.raises(UsageError, match="a character that YAML and JSON read differently"):
        user_data(HostKey("private", "ssh-ed25519 AAAA 🙂"), dead_man=None)


def test_more_than_a_cloud_takes_is_refused_before_it_is_asked() -> None:
    with pytest.raises(UsageError, match=f"bytes, and clouds accept {BYTES_MAX}"):
        user_data(HostKey("x" * BYTES_MAX, "public"), dead_man=None)


def test_users_may_use_the_gpu() -> None:
    boot = _parsed(user_data(KEY, dead_man=None, users=(User("ada", "ssh-ed25519 BBBB ada"),)))

    assert boot["users"][0] == "default"
    assert boot["users"][1]["name"] == "ada"
    assert {"video", "render"} <= set(boot["users"][1]["groups"])
    assert boot["users"][1]["ssh_authorized_keys"] == ["ssh-ed25519 BBBB ada"]


def test_the_last_act_is_to_say_ready(tmp_path: Path) -> None:
    text = user_data(KEY, dead_man=None)

    ran = _run(text, tmp_path)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "nightbench" / "ready").read_text() == ready_word(KEY.public)
    assert _parsed(text)["runcmd"][-1].splitlines()[-1].endswith("> nightbench/ready")


def _is_ready(home: Path, public: str) -> bool:
    return subprocess.run(["sh", "-c", is_ready_command(public)], cwd=home, check=False).returncode == 0


def test_a_machine_is_ready_when_its_own_first_boot_is_over(tmp_path: Path) -> None:
    assert not _is_ready(tmp_path, KEY.public)

    _run(user_data(KEY, dead_man=None), tmp_path)

    assert _is_ready(tmp_path, KEY.public)
    assert _is_ready(tmp_path, "ssh-ed25519 AAAA another comment")
    assert not _is_ready(tmp_path, "ssh-ed25519 BBBB the-next-machine-of-its-image")


def test_an_image_takes_no_dead_man_and_no_ready_file_along(tmp_path: Path) -> None:
    _run(user_data(KEY, dead_man=DEAD_MAN), tmp_path)

    ran = subprocess.run(["sh", "-c", forgetting_script()], env={**os.environ, "HOME": str(tmp_path)}, check=False)

    assert ran.returncode == 0
    assert [path.name for path in (tmp_path / "nightbench").iterdir() if path.suffix != ".log"] == []


def test_a_machine_without_a_dead_man_forgets_the_one_of_its_image(tmp_path: Path) -> None:
    _run(user_data(KEY, dead_man=DEAD_MAN), tmp_path)

    _run(user_data(KEY, dead_man=None), tmp_path)

    assert not list((tmp_path / "nightbench").glob("dead-man.*"))
    assert not (tmp_path / "nightbench" / "deadline").exists()


def test_a_dead_man_is_armed_before_it_is_ready(tmp_path: Path) -> None:
    ran = _run(user_data(KEY, dead_man=DEAD_MAN), tmp_path)

    folder = tmp_path / "nightbench"
    assert ran.returncode == 0
    assert (folder / "deadline").read_text() == "1795248000\n"
    told = json.loads((folder / "dead-man.json").read_text())
    assert told == {
        "endpoint": "https://127.0.0.1:1",
        "token": "dop_v1_secret",
        "machine_name": "nb-01k9x-a1-x1795248000",
        "deadline": 1795248000,
        "ca": None,
    }
    assert (folder / "dead-man.json").stat().st_mode & 0o077 == 0
    assert (folder / "ready").exists()


def test_a_machine_whose_dead_man_could_not_be_armed_is_never_ready(tmp_path: Path) -> None:
    (tmp_path / "nightbench").mkdir()
    (tmp_path / "nightbench" / "dead-man.py").mkdir()  # nothing can be written there

    ran = _run(user_data(KEY, dead_man=DEAD_MAN), tmp_path)

    assert ran.returncode != 0
    assert not (tmp_path / "nightbench" / "ready").exists()


def test_only_the_root_of_a_whole_machine_is_told_to_change_it() -> None:
    script = _parsed(user_data(KEY, dead_man=DEAD_MAN))["runcmd"][0]
    guard = 'if [ "${HOME:-/root}" = /root ] && [ -d /run/systemd/system ]; then'

    outside = re.sub(rf"{re.escape(guard)}.*?\bfi$", "", script, flags=re.DOTALL | re.MULTILINE)

    assert "systemctl" in script
    assert "systemctl" not in outside
    assert "/etc/" not in outside


def test_no_secret_stands_in_the_text_of_its_values() -> None:
    assert "secret" not in repr(DEAD_MAN)
    assert "PRIVATE" not in repr(KEY)


def test_the_unit_runs_the_program_that_was_sent() -> None:
    script = _parsed(user_data(KEY, dead_man=DEAD_MAN))["runcmd"][0]
    words = [base64.b64decode(word).decode() for word in re.findall(r"printf %s (\S+) \| base64", script)]

    assert DEAD_MAN.program in words
    assert any("Restart=always" in word for word in words)


@pytest.mark.parametrize(
    ("python_says", "has_compiler", "installs"), [(0, True, False), (1, True, True), (0, False, True)]
)
def test_what_builds_our_environment_is_installed_where_the_image_has_it_not(
    tmp_path: Path, python_says: int, has_compiler: bool, installs: bool
) -> None:
    tools = {"python3": f"exit {python_says}", "apt-get": f'echo "$@" >> {tmp_path}/asked'}
    for name, body in {**tools, **({"cc": "exit 0"} if has_compiler else {})}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)

    done = subprocess.run(["/bin/sh", "-euc", install_needed()], env={"PATH": str(tmp_path)}, check=False, timeout=300)

    asked = (tmp_path / "asked").read_text() if (tmp_path / "asked").exists() else ""
    assert done.returncode == 0
    assert ("update" in asked, "install --yes --no-install-recommends python3-venv gcc libc6-dev" in asked) == (
        installs,
    ) * 2
