"""The emulated command cloud notices what is left and what was touched."""

from pathlib import Path

import pytest

from infra.clock import SystemClock
from tests.emulators.command_cloud.account import make_account


def test_a_machine_of_ours_that_is_left_is_noticed(tmp_path: Path) -> None:
    account = make_account(tmp_path / "scripts")
    account.must_be_clean()

    account.plant("nb-0a1b-a1-x1", foreign=False)

    with pytest.raises(AssertionError):
        account.must_be_clean()


def test_a_machine_of_others_that_was_touched_is_noticed(tmp_path: Path) -> None:
    account = make_account(tmp_path / "scripts")
    theirs = account.plant("nb-0a1b-a1-x1")  # of another team, under a name like ours

    account.cloud(SystemClock()).release(theirs)

    with pytest.raises(AssertionError):
        account.must_be_clean()
