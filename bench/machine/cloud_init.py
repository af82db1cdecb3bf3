"""The user_data of a rented machine's first boot: host key, users, dead man's switch and readiness.

cloud-init reads YAML, and JSON is YAML, so nothing here is quoted by hand. Commands use `${HOME:-/root}`: cloud-init
sets no HOME, and a machine of the emulator lives in a folder of its own.
"""

import base64
import hashlib
import json
from dataclasses import dataclass, field

from bench.errors import UsageError

BYTES_MAX = 64 * 1024  # of user_data, by the cloud
FOLDER = "${HOME:-/root}/nightbench"
# Under the home folder, written last of all. It holds a word of this machine's own, since an image that was made of an
# earlier machine has that one's file.
READY_FILE = "nightbench/ready"
DEADLINE_FILE = "nightbench/deadline"  # epoch seconds; a lease that is extended moves it
DEAD_MAN_LOG = "nightbench/dead-man.log"
NEEDED_PACKAGES = ("python3-venv", "gcc", "libc6-dev")
APT_LOCK_S = 240  # a first boot of the image's own may be installing
# Where the folder of root is root's own, the whole machine is ours, and what is meant for a machine may be done to it.
_IS_A_MACHINE = '[ "${HOME:-/root}" = /root ] && [ -d /run/systemd/system ]'
DEAD_MAN_UNIT_NAME = "nightbench-dead-man.service"
DEAD_MAN_UNIT = """\
[Unit]
Description=Delete this machine at its deadline
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/bin/python3 -I %h/nightbench/dead-man.py %h/nightbench/dead-man.json %h/nightbench/deadline
Restart=always
RestartSec=5
StandardOutput=append:%h/nightbench/dead-man.log
StandardError=inherit
[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True)
class HostKey:
    """The machine's own ed25519 pair in OpenSSH's formats, made before it exists, so that its first word is proof."""

    private: str = field(repr=False)
    public: str


@dataclass(frozen=True)
class DeadMan:
    """What deletes the machine from inside at its deadline: the source of `program` and its configuration.

    The token can delete every machine of its team, and whatever runs on the machine can read it: so it is off by
    default. `program` reads its configuration from the file named in its first argument.
    """

    program: str
    endpoint: str
    token: str = field(repr=False)
    machine_name: str
    deadline: int  # epoch seconds
    ca: str | None = None  # certificates to trust, as PEM; None: the machine's own


@dataclass(frozen=True)
class User:
    """Another user who may log in, beside root."""

    name: str
    public_key: str


def user_data(
    host_key: HostKey, *, dead_man: DeadMan | None, users: tuple[User, ...] = (), login_key: str | None = None
) -> str:
    """The first boot of one machine; its last step creates the ready file, unless an earlier step fails.

    `login_key`: the public key that logs in as root, where the cloud does not install one.

    Raises UsageError where it would be too long or hold what the cloud cannot carry: bad user_data fails a machine
    after the cloud has accepted it.
    """
    boot = {
        "ssh_deletekeys": True,  # the image's keys are known to everybody who has the image
        "ssh_keys": {"ed25519_private": host_key.private, "ed25519_public": host_key.public},
        "ssh_genkeytypes": [],
        "ssh_pwauth": False,
        "disable_root": False,
        "users": ["default", *map(_user, users)],
        # No package is upgraded during a measurement, and no step waits for the package database.
        "package_update": False,
        "package_upgrade": False,
        **({"ssh_authorized_keys": [login_key]} if login_key is not None else {}),
        "runcmd": [_commands(ready_word(host_key.public), dead_man)],
    }
    text = "#cloud-config\n" + json.dumps(boot, ensure_ascii=True, indent=1) + "\n"
    if "\\ud8" in text or "\\ud9" in text:
        raise UsageError(
            "a key or a name for the first boot has a character that YAML and JSON read differently: change it"
        )
    if len(text) > BYTES_MAX:
        raise UsageError(
            f"user_data of the first boot has {len(text)} bytes, and clouds accept {BYTES_MAX}: use fewer keys"
        )
    return text


def _user(user: User) -> dict[str, object]:
    return {
        "name": user.name,
        "groups": ["sudo", "video", "render"],  # who may use the GPU
        "shell": "/bin/bash",
        "sudo": "ALL=(ALL) NOPASSWD:ALL",
        "lock_passwd": True,
        "ssh_authorized_keys": [user.public_key],
    }


def ready_word(host_public_key: str) -> str:
    """What the ready file of the machine with this host key holds."""
    return hashlib.sha256(" ".join(host_public_key.split()[:2]).encode()).hexdigest()[:16]


def is_ready_command(host_public_key: str) -> str:
    """A shell command, run in the home folder, that succeeds once the first boot of this very machine is over."""
    return f'[ "$(cat {READY_FILE} 2>/dev/null)" = {ready_word(host_public_key)} ]'


def forgetting_script() -> str:
    """A shell script for a machine that an image is made from: it deletes what the next machine must not have.

    A switch from the image would have another machine's token and a deadline long past.
    """
    return "\n".join(["set -eu", 'cd "${HOME:-/root}"', *_FORGETTING, f"rm -f {READY_FILE}"])


# Also the first step of every boot, for images that were made in another way.
_FORGETTING = (
    f"if {_IS_A_MACHINE}; then",
    f"systemctl disable --now {DEAD_MAN_UNIT_NAME} 2>/dev/null || true",
    f"rm -f /etc/systemd/system/{DEAD_MAN_UNIT_NAME}",
    "systemctl daemon-reload",
    "fi",
    f"rm -f nightbench/dead-man.py nightbench/dead-man.json {DEADLINE_FILE} {DEAD_MAN_LOG}",
)


def install_needed() -> str:
    """A shell command that installs what our environment and the load client's calibration are built with.

    Images for GPUs come without it. Where it fails, whoever needs it says so in words of their own.
    """
    apt = f"apt-get -q -o DPkg::Lock::Timeout={APT_LOCK_S}"
    install = f"DEBIAN_FRONTEND=noninteractive {apt} install --yes --no-install-recommends {' '.join(NEEDED_PACKAGES)}"
    is_there = "{ python3 -c 'import ensurepip, venv' && command -v cc; } >/dev/null 2>&1"
    return f"{is_there} || {{ {apt} update; {install}; }} || true"


def _commands(word: str, dead_man: DeadMan | None) -> str:
    """One script: cloud-init goes on after a command that failed, a shell with -e does not."""
    steps = ["set -eu", "umask 077", 'cd "${HOME:-/root}"', "mkdir -p nightbench", *_FORGETTING]
    steps += [
        # What runs already is left to end: killing it would leave the package database half-way.
        f"if {_IS_A_MACHINE}; then systemctl disable --now apt-daily.timer apt-daily-upgrade.timer || true; fi",
    ]
    if dead_man is not None:
        steps += _arming(dead_man)
    # Only now: an installation may wait for its lock, and what deletes the machine must not.
    steps.append(f"if {_IS_A_MACHINE}; then {install_needed()}; fi")
    return "\n".join([*steps, f"printf %s {word} > {READY_FILE}"])


def _arming(dead_man: DeadMan) -> list[str]:
    told = {"endpoint": dead_man.endpoint, "token": dead_man.token, "machine_name": dead_man.machine_name}
    program, configuration, deadline = "nightbench/dead-man.py", "nightbench/dead-man.json", DEADLINE_FILE
    start = f'"{FOLDER}/dead-man.py" "{FOLDER}/dead-man.json" "{FOLDER}/deadline"'
    return [
        _file(program, dead_man.program),
        _file(configuration, json.dumps({**told, "ca": dead_man.ca, "deadline": dead_man.deadline})),
        _file(deadline, f"{dead_man.deadline}\n"),
        f"if {_IS_A_MACHINE}; then",
        _file(f"/etc/systemd/system/{DEAD_MAN_UNIT_NAME}", DEAD_MAN_UNIT),
        "systemctl daemon-reload",
        f"systemctl enable --now {DEAD_MAN_UNIT_NAME}",
        "else",
        f'setsid python3 -I {start} </dev/null >>"{FOLDER}/dead-man.log" 2>&1 &',
        "fi",
    ]


def _file(path: str, content: str) -> str:
    """A command that writes a file; the shell's own printf, so that nothing of it is seen in a list of processes."""
    return f"printf %s {base64.b64encode(content.encode()).decode()} | base64 -d > {path}"
