"""What scripts may print: any JSON gives a value or one error, and the reference's examples are read and written so."""

import contextlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from bench.errors import CloudError
from bench.machine.names import MachineName
from infra.clock import SystemClock
from infra.clouds.cloud import MachineOrder, Offer
from infra.clouds.command.cloud import CommandCloud, CommandSetup
from infra.clouds.command.replies import Listing, Offers, Rented, machines_of, offers_of, parse
from infra.clouds.command.scripts import Scripts
from infra.processes.bounded_command import Limits
from tests.emulators.command_cloud.account import SECONDS, make_account, write_script

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "command-cloud.md"
MODELS: dict[str, type[BaseModel]] = {"offers": Offers, "rent": Rented, "list": Listing}
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FIELDS = (
    *("machines", "machine", "offers", "refused", "reason", "now", "account"),
    *("id", "name", "status", "address", "kind", "usd_per_hour", "region", "created_at", "is_spot"),
)
WORDS = st.sampled_from(
    ["nb-0a1b-a1-x1", "active", "no-capacity", "2026-01-01T00:00:00Z", "4711", "\ud800", "a\x1b[2Jb"]
)
LIKELY = st.recursive(
    ANY | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=8),
    max_leaves=16,
)


@pytest.mark.parametrize("model", MODELS.values())
@settings(max_examples=300, deadline=None)
@given(value=ANY | LIKELY)
@example(value={"machines": [{"id": True, "name": "x"}]})
@example(value={"machines": [{"id": -1, "name": "x"}]})
@example(value={"machines": [{"id": 10**400, "name": "x"}]})
@example(value={"machines": [], "now": "2026-01-01T00:00:00"})
@example(value={"offers": [{"kind": "a", "usd_per_hour": float("nan")}]})
@example(value={"offers": [{"kind": "a", "usd_per_hour": True}]})
def test_any_json_is_a_reply_or_one_error(model: type[BaseModel], value: object) -> None:
    with contextlib.suppress(CloudError):
        reply = parse(model, json.dumps(value), "the script")
        if isinstance(reply, Listing):
            machines_of(reply, "the script")
        if isinstance(reply, Offers):
            offers_of(reply.offers)


@pytest.mark.parametrize("text", ["", "no JSON", "[" * 100_000, '{"machines": [', "\ud800", "NaN", "{} {}"])
def test_what_is_no_json_is_an_error_that_quotes_it(text: str) -> None:
    with pytest.raises(CloudError, match=r"list exited with 0 and did not print .*; it printed "):
        parse(Listing, text, "list")


def test_an_error_names_the_field_and_moves_no_cursor() -> None:
    text = json.dumps({"machines": [{"id": "1", "name": "x", "status": "a\x1b[2Jb"}]})

    with pytest.raises(CloudError, match=r"machines\.0\.status Input should be 'new', 'active'") as raised:
        parse(Listing, text, "list")

    assert str(raised.value).isprintable()


@pytest.mark.parametrize("name", ["\x1b[0mnb-0a1b-a1-x1", "\x00nb-0a1b-a1-x1", f"nb-0a1b-a1-x1{'9' * 600}"])
def test_a_name_that_is_cut_or_cleaned_is_none_of_ours(name: str) -> None:
    listing = parse(Listing, json.dumps({"machines": [{"id": 1, "name": name}]}), "list")

    assert MachineName.parse(machines_of(listing, "list")[0].name) is None


def test_machines_are_sorted_by_id_and_equal_ones_count_once() -> None:
    rows = [{"id": one, "name": "x"} for one in ("b", 10, 9, "9")]

    found = machines_of(parse(Listing, json.dumps({"machines": rows}), "list"), "list")

    assert [one.machine_id for one in found] == ["9", "10", "b"]


def examples(script: str) -> list[str]:
    """The JSON of the reference page below a script's heading: what it reads, and then what it prints."""
    section = PAGE.read_text().split(f"\n## `{script}`\n")[1].split("\n## ")[0]
    return re.findall(r"```json\n(.*?)```", section, re.DOTALL)


@pytest.mark.parametrize("script", MODELS)
def test_each_reply_of_the_reference_page_is_read(script: str) -> None:
    _reads, *replies = examples(script)

    assert replies
    for text in replies:
        parse(MODELS[script], text, script)


def test_each_field_of_a_reply_is_in_the_reference_page() -> None:
    whole = json.loads(examples("list")[1])
    offer = json.loads(examples("offers")[1])["offers"][0]

    assert whole.keys() == Listing.model_fields.keys()
    assert whole["machines"][0].keys() == fields_of(Listing, "machines")
    assert offer.keys() == fields_of(Offers, "offers")
    assert {key for text in examples("rent")[1:] for key in json.loads(text)} == Rented.model_fields.keys()


def fields_of(model: type[BaseModel], name: str) -> set[str]:
    row = model.model_fields[name].annotation.__args__[0]  # type: ignore[union-attr]  # a tuple of rows
    return set(row.model_fields)


def test_the_scripts_read_what_the_reference_page_shows(tmp_path: Path) -> None:
    account = make_account(tmp_path / "scripts")
    for script in ("offers", "rent", "list", "release"):
        file = account.scripts / script
        (account.scripts / script).rename(account.scripts / f"real-{script}")
        write_script(file, f"tee {tmp_path / script} | {account.scripts / f'real-{script}'}")
    setup = CommandSetup(tmp_path / "keys", lambda _name, _keys: "#cloud-config\n...")
    cloud = CommandCloud(Scripts(account.scripts, Limits(SECONDS, 1 << 20)), SystemClock(), setup)

    cloud.offers()
    found = cloud.rent(
        MachineOrder(MachineName("0a1b", 1, SystemClock().now()), Offer("h100", 2.49, "east"), night="n")
    )
    cloud.release(found.machine_id)

    for script in ("offers", "rent", "list", "release"):
        read = json.loads((tmp_path / script).read_bytes())
        shown = json.loads(examples(script)[0])
        assert {key: type(value) for key, value in read.items()} == {key: type(value) for key, value in shown.items()}


def test_an_offer_that_is_sold_out_hides_no_dearer_one_of_its_kind() -> None:
    full, free = ({"kind": "k", "usd_per_hour": usd, "is_available": usd > 1} for usd in (1.0, 2.0))
    other = {"kind": "other", "usd_per_hour": 1.5}

    found = offers_of(parse(Offers, json.dumps({"offers": [full, free, other]}), "offers").offers)

    assert [(one.kind, one.usd_per_hour, one.is_available) for one in found] == [("other", 1.5, True), ("k", 2.0, True)]


def test_a_member_that_is_null_was_left_out() -> None:
    offer = {"kind": "k", "usd_per_hour": 1.0, "is_spot": None, "is_available": None, "region": None}
    machine = {"id": "1", "name": "x", "status": None}

    assert parse(Offers, json.dumps({"offers": [offer]}), "offers").offers[0].is_available
    assert parse(Listing, json.dumps({"machines": [machine], "now": None}), "list").machines[0].status == "active"
    assert parse(Rented, json.dumps({"refused": "no-capacity", "reason": None, "machine": None}), "rent").reason == ""
