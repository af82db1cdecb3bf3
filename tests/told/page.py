"""The page of troubles: `python -m tests.told` rewrites it, and a test fails where it is out of date."""

from pathlib import Path

import yaml

from tests.told.troubles import CHECK, NIGHT_ITSELF, OUTSIDE, REAP, TROUBLES, WATCHDOG, Trouble

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "told.md"
HEAD = """# Which message each trouble brings

Each of these {count} troubles is planted by the test that is named after it, and brings exactly one message to a
webhook and one to a mailbox, however often it is found again: with this title, and with its cause in the text. 100
quiet nights bring the message of each night and no other. `python -m tests.told` rewrites this page.
[Be notified](../how-to/be-notified.md) says how to set it up.

| trouble | found by | the message's title |
|---|---|---|
"""
WHEN = """
**When:** by the night as soon as it has ended and its machine is released; by a watchdog and by `reap` as soon as a
release has failed; by `check` and `reap` otherwise when they run, which is by `{check}` and `{reap}` of cron in
`prefect.yaml`; by an outside service when the call that it expects stays away. A message that an address does not take
is sent again by the next night or check.

Run by:

"""


def page() -> str:
    """The whole page."""
    found_by = (NIGHT_ITSELF, CHECK, REAP, WATCHDOG, OUTSIDE)
    rows = "".join(_row(one) for one in sorted(TROUBLES, key=lambda one: found_by.index(one.found_by)))
    tests = dict.fromkeys(one.runs.partition("[")[0] for one in TROUBLES)
    return HEAD.format(count=len(TROUBLES)) + rows + WHEN.format(**_crons()) + "".join(f"- `{one}`\n" for one in tests)


def _row(one: Trouble) -> str:
    return f"| {one.name} | {one.found_by} | {one.title} |\n"


def _crons() -> dict[str, str]:
    deployed = yaml.safe_load((ROOT / "prefect.yaml").read_text("utf-8"))["deployments"]
    return {one["name"]: one["schedules"][0]["cron"] for one in deployed if one.get("schedules")}


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(page(), encoding="utf-8")
