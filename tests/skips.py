"""Which tests may be skipped in CI, and why; any other skip fails the session, since a skipped test checks nothing.

Each entry is the beginning of a skip's reason. A reason without an entry is a mistake, or a gap to be named here.
"""

import os
from collections.abc import Iterable, Iterator

import pytest

ALLOWED = {
    "no Chromium": "the browser is a package of the system, which CI does not have",
    "Spark is not installed": "`make spark` installs it: 0.5 GB, and it needs Java",
    "no Java": "Java is a package of the system, which CI does not have",
    "there is no vllm-rs here": "its binary is in no package that CI installs",
    "../shared/data/published is not here": "one page counts rows of tables that are not ours to publish; "
    "every other test of files of others runs on twins in tests/data too, so that it is skipped nowhere",
    "../shared/facts is not here": "the list of published tables is checked against notes that are not ours to publish",
    "there is no sshd on PATH, and apt-get": "needs a network, the first time",
    "no curl on PATH": "a slim container has none; no other test depends on it",
    "no jq on PATH": "as above",
    "no C compiler here": "a slim container has none",
    "there is no PostgreSQL server here": "a package of the system, which CI does not have",
    "no pdftotext on PATH": "a package of the system; its output is read from a text in every clone",
    "no docker daemon responds here": "CI runs in a container itself; the fake docker has the same tests",
    "there is no Slurm here": "packages of the system, which CI does not have; the fake commands have the same test",
    "no manager of systemd can be started here": "needs systemd and its control groups, as root",
    "no systemd-analyze on PATH": "a slim container has none",
    "mount namespaces cannot be made here": "needs user namespaces, which a container may forbid",
    "no disk of our own can be mounted here": "as above",
    "this user may not create a PID namespace": "as above",
    "this user may not create a network namespace": "as above",
    "this user may not create a time namespace": "as above",
}
# Begin with the path of a program: llama.cpp takes 6 minutes of CPU time, Packer and Prism need a network.
INSIDE = ("is not built: `make engines` builds it", "cannot fetch it: ", " holds no ")


def is_allowed(reason: str) -> bool:
    """Whether a skip with this reason may happen in CI."""
    reason = reason.removeprefix("Skipped: ")
    return reason.startswith(tuple(ALLOWED)) or any(part in reason for part in INSIDE)


def forbidden(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> Iterator[str]:
    """A sentence for each skipped test or file whose reason is not allowed."""
    for report in reports:
        place = report.longrepr
        reason = str(place[2]) if isinstance(place, tuple) else str(place)
        if not is_allowed(reason):
            yield (
                f"{report.nodeid} was skipped ({reason.removeprefix('Skipped: ')}), which tests/skips.py does not "
                "allow in CI: install what it needs, or add the reason to ALLOWED"
            )


class SkipGuard:
    """A plugin that fails a session in CI for each skip that is not allowed."""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        found = [] if reporter is None else list(forbidden(reporter.stats.get("skipped", [])))
        if found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        session.config.stash[FOUND] = found

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        for sentence in config.stash.get(FOUND, []):
            terminalreporter.line(f"FORBIDDEN SKIP: {sentence}", red=True)


FOUND = pytest.StashKey[list[str]]()


def guard_skips(config: pytest.Config) -> None:
    """Let this session fail for skips that are not allowed, if CI=true and it is not a worker."""
    if os.environ.get("CI") == "true" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipGuard(), "skip-guard")
