"""A target is parsed once, has one form in records, and says what differs there."""

import ast
from pathlib import Path

import pytest

from bench.errors import UsageError
from bench.suite.machine import Machine
from bench.suite.target import OwnHost, Target, parse_target

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("local", Target("local", is_here=True, is_scaled=True)),
        ("digitalocean", Target("digitalocean", is_rented=True)),
        ("ssh:me@host", Target("ssh:me@host:22", host=OwnHost("me", "host", 22), kind="own")),
        ("ssh:me@10.0.0.1:2222", Target("ssh:me@10.0.0.1:2222", host=OwnHost("me", "10.0.0.1", 2222), kind="own")),
        ("ssh:a@[::1]", Target("ssh:a@[::1]:22", host=OwnHost("a", "::1", 22), kind="own")),
        ("http://host", Target("http://host:80", is_here=True, url="http://host:80", kind="local")),
        ("HTTPS://Host/", Target("https://host:443", is_here=True, url="https://host:443", kind="local")),
        ("http://[::1]:8000", Target("http://[::1]:8000", is_here=True, url="http://[::1]:8000", kind="local")),
    ],
)
def test_a_target_says_what_differs_and_its_name_is_read_back_as_the_same(text: str, target: Target) -> None:
    assert parse_target(text) == target
    assert parse_target(target.name) == target


@pytest.mark.parametrize("text", ["ssh:", "ssh:host", "ssh:me@", "ssh:me@host:0", "ssh:me@host:99999", "ssh:me@h:x"])
def test_a_host_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="must have the form ssh:user@host"):
        parse_target(text)


@pytest.mark.parametrize(
    "text",
    ["http://", "http://host/v1", "http://host?x", "http://host:x", "http://host:0", "https://h:70000", "http://[h"],
)
def test_a_url_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="must have the form http://host:port"):
        parse_target(text)


@pytest.mark.parametrize("text", ["http://user:secret@host", "http://:secret@host:x", "https://secret@host/v1"])
def test_a_url_with_a_login_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(UsageError, match="has a user or a password") as caught:
        parse_target(text)

    assert "secret" not in str(caught.value)


def test_a_suites_machine_is_leased_only_where_it_can_be() -> None:
    machine = Machine(name="fast", kind="gpu-x", gpu="MI300X", gpu_count=1, lease_minutes=7)

    leased = [parse_target(text).leased(machine) for text in ("cloud", "local", "ssh:me@host", "http://host")]

    assert leased == [
        machine,
        machine,
        Machine(name="fast", kind="own", lease_minutes=7),
        Machine(name="fast", kind="local", lease_minutes=7),
    ]


def test_no_other_file_takes_the_text_of_a_target_apart() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for room in ("bench", "catalog", "nights", "infra", "warehouse", "tasks", "flows")
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare | ast.Call) and _asks_for_a_target(ast.unparse(node))
        if path != ROOT / "bench" / "suite" / "target.py"
    ]

    assert found == []


def _asks_for_a_target(code: str) -> bool:
    names = ("target", "cloud", "night.target", "lease.cloud", "planned")
    compared = {f"{name} {sign} 'local'" for name in names for sign in ("==", "!=")}
    return code in compared or ".startswith('ssh:" in code or ".startswith(('http://'" in code
