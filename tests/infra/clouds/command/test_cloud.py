"""The command cloud: what its scripts get, and what happens when one does something wrong."""

import contextlib
from datetime import timedelta
from pathlib import Path

import pytest

from bench.errors import CloudDeniedError, CloudError, LeaseError, LostReplyError, NoCapacityError, NotAskedError
from bench.machine.names import MachineName
from infra.clouds.cloud import MachineOrder, Offer
from infra.clouds.command.cloud import CommandCloud
from infra.leases.acquire import take_lease
from infra.leases.offers import Choice, LeaseRequest, fitting
from infra.leases.reaper import reap
from infra.leases.release import release_lease
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from tests.emulators.command_cloud.account import KIND, Account, make_account, write_script
from tests.emulators.virtual_clock import VirtualClock


@pytest.fixture
def clock(tmp_path: Path) -> VirtualClock:
    return VirtualClock(tmp_path / "clock")


@pytest.fixture
def ledger(tmp_path: Path, clock: VirtualClock) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite", clock)


@pytest.fixture
def account(tmp_path: Path, clock: VirtualClock) -> Account:
    del clock  # it creates the file
    return make_account(tmp_path / "scripts", tmp_path / "clock")


@pytest.fixture
def cloud(account: Account, clock: VirtualClock) -> CommandCloud:
    return account.cloud(clock)


def take(cloud: CommandCloud, ledger: Ledger, clock: VirtualClock, kind: str = KIND) -> Lease:
    return take_lease(cloud, ledger, clock, LeaseRequest((Choice(kind),), minutes=60), night="2026-01-01")


def order(name: str = "nb-0a1b-a1-x1799999999") -> MachineOrder:
    parsed = MachineName.parse(name)
    assert parsed is not None
    return MachineOrder(parsed, Offer(KIND, 1.99, "here"), night="2026-01-01")


def test_rent_gets_the_name_the_offer_the_key_and_the_user_data(cloud: CommandCloud, account: Account) -> None:
    cloud.rent(order())

    given = account.state()["given"]["rent"]
    assert (given["name"], given["kind"], given["region"]) == ("nb-0a1b-a1-x1799999999", KIND, "here")
    assert given["ssh_public_key"].startswith("ssh-ed25519 ")
    assert given["user_data"] == "boot of nb-0a1b-a1-x1799999999"
    assert given["expires_at"] == "2027-01-15T07:59:59+00:00"


def test_offers_are_sorted_by_price_one_for_each_kind_and_region(cloud: CommandCloud, account: Account) -> None:
    rows = [("b", 3.0, "x"), ("a", 2.0, "y"), ("b", 4.0, "x"), ("a", 1.0, None)]
    account.set(offers=[{"kind": kind, "usd_per_hour": usd, "region": region} for kind, usd, region in rows])

    offers = [(one.kind, one.usd_per_hour, one.region) for one in cloud.offers()]

    assert offers == [("a", 1.0, None), ("a", 2.0, "y"), ("b", 3.0, "x")]
    assert cloud.regions() == ["x", "y"]


def test_machines_of_others_are_listed_and_never_released(
    cloud: CommandCloud, account: Account, ledger: Ledger, clock: VirtualClock
) -> None:
    mine = take(cloud, ledger, clock)

    done = reap({cloud.name: cloud}, ledger, clock, everything=True)

    assert done.released == [mine.machine_id]
    assert done.unrecognized == ["command machine 101 named 'nb-web'"]
    account.must_be_clean()


WRONG = (
    "garbage before",
    "garbage after",
    "fail before",
    "fail after",
    "others before",
    "wrong id",
    "double",
    "refuse",
)


@pytest.mark.parametrize("fault", WRONG)
def test_a_rent_that_goes_wrong_leaks_nothing_and_touches_nothing_of_others(
    cloud: CommandCloud, account: Account, ledger: Ledger, clock: VirtualClock, fault: str
) -> None:
    account.fault(rent=fault)

    with contextlib.suppress(NoCapacityError):
        lease = take(cloud, ledger, clock)
        assert account.billed() == [lease.name]
        release_lease(cloud, ledger, clock, lease.lease_id)

    account.must_be_clean()
    assert ledger.open_leases() == []


@pytest.mark.parametrize("how", ["hang after", "flood after"])
def test_a_rent_that_hangs_or_prints_without_end_is_killed_and_its_machine_is_used(
    account: Account, ledger: Ledger, clock: VirtualClock, how: str
) -> None:
    account.fault(rent=how)
    cloud = account.cloud(clock, seconds=5.0 if how == "hang after" else 600.0)

    lease = take(cloud, ledger, clock)

    assert account.billed() == [lease.name]
    release_lease(cloud, ledger, clock, lease.lease_id)
    account.must_be_clean()


def test_a_rent_that_exits_with_0_and_without_a_machine_is_a_sentence(cloud: CommandCloud, account: Account) -> None:
    write_script(account.scripts / "rent", "echo '{}'")

    with pytest.raises(LostReplyError, match=r"rent exited with 0 and did not print .*either `machine` or `refused`"):
        cloud.rent(order())


def test_a_rent_that_fails_is_a_sentence_with_its_last_words(cloud: CommandCloud, account: Account) -> None:
    write_script(account.scripts / "rent", "printf '\\033[31mquota\\nis used up\\n' >&2; exit 4")

    with pytest.raises(LostReplyError, match=r"/rent exited with 4: quota \| is used up; `list` will show"):
        cloud.rent(order())


def test_a_refusal_keeps_its_reason(cloud: CommandCloud, account: Account) -> None:
    account.fault(rent="refuse")

    with pytest.raises(NoCapacityError, match=r"rent rented nothing \(no-capacity\): none is free"):
        cloud.rent(order())


def test_nothing_is_rented_while_the_list_fails(cloud: CommandCloud, account: Account) -> None:
    account.fault(list="fail before")

    with pytest.raises(NotAskedError, match="exited with 1: the API answers 503; nothing is rented while `list` fails"):
        cloud.rent(order())

    assert "rent" not in account.state()["calls"]


def test_a_machine_that_the_list_shows_under_a_cut_name_is_released_at_once(
    cloud: CommandCloud, account: Account, ledger: Ledger, clock: VirtualClock
) -> None:
    cut_names(account)

    with pytest.raises(LeaseError, match=r"under the name 'nb-.*let `list` print the whole name"):
        take(cloud, ledger, clock)

    account.must_be_clean()


def test_the_release_of_a_machine_under_a_cut_name_is_repeated_until_it_is_gone(
    cloud: CommandCloud, account: Account, ledger: Ledger, clock: VirtualClock
) -> None:
    cut_names(account)
    refuse_releases(account, times=2)

    with pytest.raises(CloudError, match=r"let `list` print the whole name"):
        take(cloud, ledger, clock)

    account.must_be_clean()
    assert ledger.open_leases() == []


def test_the_lease_of_a_machine_under_a_cut_name_that_cannot_be_released_stays_open(
    cloud: CommandCloud, account: Account, ledger: Ledger, clock: VirtualClock
) -> None:
    cut_names(account)
    refuse_releases(account, times=10**6)

    with pytest.raises(
        LeaseError, match=r"whole name; machine \d+ could not be released and is still billed: .* is busy"
    ):
        take(cloud, ledger, clock)

    (machine,) = [one for one in account.state()["machines"] if one["name"] in account.billed()]
    assert [lease.machine_id for lease in ledger.open_leases()] == [str(machine["id"])]


def refuse_releases(account: Account, times: int) -> None:
    """Let the first calls of `release` fail, as those of a cloud whose machine is still being created."""
    release, calls = account.scripts / "release", account.scripts / "calls"
    release.rename(account.scripts / "frees")
    refused = f"echo x >> {calls}; [ $(wc -l < {calls}) -gt {times} ] || {{ echo 'it is busy' >&2; exit 1; }}"
    write_script(release, f"{refused}\nexec {account.scripts / 'frees'}")


def cut_names(account: Account) -> None:
    """Let `list` print eight characters of each name, as squeue does by default."""
    (account.scripts / "list").rename(account.scripts / "whole")
    write_script(
        account.scripts / "list", f'{account.scripts / "whole"} | sed -E \'s/("name": "[^"]{{8}})[^"]*/\\1/g\''
    )


def test_a_machine_under_a_name_that_is_not_ours_is_not_released(cloud: CommandCloud, account: Account) -> None:
    with pytest.raises(CloudError, match="shows machine 100 under the name 'somebody-elses'"):
        cloud.release("100")

    account.must_be_clean()


def test_two_machines_with_one_id_are_a_sentence(cloud: CommandCloud, account: Account) -> None:
    rows = '{"id": 1, "name": "nb-0a1b-a1-x1"}, {"id": "1", "name": "theirs"}'
    write_script(account.scripts / "list", f"echo '{{\"machines\": [{rows}]}}'")

    with pytest.raises(CloudError, match="lists two different machines with the id 1"):
        cloud.find_ours()


@pytest.mark.parametrize("script", ["offers", "rent", "list", "release"])
def test_a_script_that_is_missing_or_not_executable_is_a_sentence(
    cloud: CommandCloud, account: Account, ledger: Ledger, clock: VirtualClock, script: str
) -> None:
    file = account.scripts / script
    file.chmod(0o644)
    with pytest.raises(CloudDeniedError, match=f"{script} is not executable: run `chmod"):
        call(cloud, account, script)
    file.unlink()
    with pytest.raises(CloudDeniedError, match=f"{script} does not exist: set NIGHTBENCH_COMMAND_CLOUD"):
        call(cloud, account, script)

    if script != "release":
        with pytest.raises(LeaseError, match=script):
            take(cloud, ledger, clock)
    account.must_be_clean() if script != "release" else None


def call(cloud: CommandCloud, account: Account, script: str) -> object:
    if script == "rent":
        return cloud.rent(order())
    if script == "release":
        cloud.release(account.plant("nb-0a1b-a1-x1", foreign=False))
    return cloud.offers() if script == "offers" else cloud.find_ours()


def test_the_time_is_that_of_the_list_or_of_this_computer(
    cloud: CommandCloud, account: Account, clock: VirtualClock
) -> None:
    clock_at = clock.now().replace(microsecond=0)
    cloud.find_ours()
    clock.jump(7200)

    assert abs(cloud.now() - clock_at) < timedelta(seconds=1)
    account.set(states_now=False)
    clock.sleep(2)
    cloud.find_ours()
    assert abs(cloud.now() - clock.now()) < timedelta(seconds=1)


def test_a_machine_is_not_gone_where_other_scripts_show_nothing_of_it(
    account: Account, cloud: CommandCloud, ledger: Ledger, clock: VirtualClock, tmp_path: Path
) -> None:
    lease = take(cloud, ledger, clock)
    other = make_account(tmp_path / "other", tmp_path / "clock")
    other.set(account="team-2")

    with pytest.raises(LeaseError, match="was rented in account team-1 of command"):
        release_lease(other.cloud(clock), ledger, clock, lease.lease_id)

    assert account.billed() == [lease.name]
    assert [one.lease_id for one in ledger.open_leases()] == [lease.lease_id]
    account.set(states_now=False)
    assert account.cloud(clock).account() == str(account.scripts)


def test_a_machine_whose_list_cannot_be_started_after_its_rent_is_not_taken_for_refused(
    cloud: CommandCloud, account: Account, ledger: Ledger, clock: VirtualClock
) -> None:
    scripts = account.scripts
    (scripts / "rent").rename(scripts / "rent.own")
    (scripts / "rent").write_text(f"#!/bin/sh\n{scripts}/rent.own && chmod -x {scripts}/list\n")  # a deployment
    (scripts / "rent").chmod(0o755)

    with contextlib.suppress(CloudError, LeaseError):
        take(cloud, ledger, clock)
    (scripts / "list").chmod(0o755)

    (lease,) = ledger.open_leases()
    assert lease.machine_id in {str(one["id"]) for one in account.state()["machines"]}
    release_lease(cloud, ledger, clock, lease.lease_id)
    account.must_be_clean()


@pytest.mark.parametrize(("spot", "rented"), [("never", [False]), ("only", [True]), ("first", [True, False])])
def test_a_spot_offer_that_says_so_beside_its_kind_is_one(
    cloud: CommandCloud, account: Account, spot: str, rented: list[bool]
) -> None:
    offer = {"kind": KIND, "region": "here"}
    account.set(offers=[offer | {"usd_per_hour": 3.0}, offer | {"usd_per_hour": 2.0, "is_spot": True}])
    request = LeaseRequest((Choice(KIND),), minutes=60, spot=spot)  # type: ignore[arg-type]  # one of its words

    found = fitting(cloud.offers(), cloud.regions(), request, "command")

    assert [offer.is_spot for offer in found] == rented
