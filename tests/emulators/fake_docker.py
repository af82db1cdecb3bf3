"""Stands in for the `docker` program: containers that outlive their client, images by digest, docker's own words.

    fake_docker.py version|pull|image inspect|run|rm|inspect|ps|top|stop ...

State is in the folder FAKE_DOCKER names: one JSON file a container, one line an image or a layer. An image of a
registry on loopback is really pulled: its manifests, and each layer that is not there yet. The program in a container
is the one that FAKE_DOCKER_PROGRAM names, whatever its image; or Python. FAKE_DOCKER_FAULT (a file, read each time)
breaks things.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

STATE = Path(os.environ["FAKE_DOCKER"])
# Options of `docker run` that take no value; every other one takes the next word.
BARE = {"--rm"}
EXPECTED = ("manifest unknown", "toomanyrequests", "no space left on device", "connection reset by peer")


def say(line: str) -> None:
    """One line on stdout, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def fail(line: str, code: int = 1) -> int:
    """End like docker does."""
    sys.stderr.write(line + "\n")
    return code


def take_fault(name: str) -> bool:
    """Whether this fault is planned; each line of the file strikes once."""
    path = STATE / "faults"
    lines = path.read_text().splitlines() if path.exists() else []
    if name not in lines:
        return False
    lines.remove(name)
    path.write_text("\n".join(lines))
    return True


def container_file(name: str) -> Path:
    """Where a container's state is."""
    return STATE / "containers" / f"{name}.json"


def images() -> list[str]:
    """Every image that was pulled, by name and digest."""
    path = STATE / "images"
    return path.read_text().splitlines() if path.exists() else []


LOOPBACK = re.compile(r"(127\.0\.0\.1:\d+)/(.+)@(sha256:[0-9a-f]{64})")
MANIFESTS = ", ".join(f"application/vnd.oci.image.{kind}.v1+json" for kind in ("index", "manifest"))


def layers_of(registry: str, repository: str, digest: str) -> list[str]:
    """The digests of an image's layers, base first, as its registry has them."""
    manifest = json.loads(get(registry, repository, f"manifests/{digest}"))
    if "manifests" in manifest:
        (ours,) = [one["digest"] for one in manifest["manifests"] if one["platform"]["os"] == "linux"]
        return layers_of(registry, repository, ours)
    return [layer["digest"] for layer in manifest["layers"]]


def get(registry: str, repository: str, path: str) -> bytes:
    """An answer of a registry, with its anonymous token."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(f"http://{registry}/token?scope=repository:{repository}:pull", timeout=60) as answer:
        token = json.loads(answer.read())["token"]
    headers = {"Accept": MANIFESTS, "Authorization": f"Bearer {token}"}
    asked = urllib.request.Request(f"http://{registry}/v2/{repository}/{path}", headers=headers)
    with direct.open(asked, timeout=60) as answer:
        return bytes(answer.read())


def pull_layers(registry: str, repository: str, digest: str) -> None:
    """Pull each layer that is not here yet; a layer belongs to every image that has it."""
    path = STATE / "layers"
    for layer in layers_of(registry, repository, digest):
        short = layer.removeprefix("sha256:")[:12]
        if path.exists() and layer in path.read_text().splitlines():
            say(f"{short}: Already exists")
            continue
        say(f"{short}: Pulling fs layer")
        get(registry, repository, f"blobs/{layer}")
        with path.open("a") as sink:
            sink.write(layer + "\n")
        say(f"{short}: Pull complete")


def pull(image: str) -> int:
    """Pull an image of three layers, or those that its registry on loopback has, or fail in docker's words."""
    for words in EXPECTED:
        if take_fault(words):
            say("aaaaaaaaaaaa: Pulling fs layer")
            return fail(f"Error response from daemon: {words}")
    if take_fault("silence"):
        time.sleep(60)
    if here := LOOPBACK.fullmatch(image):
        pull_layers(*here.groups())
    else:
        for layer in ("aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"):
            say(f"{layer}: Pulling fs layer")
        for layer in ("aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"):
            say(f"{layer}: Pull complete")
    say(f"Digest: {image.partition('@')[2]}")
    say(f"Status: Downloaded newer image for {image}")
    with (STATE / "images").open("a") as sink:
        sink.write(image + "\n")
    return 0


def image_inspect(words: list[str]) -> int:
    """The digests of an image, asked for by name or by id."""
    wanted = words[-1]
    found = [image for image in images() if wanted in (image, identity(image))]
    if not found:
        return fail(f"Error response from daemon: No such image: {wanted}")
    digests = [found[0].partition("@")[0] + "@sha256:" + "9" * 64] if take_fault("other digest") else found
    say(json.dumps(digests))
    return 0


def identity(image: str) -> str:
    """The id of an image, which is another hash than its digest."""
    return "sha256:" + image.rpartition(":")[2][::-1]


def run(words: list[str]) -> int:
    """Start a container and stay, passing on its output and our signals; it does not need us."""
    options: dict[str, list[str]] = {}
    while words[0].startswith("-"):
        option = words.pop(0)
        options.setdefault(option, []).append("" if option in BARE else words.pop(0))
    image, *arguments = words
    name = options["--name"][0]
    if image not in images():
        return fail(f"docker: Error response from daemon: No such image: {image}", 125)
    if container_file(name).exists():
        return fail(f'docker: Error response from daemon: Conflict. The container name "/{name}" is in use.', 125)
    log = STATE / "containers" / f"{name}.log"
    log.parent.mkdir(exist_ok=True)
    environment = dict(line.split("=", 1) for line in Path(options["--env-file"][0]).read_text().splitlines())
    # The images have a Python beside their engine.
    program = [] if options["--entrypoint"] == ["python3"] else [os.environ["FAKE_DOCKER_PROGRAM"]]
    argv = [sys.executable, "-u", *program, *arguments]
    keep = {"PATH": os.environ["PATH"], **{n: v for n, v in os.environ.items() if n.startswith("TRUTH_")}}
    with log.open("wb") as sink:
        inner = subprocess.Popen(
            argv,
            stdout=sink,
            stderr=sink,
            stdin=subprocess.DEVNULL,
            env={**keep, **{name: os.environ[name] for name in options.get("--env", [])}, **environment},
            start_new_session=True,
        )
    state = {"pid": inner.pid, "image": image, "options": options, "argv": argv, "environment": environment}
    container_file(name).write_text(json.dumps(state))
    signal.signal(signal.SIGTERM, lambda *_: os.kill(inner.pid, signal.SIGTERM))
    with log.open("rb") as source:
        while inner.poll() is None:
            pass_on(source)
            time.sleep(0.05)
        pass_on(source)
    container_file(name).unlink(missing_ok=True)  # --rm
    return inner.returncode if inner.returncode >= 0 else 128 - inner.returncode


def pass_on(source: Any) -> None:
    """Write what the container logged since."""
    sys.stdout.buffer.write(source.read())
    sys.stdout.flush()


def remove(name: str) -> int:
    """Kill a container and forget it."""
    path = container_file(name)
    if take_fault("stuck"):
        return fail(f"Error response from daemon: cannot remove container {name}: device or resource busy")
    if not path.exists():
        return fail(f"Error response from daemon: No such container: {name}")
    pid = json.loads(path.read_text())["pid"]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    path.unlink(missing_ok=True)
    say(name)
    return 0


def inspect(words: list[str]) -> int:
    """One field of a container."""
    path = container_file(words[-1])
    if not path.exists():
        return fail(f"Error: No such object: {words[-1]}")
    state = json.loads(path.read_text())
    fields = {"{{.Image}}": identity(state["image"]), "{{.State.Pid}}": str(state["pid"])}
    asked = re.findall(r"\{\{\.[\w.]+\}\}", " ".join(words))
    say(fields[asked[0]] if asked else json.dumps([state]))
    return 0


def main(words: list[str]) -> int:
    """Do what docker's command line says."""
    STATE.mkdir(parents=True, exist_ok=True)
    with (STATE / "calls").open("a") as sink:
        sink.write(" ".join(words) + "\n")
    if (STATE / "no daemon").exists():
        return fail("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?")
    match words:
        case ["version", *_]:
            say("28.2.2")
            code = 0
        case ["pull", image]:
            code = pull(image)
        case ["image", "inspect", *rest]:
            code = image_inspect(rest)
        case ["run", *rest]:
            code = run(rest)
        case ["rm", "--force", name]:
            code = remove(name)
        case ["inspect", *rest]:
            code = inspect(rest)
        case _:
            code = fail(f"fake docker was not told what to do with: {words}", 99)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
