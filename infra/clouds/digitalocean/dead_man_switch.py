"""Delete the machine this runs on at its deadline. The first boot installs it; standard library only.

    dead_man.py CONFIGURATION DEADLINE

The deadline file holds epoch seconds and is read every LOOK_S, so writing it extends a lease. A file that cannot be
read means now. A clock that is set back changes nothing: the uptime counts too. Failed deletions are repeated.
"""

import http.client
import json
import signal
import ssl
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

LOOK_S = 15.0  # between two looks at the deadline
AGAIN_S = 20.0  # between two attempts to delete
TIMEOUT_S = 30.0  # of one read
ATTEMPT_S = 120  # of one attempt to delete, whatever the cloud answers and however slowly
ANSWER_BYTES_MAX = 16 << 20
METADATA_HOST, METADATA_PATH = "169.254.169.254", "/metadata/v1"
METADATA_TIMEOUT_S = 5.0
GONE = (204, 404)


@dataclass(frozen=True)
class Instructions:
    """The configuration that the first boot has written."""

    endpoint: str
    token: str
    machine_name: str
    deadline: int
    ca: str | None


def is_due(deadline_file: Path, instructions: Instructions, clock_s: float, awake_s: float, lifetime_s: float) -> bool:
    """Whether the deadline has passed: by the clock, by the uptime, or because the file cannot be read."""
    try:
        deadline = int(deadline_file.read_text())
    except (OSError, ValueError):
        return True
    return clock_s >= deadline or awake_s >= lifetime_s + (deadline - instructions.deadline)


def machine_ids(instructions: Instructions) -> list[int]:
    """Every machine of our name; where the cloud lists none, our own id by its metadata service."""
    path = f"/v2/droplets?name={quote(instructions.machine_name)}"
    # The plain list hides machines with GPUs.
    named = {number for query in (f"{path}&type=gpus", path) for number in _listed(instructions, query)}
    # A machine that was created from our image may have this program on its disk: it has another name.
    if named or _metadata("hostname") != instructions.machine_name:
        return sorted(named)
    return [int(_metadata("id"))]


def _metadata(field: str) -> str:
    """One field of the cloud's metadata service for this machine."""
    connection = http.client.HTTPConnection(METADATA_HOST, timeout=METADATA_TIMEOUT_S)
    try:
        connection.request("GET", f"{METADATA_PATH}/{field}")
        return connection.getresponse().read(ANSWER_BYTES_MAX).decode().strip()
    finally:
        connection.close()


def _listed(instructions: Instructions, path: str) -> list[int]:
    status, body = _ask(instructions, "GET", path)
    if status != http.client.OK:
        return []
    droplets = json.loads(body).get("droplets", [])
    return [int(one["id"]) for one in droplets if one.get("name") == instructions.machine_name]


def _ask(instructions: Instructions, method: str, path: str) -> tuple[int, bytes]:
    place = urlsplit(instructions.endpoint)
    context = ssl.create_default_context(cadata=instructions.ca)
    connection = http.client.HTTPSConnection(place.hostname or "", place.port, timeout=TIMEOUT_S, context=context)
    try:
        connection.request(
            method, place.path.rstrip("/") + path, headers={"Authorization": f"Bearer {instructions.token}"}
        )
        answer = connection.getresponse()
        return answer.status, answer.read(ANSWER_BYTES_MAX)
    finally:
        connection.close()


def delete_once(instructions: Instructions) -> bool:
    """Request once that the cloud deletes this machine; whether it accepted. It is not deleted while this runs."""
    try:
        statuses = [_ask(instructions, "DELETE", f"/v2/droplets/{number}")[0] for number in machine_ids(instructions)]
    except Exception as error:  # noqa: BLE001 - whatever the answer was: the machine is billed until it is deleted
        say(f"could not delete this machine: {error!r}")
        return False
    say(f"requested the deletion of this machine: {statuses or 'the cloud lists no machine of its name'}")
    return bool(statuses) and all(status in GONE for status in statuses)


def attempt(instructions: Instructions) -> None:
    """Try to delete this machine, for ATTEMPT_S at most: a cloud whose answer never ends must not stop the next one."""
    try:
        signal.alarm(ATTEMPT_S)
        delete_once(instructions)
    except TimeoutError as error:  # just as the attempt ended
        say(str(error))
    finally:
        signal.alarm(0)


def give_up(_signal: int, _frame: object) -> None:
    """End an attempt that takes too long."""
    raise TimeoutError(f"no whole answer within {ATTEMPT_S} s")


def say(line: str) -> None:
    """Write one line to the log."""
    sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n")
    sys.stdout.flush()


def read_instructions(path: Path) -> Instructions:
    """Read the configuration that the first boot has written."""
    value: dict[str, Any] = json.loads(path.read_text())
    return Instructions(**value)


def main(argv: list[str]) -> None:
    """Wait for the deadline, then request the deletion of this machine until it is deleted."""
    instructions, deadline_file = read_instructions(Path(argv[1])), Path(argv[2])
    began = time.monotonic()
    lifetime_s = instructions.deadline - time.time()
    say(f"this machine will be deleted in {lifetime_s:.0f} s")
    while not is_due(deadline_file, instructions, time.time(), time.monotonic() - began, lifetime_s):
        time.sleep(LOOK_S)
    signal.signal(signal.SIGALRM, give_up)
    while True:
        attempt(instructions)
        time.sleep(AGAIN_S)


if __name__ == "__main__":
    main(sys.argv)
