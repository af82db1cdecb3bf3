import pytest

from bench.engines.vllm import find_failure
from bench.errors import ServerStartError
from infra.engines import server
from infra.engines.launch import ServerRequest
from infra.engines.start_patience import StartPatience
from tests.infra.engines.test_server import quiet, what

__all__ = ["what"]
START, WAIT, FINISH = (
    "[aiter] start build [module_fmha_v3_fwd] under /opt/aiter/jit/build",
    "[aiter] waiting for baton release at /opt/aiter/jit/build/lock_module_fmha_v3_fwd",
    "[aiter] finish build [module_fmha_v3_fwd], cost 19.5s",
)


def test_a_start_without_compiling_gets_its_timeout() -> None:
    patience = StartPatience(60.0, began_s=100.0)

    assert [patience.is_over(0, now_s) for now_s in (100.0, 159.0, 160.0)] == [False, False, True]
    assert patience.explain() == "the server was not ready after 60 s (suite: ready_timeout_s)"


def test_each_step_of_compiling_gives_it_the_timeout_again() -> None:
    patience = StartPatience(60.0, began_s=0.0)

    assert [patience.is_over(*seen) for seen in ((1, 50.0), (1, 109.0), (2, 109.5), (2, 169.0), (2, 169.5))] == [
        *(False, False, False, False),
        True,
    ]


def test_compiling_without_an_end_is_waited_for_three_times_as_long() -> None:
    patience = StartPatience(60.0, began_s=0.0)

    over = next(second for second in range(1000) if patience.is_over(second, float(second)))

    assert over == 180
    assert "longer while kernels are compiled, at most 180 s" in patience.explain()


def test_a_server_that_waits_for_a_lock_of_kernels_fails_as_that(what: ServerRequest) -> None:
    what.engine.executable.write_text(f"#!/bin/sh\necho '{START}'\necho '{WAIT}'\nexec sleep 600\n")
    impatient = ServerRequest(**{**what.__dict__, "ready_timeout_s": 4.0})

    with pytest.raises(ServerStartError, match=r"longer while kernels are compiled.*jit_stuck") as caught:
        server.bring_up(impatient, quiet)

    assert caught.value.failure == "jit_stuck"


def test_compiling_before_another_failure_explains_nothing() -> None:
    failure = find_failure(f"{START}\n{WAIT}\n{FINISH}\ntorch.OutOfMemoryError: HIP out of memory.\n")

    assert failure is not None
    assert failure.kind == "oom_runtime"
