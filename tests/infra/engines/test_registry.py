"""What a tag names now, asked of the registry that the reference names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import EngineBuildError
from infra.engines.registry import COMMIT, VERSION, ResolvedImage, resolve_tag
from tests.emulators.registry import Fault, RegistryEmulator
from tests.emulators.virtual_clock import VirtualClock

LABELS = {VERSION: "0.32.0", COMMIT: "c" * 40, "maintainer": "somebody"}


@pytest.fixture
def registry() -> Iterator[RegistryEmulator]:
    with RegistryEmulator() as found:
        yield found


def test_a_tag_is_the_digest_of_its_index_with_version_and_commit_of_its_labels(registry: RegistryEmulator) -> None:
    digest = registry.push("team/engine", "v0.32.0", LABELS)

    found = resolve_tag(f"{registry.host}/team/engine:v0.32.0")

    assert found == ResolvedImage(f"{registry.host}/team/engine@{digest}", "0.32.0", "c" * 40)


def test_a_tag_that_moved_is_another_digest(registry: RegistryEmulator) -> None:
    image = f"{registry.host}/team/engine:nightly"
    registry.push("team/engine", "nightly", LABELS)
    before = resolve_tag(image)

    registry.push("team/engine", "nightly", LABELS | {COMMIT: "d" * 40})

    after = resolve_tag(image)
    assert (before.name == after.name, after.commit) == (False, "d" * 40)


def test_a_registry_without_tokens_and_an_image_without_labels_are_fine(registry: RegistryEmulator) -> None:
    registry.is_open = True
    digest = registry.push("engine", "latest", {})

    assert resolve_tag(f"{registry.host}/engine") == ResolvedImage(f"{registry.host}/engine@{digest}")


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("team/engine:v9", "its registry has no such repository or tag: check both (MANIFEST_UNKNOWN"),
        ("team/other:v1", "its registry has no such repository or tag: check both (NAME_UNKNOWN"),
        ("team/arm:v1", "has no image for linux/amd64: choose another tag"),
    ],
)
def test_what_a_registry_does_not_have_is_named(registry: RegistryEmulator, image: str, why: str) -> None:
    registry.push("team/engine", "v1", LABELS)
    registry.push("team/arm", "v1", LABELS, architecture="arm64")

    with pytest.raises(EngineBuildError) as caught:
        resolve_tag(f"{registry.host}/{image}")

    assert f"{registry.host}/{image}" in str(caught.value)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("denied", "denies access without a login: give the image's digest"),
        ("basic", "demands a login: give the image's digest"),
        ("other-digest", "the registry calls a manifest sha256:"),
        ("not-json", "the registry's answer is not JSON"),
        ("endless", "the registry's answer is larger than"),
    ],
)
def test_an_answer_that_cannot_be_used_is_an_error_with_its_reason(
    registry: RegistryEmulator, fault: Fault, why: str
) -> None:
    registry.push("team/engine", "v1", LABELS)
    registry.faults.append(fault)

    with pytest.raises(EngineBuildError) as caught:
        resolve_tag(f"{registry.host}/team/engine:v1")

    assert why in str(caught.value)


@pytest.mark.parametrize("fault", ["busy", "cut"])
def test_a_busy_registry_is_asked_again_and_given_up_after_a_minute(
    registry: RegistryEmulator, fault: Fault, tmp_path: Path
) -> None:
    digest = registry.push("team/engine", "v1", LABELS)
    image = f"{registry.host}/team/engine:v1"
    registry.faults += [fault] * 2
    clock = VirtualClock(tmp_path / "clock")

    assert resolve_tag(image, clock).name.endswith(digest)

    registry.faults += [fault] * 100
    began_s = clock.monotonic()
    with pytest.raises(EngineBuildError, match="the registry does not answer"):
        resolve_tag(image, clock)
    assert clock.monotonic() - began_s == pytest.approx(60, abs=5)


@pytest.mark.parametrize("image", ["vllm/engine:v1", "engine:v1", "engine"])
def test_a_reference_without_a_host_is_not_guessed(image: str) -> None:
    with pytest.raises(EngineBuildError, match="names no registry"):
        resolve_tag(image)
