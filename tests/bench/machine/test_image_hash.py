"""What a golden image holds, as a hash."""

from bench.machine.image_hash import content_of
from bench.suite.engine import Engine

ENGINE = Engine(version="0.32.0", max_model_len=4096)
LOCKS = {"engine.lock.txt": "a" * 64}


def test_the_hash_of_a_suite_without_tasks_stays_so_that_its_images_are_found() -> None:
    assert content_of("ubuntu-24-04-x64", ENGINE, LOCKS) == content_of("ubuntu-24-04-x64", ENGINE, LOCKS, ())
    assert content_of("ubuntu-24-04-x64", ENGINE, LOCKS) == "92b73ad29b03"


def test_other_tasks_are_another_image_and_their_order_is_not() -> None:
    plain, one, both = (content_of("ubuntu", ENGINE, LOCKS, tasks) for tasks in ((), ("gsm8k",), ("gsm8k", "arc")))

    assert len({plain, one, both}) == 3
    assert content_of("ubuntu", ENGINE, LOCKS, ("arc", "gsm8k")) == both
