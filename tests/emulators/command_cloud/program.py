"""The program behind the four scripts: `program.py SCRIPT STATE`. Standard library only, since each call starts anew.

STATE is a file with machines, offers, lags, faults by script and call, and what was called. One call at a time
changes it. A fault is done before or after the call has had its effect.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import struct
import sys
import time

TYPE_CHECKING = False  # importing typing takes as long as all else that a call does
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

State = dict[str, "Any"]
SIGKILL = 9  # as above
GARBAGE = (
    "",
    "this is not JSON",
    "[]",
    "null",
    "{}",
    '{"machine": null}',
    '{"machines": 3}',
    '{"offers": {}}',
    "[" * 9999,
)


def main(script: str, path: str) -> int:
    given = read_json() if script != "list" else {}
    with open(f"{path}.lock", "w") as lock:  # noqa: PTH123 - pathlib takes longer to import than all of this runs
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = read(path)
        count = state["calls"][script] = state["calls"].get(script, 0) + 1
        fault = state["faults"].pop(f"{script} {count}", "")
        state["given"][script] = given
        reply = None if fault.endswith("before") else CALLS[script](state, given, fault)
        write(path, state)
    return fail(fault.split()[0], state, count) if fault.endswith(("before", "after")) else say(reply)


def read(path: str) -> State:
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        state: State = marshal.load(file)  # noqa: S302 - we wrote it
        return state


def read_json() -> State:
    import json  # noqa: PLC0415 - takes longer than all of a `list`, which is called most

    given: State = json.load(sys.stdin)
    return given


def write(path: str, state: State) -> None:
    with open(f"{path}.new", "wb") as file:  # noqa: PTH123 - as above
        marshal.dump(state, file)
    os.rename(f"{path}.new", path)  # noqa: PTH104 - as above


def say(reply: object) -> int:
    sys.stdout.write("" if reply is None else json_of(reply))
    return 0


def json_of(value: object) -> str:
    """The JSON of what the state holds, whose texts have no character to escape."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{name}": {json_of(one)}' for name, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(json_of, value)) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return "null" if value is None else repr(value).lower()


def fail(how: str, state: State, count: int) -> int:
    if how == "fail":
        sys.stderr.write("the API answers 503\n")
        return 1
    if how == "garbage":
        return say_text(GARBAGE[count % len(GARBAGE)])
    if how == "others":
        return say({"machine": row(next(one for one in state["machines"] if one["foreign"]), state)})
    if how == "kill" and state["night"] == grandparent():
        os.kill(state["night"], SIGKILL)
        return 0
    if how == "flood":
        while True:
            say_text("x" * 65536)
    time.sleep(600)  # until `timeout` ends it
    return 0


def say_text(text: str) -> int:
    sys.stdout.write(text)
    return 0


def grandparent() -> int:
    """The process that runs the script, by way of `timeout`; a reaper calls it too."""
    with open(f"/proc/{os.getppid()}/stat") as file:  # noqa: PTH123 - as above
        return int(file.read().rpartition(")")[2].split()[1])


def now_s(state: State) -> float:
    if state["clock"] is None:
        return time.time()
    with open(state["clock"], "rb") as file:  # noqa: PTH123 - as above
        return float(struct.unpack("<d", file.read(8))[0])


def moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def offers(state: State, _given: State, _fault: str) -> State:
    return {"offers": state["offers"]}


def rent(state: State, given: State, fault: str) -> State:
    if fault == "refuse":
        return {"refused": "no-capacity", "reason": "none is free"}
    made = [add(state, given) for _ in range(2 if fault == "double" else 1)]
    if fault == "wrong id":
        theirs = next(one["id"] for one in state["machines"] if one["foreign"])
        return {"machine": {**row(made[0], state), "id": theirs}}
    return {"machine": row(made[0], state)}


def add(state: State, given: State) -> State:
    fate = state["fates"].pop(0) if state["fates"] else ""
    price = next((one["usd_per_hour"] for one in state["offers"] if one["kind"] == given["kind"]), 1.0)
    machine = {
        "id": str(100 + len(state["machines"])),
        "name": given["name"],
        "kind": given["kind"],
        "region": given["region"],
        "usd_per_hour": price,
        "created_s": now_s(state),
        "ended_s": None,
        "fate": fate,
        "foreign": False,
    }
    state["machines"].append(machine)
    return machine


def row(machine: State, state: State) -> State:
    age_s = now_s(state) - machine["created_s"]
    is_up = machine["fate"] == "" and age_s >= state["boot_s"]
    status = (
        "errored" if machine["fate"] == "errored" else "active" if is_up or machine["fate"] == "no address" else "new"
    )
    return {
        **{name: machine[name] for name in ("id", "name", "kind", "region", "usd_per_hour")},
        "status": status,
        "address": machine.get("address", "192.0.2.9") if is_up else None,
        "created_at": moment(machine["created_s"]),
    }


def listed(state: State, _given: State, fault: str) -> State:
    reclaim(state)
    now = now_s(state)
    shown = [one for one in state["machines"] if is_shown(one, now, state)] if fault != "empty" else []
    told = {"machines": [row(one, state) for one in shown]}
    return {**told, "now": moment(now), "account": state["account"]} if state["states_now"] else told


def is_shown(machine: State, now: float, state: State) -> bool:
    is_new = now < machine["created_s"] + state["lag_s"]
    ended_s = machine["ended_s"]
    return not is_new and (ended_s is None or bool(now < ended_s + state["gone_lag_s"]))


def reclaim(state: State) -> None:
    """End what the cloud takes back by itself at a moment."""
    at_s = state["reclaimed_at_s"]
    if at_s is not None and now_s(state) >= at_s:
        for machine in state["machines"]:
            if not machine["foreign"] and machine["ended_s"] is None and machine["created_s"] < at_s:
                machine["ended_s"] = at_s


def release(state: State, given: State, fault: str) -> None:
    state["release asked"].append(given["id"])
    for machine in state["machines"]:
        if machine["id"] == given["id"] and fault != "lie" and machine["ended_s"] is None:
            machine["ended_s"] = now_s(state)


CALLS: dict[str, Callable[[State, State, str], State | None]] = {
    "offers": offers,
    "rent": rent,
    "list": listed,
    "release": release,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
