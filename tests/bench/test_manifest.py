from pathlib import Path
from subprocess import run

import pytest

from bench.errors import UnreadableResultError
from bench.manifest import MANIFEST, manifest_text, parse_manifest

# SHA-256 of "abc" (FIPS 180-2, appendix B.1) and of nothing.
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_manifest_is_read_as_it_was_written() -> None:
    files = {"record.json": ABC, "load/two words.bin": EMPTY}

    assert parse_manifest(manifest_text(files)) == files


def test_a_manifest_is_sorted_by_name_whatever_the_order_of_the_files() -> None:
    assert manifest_text({"b": ABC, "a": EMPTY}) == f"{EMPTY}  a\n{ABC}  b\n"


def test_sha256sum_accepts_our_manifest(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / MANIFEST).write_text(manifest_text({"a": ABC}))

    done = run(["sha256sum", "--check", "--strict", MANIFEST], cwd=tmp_path, capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (0, b"a: OK\n")


def test_the_binary_mark_of_sha256sum_is_not_part_of_the_name() -> None:
    assert parse_manifest(f"{ABC} *events.bin\n") == {"events.bin": ABC}


@pytest.mark.parametrize(
    "line", ["no hash here", f"{ABC[:-1]}  a", f"{ABC}  ", f"{ABC}  /etc/passwd", f"{ABC}  ../a", f"{ABC}  a/../../b"]
)
def test_a_line_of_another_form_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(UnreadableResultError, match=r"MANIFEST\.sha256 line 2 is not a SHA-256 and a file name"):
        parse_manifest(f"{EMPTY}  first\n{line}\n")
