"""A plugin of pytest for `make quick`: the nearest files run first, and no test begins after the minute."""

import time
from collections import Counter

import pytest

OVER = "make quick's time was over"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--until", type=float, metavar="EPOCH_S", help="begin no test after this time")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bring them back into the order of the files on the command line, which is another in a run of all tests."""
    order = {file: place for place, file in enumerate(config.option.file_or_dir)}
    items.sort(key=lambda item: order[file_of(item.nodeid)])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.time() > item.config.getoption("--until"):
        pytest.skip(OVER)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = (one for one in terminalreporter.stats.get("skipped", []) if OVER in str(one.longrepr))
    by_file = Counter(file_of(one.nodeid) for one in skipped)
    if by_file:
        terminalreporter.line(f"{OVER} before these; make test runs them:")
    for file, tests in by_file.items():
        terminalreporter.line(f"{tests:4} of {file}")


def file_of(nodeid: str) -> str:
    """The file of a test, relative to the checkout."""
    return nodeid.partition("::")[0]
