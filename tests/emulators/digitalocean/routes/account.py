"""The account, its SSH keys, its balance."""

import base64
import binascii

from tests.emulators.digitalocean.catalog import Json
from tests.emulators.digitalocean.replies import Reply, not_found, paged, refusal
from tests.emulators.digitalocean.resources import Key, iso
from tests.emulators.digitalocean.routing import Call, route


@route("GET", "/v2/account", "account:read")
def account(call: Call) -> Reply:
    shown: Json = {
        "droplet_limit": call.state.behaviour.droplet_limit,
        "floating_ip_limit": 5,
        "reserved_ip_limit": 5,
        "volume_limit": call.state.behaviour.volume_limit,
        "email": "nightbench@example.com",
        "name": "Night Bench",
        "uuid": "b6fr89dbf6d9156cace5f3c78dc9851d957381ef",
        "email_verified": True,
        "status": "active",
        "status_message": "",
        "team": {"uuid": "5df3e3004a17e242b7c20ca6c9fc25b701a47ece", "name": "My Team"},
    }
    return Reply(200, {"account": shown | call.state.account})


@route("GET", "/v2/account/keys", "ssh_key:read")
def keys(call: Call) -> Reply:
    return paged("ssh_keys", [key.json() for key in call.state.known_keys()], call.request, call.base)


@route("POST", "/v2/account/keys", "ssh_key:create")
def add_key(call: Call) -> Reply:
    body = call.body()
    public_key, name = str(body.get("public_key", "")), str(body.get("name", ""))
    if not name or not _is_key(public_key):
        raise refusal(422, "Key invalid, key should be of the format `type key [comment]`")
    key = Key(call.state.next_id(), name, public_key, created_at=call.now)
    if any(other.fingerprint == key.fingerprint for other in call.state.keys.values()):
        raise refusal(422, "SSH Key is already in use on your account")
    call.state.keys[key.key_id] = key
    return Reply(201, {"ssh_key": key.json()})


def _is_key(text: str) -> bool:
    words = text.split()
    try:
        return len(words) > 1 and bool(base64.b64decode(words[1], validate=True))
    except binascii.Error:
        return False


def _key(call: Call) -> Key:
    for key in call.state.known_keys():
        if call.parts["key"] in {str(key.key_id), key.fingerprint}:
            return key
    raise not_found()


@route("GET", "/v2/account/keys/{key}", "ssh_key:read")
def show_key(call: Call) -> Reply:
    return Reply(200, {"ssh_key": _key(call).json()})


@route("PUT", "/v2/account/keys/{key}", "ssh_key:update")
def rename_key(call: Call) -> Reply:
    key = _key(call)
    call.state.touch("rename", key.name, foreign=key.foreign)
    key.name = str(call.body().get("name", key.name))
    return Reply(200, {"ssh_key": key.json()})


@route("DELETE", "/v2/account/keys/{key}", "ssh_key:delete")
def delete_key(call: Call) -> Reply:
    key = _key(call)
    call.state.touch("delete", key.name, foreign=key.foreign)
    del call.state.keys[key.key_id]
    return Reply(204)


@route("GET", "/v2/customers/my/balance", "billing:read")
def balance(call: Call) -> Reply:
    """Only day by day, as the real one: it cannot prove that anything has ended."""
    midnight = call.now - call.now % 86400
    spent = f"{call.state.bill.usd(midnight):.2f}"
    return Reply(
        200,
        {
            "month_to_date_balance": spent,
            "account_balance": "0.00",
            "month_to_date_usage": spent,
            "generated_at": iso(midnight),
        },
    )
