"""The documents say what the code does, in commands, links and versions, and nothing of where they were written."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from bench.record import METHOD_VERSION
from flows.cli import app

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z]+:|#")
COMMAND = re.compile(r"nightbench (?:--data \S+ )?([a-z]+)\b")
ENTRY = re.compile(r"^## METHOD_VERSION (\d+)$", re.MULTILINE)
# Put together here, so that this file does not hold what it looks for.
HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("download", "pytorch", "org"),
        ("conda", "anaconda", "org"),
        ("registry", "npmjs", "org"),
        ("proxy", "golang", "org"),
        ("static", "crates", "io"),
    )
)
HOMES = re.compile("/" + r"(?:home/[a-z_][\w.-]*|Users/\w[\w.-]*|root)/")
FORBIDDEN = re.compile("|".join([*map(re.escape, HOSTS), HOMES.pattern]))
DATA = ROOT / "tests" / "data"  # real output, kept as it was


def texts() -> Iterator[tuple[Path, str]]:
    """Every text file that is or would be in git."""
    argv = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file():
            yield path, path.read_text("utf-8", errors="ignore")


def pages() -> list[Path]:
    return [path for path, _ in texts() if path.suffix == ".md" and DATA not in path.parents]


def commands(text: str) -> set[str]:
    """The commands of ours that a page names, in code spans and code blocks."""
    code = re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL)
    return {name for span in code for name in COMMAND.findall(span)}


def broken_links(page: Path, text: str) -> list[str]:
    targets = [target for target in LINK.findall(text) if not ELSEWHERE.match(target)]
    return [target for target in targets if not (page.parent / target.split("#", maxsplit=1)[0]).exists()]


def traces(text: str) -> list[str]:
    return [match[0] for match in FORBIDDEN.finditer(text)]


def the_commands() -> set[str]:
    group = typer.main.get_group(app)
    return set(group.commands)


def test_the_readme_names_every_command_and_no_other() -> None:
    assert commands((ROOT / "README.md").read_text("utf-8")) == the_commands()


def test_no_other_page_names_a_command_that_does_not_exist() -> None:
    named = {name for page in pages() for name in commands(page.read_text("utf-8"))}

    assert named <= the_commands()


def test_every_relative_link_leads_somewhere() -> None:
    broken = {str(page.relative_to(ROOT)): broken_links(page, page.read_text("utf-8")) for page in pages()}

    assert {page: links for page, links in broken.items() if links} == {}


def test_a_link_to_nothing_is_seen() -> None:
    assert broken_links(ROOT / "README.md", "[a](README.md#x) [b](docs/nowhere.md) [c](mailto:x)") == [
        "docs/nowhere.md"
    ]


def test_the_newest_method_entry_is_the_version_that_records_carry() -> None:
    entries = [int(number) for number in ENTRY.findall((ROOT / "METHOD.md").read_text("utf-8"))]

    assert entries == list(range(1, METHOD_VERSION + 1))


def test_no_file_names_a_package_host_or_a_home_folder() -> None:
    found = {str(path.relative_to(ROOT)): traces(text) for path, text in texts()}

    assert {path: what for path, what in found.items() if what} == {}


@pytest.mark.parametrize("trace", [*HOSTS, "/" + "root/x", "/" + "home/ann/x", "/" + "Users/ann/x"])
def test_a_trace_is_seen(trace: str) -> None:
    assert traces(f"see {trace} there")
