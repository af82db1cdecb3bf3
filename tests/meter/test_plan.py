"""A wrong plan is refused in one sentence that names what is wrong; nothing is sent."""

import json
import socket
from contextlib import closing
from pathlib import Path

import pytest

from meter.errors import UsageError
from meter.plan import parse_plan
from tests.meter.conftest import PLAN, RunMeter, make_plan


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"colour": "red"}, "unknown key colour"),
        ({"meter_plan_version": 1}, "meter_plan_version must be 2"),
        ({"url": "ftp://127.0.0.1:1"}, "url must be http://host:port"),
        ({"url": "http://127.0.0.1:70000"}, "url must be"),
        ({"path": "v1"}, "path must be"),
        ({"model": ""}, "model must be"),
        ({"output_tokens": 0}, "output_tokens must be a whole number of 1 or more, not 0"),
        ({"output_tokens": True}, "output_tokens must be"),
        ({"request_count": 2.5}, "request_count must be"),
        ({"timeout_s": -1}, "timeout_s must be"),
        ({"load": []}, "load must be an object"),
        ({"load": {"kind": "burst"}}, "load"),
        ({"load": {"kind": "closed", "concurrency": 0}}, "load.concurrency must be"),
        ({"load": {"kind": "closed", "rate_per_s": 1}}, "has no key load.concurrency"),
        ({"load": {"kind": "poisson", "rate_per_s": 1, "concurrency": 2}}, "unknown key load.concurrency"),
        ({"load": {"kind": "gamma", "rate_per_s": 1}}, "has no key load.burstiness"),
        ({"load": {"kind": "gamma", "rate_per_s": 1, "burstiness": 0}}, "load.burstiness must be a number above 0"),
        ({"load": {"kind": "poisson", "rate_per_s": 1, "burstiness": 2}}, "unknown key load.burstiness"),
        ({"load": {"kind": "trace", "arrivals_s": [0.0, 1.0]}}, "has 2 times for 6 requests"),
        ({"load": {"kind": "trace", "arrivals_s": [0, 2, 1, 3, 4, 5]}}, "load.arrivals_s must be a list of seconds"),
        ({"load": {"kind": "trace", "arrivals_s": [-1, 0, 1, 2, 3, 4]}}, "load.arrivals_s must be a list of seconds"),
        ({"load": {"kind": "trace", "arrivals_s": [0, 1, 2, 3, 4, True]}}, "load.arrivals_s must be a list of seconds"),
        ({"load": {"kind": ["closed"]}}, "load.kind must be"),
        ({"workers": 0}, "workers must be"),
        ({"workers": 3}, "3 workers cannot share 2 streams"),
        ({"kernel_stamps": 1}, "kernel_stamps must be true or false"),
        ({"extra_body": {"stream": False}}, "extra_body must be an object without the keys"),
    ],
)
def test_a_wrong_plan_is_refused_by_name(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=r".") as caught:
        parse_plan(json.dumps(make_plan(**changes)))

    assert words in str(caught.value)


@pytest.mark.parametrize("key", sorted(PLAN))
def test_every_key_is_required(key: str) -> None:
    plan = {name: value for name, value in PLAN.items() if name != key}

    with pytest.raises(UsageError, match=f"has no key {key}"):
        parse_plan(json.dumps(plan))


@pytest.mark.parametrize("text", ["{", "[]", "null"])
def test_what_is_not_an_object_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_plan(text)


def test_the_hash_of_a_plan_does_not_depend_on_its_layout() -> None:
    assert parse_plan(json.dumps(PLAN)).sha256 == parse_plan(json.dumps(PLAN, indent=2, sort_keys=True)).sha256


def test_a_wrong_plan_exits_with_2_and_one_line(run_meter: RunMeter) -> None:
    report = run_meter("http://127.0.0.1:1", output_tokens=0)

    assert report.exit_code == 2
    assert report.stderr.count("\n") == 1
    assert not report.folder.exists()


def test_a_server_that_does_not_answer_exits_with_3(run_meter: RunMeter) -> None:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))  # bound but not listening: no other process can answer there

        report = run_meter(f"http://127.0.0.1:{bound.getsockname()[1]}")

    assert report.exit_code == 3
    assert "does not answer" in report.stderr
    assert report.stderr.count("\n") == 1


def test_a_folder_that_is_not_empty_is_refused_and_not_changed(run_meter: RunMeter, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious.txt").write_text("x")

    report = run_meter("http://127.0.0.1:1")

    assert report.exit_code == 2
    assert "not empty" in report.stderr
    assert [path.name for path in report.folder.iterdir()] == ["precious.txt"]
