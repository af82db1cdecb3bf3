"""The documents say what the code does, in commands, links and versions, and nothing of where they were written."""

import re
import subprocess
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import typer.main

from bench.record import METHOD_VERSION
from flows.cli import app
from flows.cli import reference as cli_reference
from infra.loadgen import suite_reference, workload_reference
from infra.settings import Settings
from tests.draw_places import draw

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
INLINE_CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w-]+(?:/[\w.*-]+)+/?(?::\w+)?")  # placeholders such as <night> are not ours
BARE_FILE = re.compile(r"\w+\.(?:py|sql)")
MODULE = re.compile(r"\bpython -m ([\w.]+)")
SETTING = re.compile(r"\bNIGHTBENCH_[A-Z0-9_]*[A-Z0-9]\b(?!_?…)")
MAKE = re.compile(r"(?:^|`)make ([a-z-]+)\b", re.MULTILINE)
TARGET = re.compile(r"^([a-z-]+):(?!=)", re.MULTILINE)
MAP_ROW = re.compile(r"^\| \[([\w/]+)\]\(\1\) \| (\S.*\S) \|$", re.MULTILINE)
MOST_PICTURE_BYTES = 150_000
HAS_ROOMS = ("bench", "flows", "infra", "warehouse")
DATA = ROOT / "tests" / "data"  # real output, kept as it was


@cache
def texts() -> tuple[tuple[Path, str], ...]:
    """Every text file that is or would be in git."""
    argv = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listed.split("\0") if name]
    return tuple((path, path.read_text("utf-8", errors="ignore")) for path in paths if path.is_file())


ROOMS = {path.relative_to(ROOT).parts[0] for path, _ in texts() if path.parent != ROOT}
NAMES = {path.name for path, _ in texts()}


def pages() -> list[Path]:
    return [path for path, _ in texts() if path.suffix == ".md" and DATA not in path.parents]


def code_of(text: str) -> list[str]:
    """The code blocks and code spans of a page."""
    found: list[str] = re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL)
    return found


def commands(text: str) -> set[str]:
    """The commands of ours that a page names, in code spans and code blocks."""
    return {name for span in code_of(text) for name in COMMAND.findall(span)}


def broken_links(page: Path, text: str) -> list[str]:
    targets = [target for target in LINK.findall(text) if not ELSEWHERE.match(target)]
    return [target for target in targets if not (page.parent / target.split("#", maxsplit=1)[0]).exists()]


def stale_paths(text: str) -> list[str]:
    """Files and modules of ours that a page names in backticks, or runs by `-m`, and that do not exist."""
    spans = INLINE_CODE.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    paths = [span for span in spans if PATH.fullmatch(span) and span.split("/")[0] in ROOMS]
    files = [span for span in spans if BARE_FILE.fullmatch(span) and span not in NAMES]
    modules = [name for name in MODULE.findall(text) if name.split(".")[0] in ROOMS]
    missing = [path for path in paths if not any(ROOT.glob(path.split(":")[0].rstrip("/")))]
    return [*missing, *files, *(name for name in modules if not _is_module(ROOT / name.replace(".", "/")))]


def _is_module(path: Path) -> bool:
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


def folders_to_map() -> set[str]:
    """Each top-level folder, and each folder inside those that have rooms."""
    parents = {path.relative_to(ROOT).parent for path, _ in texts()}
    folders = {ancestor.as_posix() for parent in parents for ancestor in (parent, *parent.parents)}
    rooms = tuple(f"{name}/" for name in HAS_ROOMS)
    return {name for name in folders if not name.startswith(".") and ("/" not in name or name.startswith(rooms))}


def map_rows(text: str) -> dict[str, str]:
    """The folders of the README's map, each with its line."""
    _, _, house = text.partition("\n## Map of the house\n")
    return dict(MAP_ROW.findall(house))


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


def test_every_relative_link_has_a_target() -> None:
    broken = {str(page.relative_to(ROOT)): broken_links(page, page.read_text("utf-8")) for page in pages()}

    assert {page: links for page, links in broken.items() if links} == {}


def test_a_broken_link_is_detected() -> None:
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
def test_a_package_host_or_home_folder_is_detected(trace: str) -> None:
    assert traces(f"see {trace} there")


def test_no_page_names_a_file_or_a_module_that_does_not_exist() -> None:
    stale = {str(page.relative_to(ROOT)): stale_paths(page.read_text("utf-8")) for page in pages()}

    assert {page: paths for page, paths in stale.items() if paths} == {}


@pytest.mark.parametrize("path", ["infra/nowhere.py", "bench/nowhere/", "nowhere.py", "tests/*.nothing"])
def test_a_stale_path_is_detected(path: str) -> None:
    assert stale_paths(f"see `{path}`, `infra/clock.py`, `bench/`, `clock.py` and `runs/x`") == [path]


def test_a_stale_module_is_detected() -> None:
    assert stale_paths("`python -m infra.nowhere`, `python -m benchmarks`, `python -m pip`") == ["infra.nowhere"]


def test_every_key_of_a_suite_has_a_note() -> None:
    rows = [line for line in suite_reference.reference_markdown().splitlines() if line.startswith("| `")]

    assert [row for row in rows if row.endswith(("| |", "|  |"))] == []


def test_make_help_has_a_line_for_every_target() -> None:
    argv = ["make", "--no-print-directory", "help"]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()

    targets = TARGET.findall((ROOT / "Makefile").read_text("utf-8"))

    assert [line.split()[0] for line in listed] == sorted(targets)
    assert all(len(line.split()) > 1 for line in listed)


def test_every_make_target_that_a_page_names_exists() -> None:
    named = {name for page in pages() for span in code_of(page.read_text("utf-8")) for name in MAKE.findall(span)}
    targets = set(TARGET.findall((ROOT / "Makefile").read_text("utf-8")))

    assert {"run", "test", "bench"} <= named
    assert named <= targets


def test_every_setting_that_a_page_names_exists() -> None:
    named = {name for page in pages() for name in SETTING.findall(page.read_text("utf-8"))}
    settings = {f"NIGHTBENCH_{field.upper()}" for field in Settings.model_fields}
    read = [
        text
        for path, text in texts()
        if path.suffix in {".yaml", ".toml"} or path.parent == ROOT / "infra" / "processes"
    ]
    elsewhere = {name for text in read for name in SETTING.findall(text)}

    assert named - settings - elsewhere == set()


def test_the_reference_lists_every_setting_and_no_other() -> None:
    listed = set(SETTING.findall((ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")))

    assert listed == {f"NIGHTBENCH_{field.upper()}" for field in Settings.model_fields}


def test_the_readme_maps_every_folder_and_no_other() -> None:
    mapped = map_rows((ROOT / "README.md").read_text("utf-8"))

    assert set(mapped) == folders_to_map()


def test_no_help_has_words_that_the_terminal_takes_for_its_own_markup() -> None:
    # Of "a suite's `[tune]` table" the terminal shows "a suite's `` table".
    assert re.findall(r"(?<!\\)`\[[a-z_]+\]`", cli_reference.reference_markdown()) == []


@pytest.mark.parametrize("page", [suite_reference, workload_reference, cli_reference], ids=lambda page: page.__name__)
def test_a_generated_page_of_the_reference_is_not_stale(page: ModuleType) -> None:
    assert page.PAGE.read_text("utf-8") == page.reference_markdown(), f"run python -m {page.__name__}"


def test_each_folder_of_the_map_has_a_line_of_its_own() -> None:
    lines = list(map_rows((ROOT / "README.md").read_text("utf-8")).values())

    assert len(set(lines)) == len(lines)


def test_drawn_modules_depend_only_on_the_seed_and_are_in_the_map() -> None:
    mapped = map_rows((ROOT / "README.md").read_text("utf-8"))

    assert draw(7, 10) == draw(7, 10) != draw(8, 10)
    assert {Path(name).parent.as_posix() for name in draw(7, 10)} <= set(mapped)


def test_the_index_of_the_documents_lists_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(index.read_text("utf-8"))}
    documents = {page for page in pages() if index.parent in page.parents} - {index}

    assert {page for page in documents if page.parent.name != "adr"} <= linked


def test_the_index_of_the_decisions_lists_every_decision() -> None:
    index = ROOT / "docs" / "adr" / "README.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(index.read_text("utf-8"))}

    assert {page for page in pages() if page.parent == index.parent} - {index} <= linked


def test_each_picture_is_small() -> None:
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs" / "images").iterdir()}

    assert sizes
    assert max(sizes.values()) < MOST_PICTURE_BYTES
