"""What a golden image holds, as a hash."""

from bench.machine.image_hash import content_of
from bench.suite.engine import Engine

ENGINE = Engine(version="0.32.0", max_model_len=4096)
LOCKS = {"engine.lock.txt": "a" * 64}


def test_the_hash_of_a_suite_without_tasks_stays_so_that_its_images_are_found() -> None:
    assert content_of("ubuntu-24-04-x64", ENGINE, LOCKS) == content_of("ubuntu-24-04-x64", ENGINE, LOCKS, ())
    assert content_of("ubuntu-24-04-x64", ENGINE, LOCKS) == "92b73ad29b03"


def test_a_new_build_of_a_tag_is_the_same_image_and_another_tag_or_a_pinned_digest_is_not() -> None:
    def tracked(track: str | None, digit: str) -> str:
        image = f"index.docker.io/rocm/vllm-dev@sha256:{64 * digit}"
        engine = Engine(version="0.32.0", max_model_len=4096, install="container", image=image, track=track)
        return content_of("ubuntu", engine, LOCKS)

    assert tracked("nightly", "a") == tracked("nightly", "b")
    assert len({tracked("nightly", "a"), tracked("weekly", "a"), tracked(None, "a"), tracked(None, "b")}) == 4


def test_an_image_with_the_engine_of_a_control_is_another() -> None:
    plain, control, newer = (
        content_of("ubuntu", ENGINE, LOCKS, control=one)
        for one in (None, ENGINE, ENGINE.model_copy(update={"version": "0.33.0"}))
    )

    assert len({plain, control, newer}) == 3


def test_other_tasks_are_another_image_and_their_order_is_not() -> None:
    plain, one, both = (content_of("ubuntu", ENGINE, LOCKS, tasks) for tasks in ((), ("gsm8k",), ("gsm8k", "arc")))

    assert len({plain, one, both}) == 3
    assert content_of("ubuntu", ENGINE, LOCKS, ("arc", "gsm8k")) == both
