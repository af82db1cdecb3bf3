"""Two machines compared: equal terms, each difference, and why a comparison is refused."""

from bench.comparison import Term, compare_machines
from bench.record import RunRecord
from bench.suite.machine import Machine
from tests.bench.builders import run_record


def on(machine: str, flags: tuple[str, ...] = (), environment: dict[str, str] | None = None) -> RunRecord:
    run = run_record()
    asked = run.asked.model_copy(
        update={
            "name": f"{run.asked.name}@{machine}",
            "machine": Machine(name=machine, kind=f"gpu-{machine}"),
            "engine": run.asked.engine.model_copy(update={"flags": flags, "environment": environment or {}}),
        }
    )
    return run.model_copy(update={"asked": asked})


def test_flags_and_variables_that_differ_are_listed_one_by_one_and_the_rest_is_equal() -> None:
    one = on(
        "mi300x", ("-tp", "8", "--max-num-seqs", "1024"), {"VLLM_ROCM_USE_AITER": "1", "SAFETENSORS_FAST_GPU": "1"}
    )
    other = on("h200", ("--tensor-parallel-size=8",), {"SAFETENSORS_FAST_GPU": "1"})

    found = compare_machines([one], [other])

    assert (found.machines, found.refused) == (("mi300x", "h200"), ())
    assert {str(term) for term in found.different} >= {
        "machine kind: gpu-mi300x and gpu-h200",
        "flags --max-num-seqs: 1024 and not set",
        "environment VLLM_ROCM_USE_AITER: 1 and not set",
    }
    equal = {term.name for term in found.equal}
    assert equal >= {"workload", "model", "precision", "load driver", "flags --tensor-parallel-size"}
    assert "environment SAFETENSORS_FAST_GPU" in equal
    assert not equal & {term.name for term in found.different}


def test_another_workload_precision_or_model_refuses_the_comparison_with_its_reason() -> None:
    one, other = on("a"), on("b")
    asked = other.asked.model_copy(
        update={
            "workload": other.asked.workload.model_copy(update={"isl": 999}),
            "model": other.asked.model.model_copy(update={"precision": "fp8"}),
        }
    )

    refused = compare_machines([one], [other.model_copy(update={"asked": asked})]).refused

    assert [why.partition(":")[0] for why in refused] == ["the workload differs", "the precision differs"]
    assert "fp8" in refused[1]


def test_machines_without_a_scenario_in_common_are_not_compared() -> None:
    other = on("b")
    renamed = other.model_copy(update={"asked": other.asked.model_copy(update={"name": "elsewhere@b"})})

    assert compare_machines([on("a")], [renamed]).refused == ("they have measured no scenario in common",)


def test_what_is_unknown_of_one_machine_is_a_difference() -> None:
    assert not Term("ROCm", (), ("7.0.0",)).is_equal
    assert str(Term("ROCm", (), ("7.0.0",))) == "ROCm: unknown and 7.0.0"
