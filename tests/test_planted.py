"""The search for planted secrets finds them, in every form and place that it looks at."""

import base64
import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.planted import SECRETS, Watch, argv_and_environment, found_below, found_in

SECRET = SECRETS["HF_TOKEN"]


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("written", ["{}", "Bearer {}", '{{"token": "{}"}}'])
def test_a_secret_is_found_in_any_form(before: str, written: str) -> None:
    text = before + written.format(SECRET) + "after"

    for form in (text, quote(text, safe=""), text.encode().hex(), base64.b64encode(text.encode()).decode()):
        assert found_in(form.encode()) == {"HF_TOKEN"}
    assert found_in(base64.urlsafe_b64encode(text.encode())) == {"HF_TOKEN"}
    assert found_in(text.replace("planted", "").encode()) == set()


def test_a_secret_is_found_in_files_and_in_their_names(tmp_path: Path) -> None:
    (tmp_path / "log.gz").write_bytes(gzip.compress(SECRET.encode()))
    (tmp_path / quote(SECRET, safe="")).write_text("nothing")
    (tmp_path / "clean").write_text("nothing")

    assert len(found_below(tmp_path)) == 2


def test_a_file_that_is_removed_while_the_search_reads_its_folder_is_no_file_of_it(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    kept.write_text(SECRET)
    gone.write_text(SECRET)

    class Folder(type(tmp_path)):  # type: ignore[misc]
        """A folder of which a file goes between listing and reading."""

        def rglob(self, pattern: str) -> Iterator[Path]:
            yield from tmp_path.rglob(pattern)
            gone.unlink()

    assert found_below(Folder(tmp_path)) == {str(kept): {"HF_TOKEN"}}


@pytest.mark.parametrize("where", ["argv", "environment"])
def test_a_secret_is_found_in_a_process(where: str, tmp_path: Path) -> None:
    code = "import sys; sys.stdin.read()"
    argv = [sys.executable, "-c", code, *([SECRET] if where == "argv" else [])]
    environment = {"NIGHTBENCH_LEASE": "one", "A": SECRET if where == "environment" else "nothing"}
    watch = Watch({"HF_TOKEN": SECRET}, tmp_path)

    with subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE) as process:
        watch.look()
        process.communicate()

    assert watch.in_argv == ({"HF_TOKEN"} if where == "argv" else set())
    assert watch.holders == ({("HF_TOKEN", " ".join(argv))} if where == "environment" else set())


def test_a_process_that_becomes_another_program_is_not_taken_for_one_without_a_name() -> None:
    class Becoming:
        """A process that is read while the kernel replaces its program."""

        programs = iter([[], ["env", "prepare"], ["env", "prepare"]])

        def cmdline(self) -> list[str]:
            return next(self.programs)

        def environ(self) -> dict[str, str]:
            return {"HF_TOKEN": SECRET}

    assert argv_and_environment(Becoming()) == (["env", "prepare"], {"HF_TOKEN": SECRET})
