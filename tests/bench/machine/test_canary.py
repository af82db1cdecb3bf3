"""What the canary printed becomes results, whatever stands between its lines, and is held against peaks and floors."""

from datetime import UTC, datetime

import pytest

from bench.machine.canary import (
    MARK,
    UNITS,
    CanaryRecord,
    CanaryReport,
    CanaryResult,
    compare,
    peak_of,
    read_report,
    with_verdict,
)
from catalog.read import find_gpu, read_canary_floors, read_gpus
from tests.bench.machine.canaries import MI300X, STARTED, record, whole

ENDED = "the canary program ended with exit code 0"


def by_test(report: CanaryReport) -> dict[tuple[str, int | None], CanaryResult]:
    return {(result.test, result.device): result for result in report.results}


def test_a_whole_canary_on_a_cpu_is_read(cpu_output: str) -> None:
    report = read_report(cpu_output, ENDED)

    assert (report.reason, report.torch_version, report.gpus) == (None, "2.13.0+cpu", ())
    tests = ["disk_read", "memory_copy", "memory_read", "matmul_bf16", "matmul_fp16", "matmul_fp8"]
    assert [result.test for result in report.results] == tests
    assert all(result.value and result.device is None and result.reason is None for result in report.results)


@pytest.fixture
def cpu_output() -> str:
    return whole("cpu-vllm-0.32.0.txt")


def test_a_driver_may_print_between_the_lines_and_around_them(cpu_output: str) -> None:
    noisy = "\x00\x1b[0mamdgpu: warning\n" + cpu_output.replace(MARK, f"[W1122 NNPACK.cpp:61] {MARK}").replace(
        "}\n", "} trailing words\n{not json\n"
    )

    assert read_report(noisy, ENDED) == read_report(cpu_output, ENDED)


def test_a_program_that_prints_garbage_has_no_results_and_is_quoted() -> None:
    report = read_report("\ufffd\ufffd\n" * 3 + f"{MARK} [1]\n{MARK} {{broken\nlast words", ENDED)

    assert (report.results, report.gpus, report.torch_version) == ((), (), None)
    assert report.reason is not None
    assert report.reason.startswith(f"{ENDED}: its output ends with ")
    assert report.reason.endswith("last words")


def test_a_crash_keeps_what_was_measured_and_names_the_test_that_it_came_in() -> None:
    begun = f'{MARK} {{"test": "memory_copy", "device": 0, "value": 4100.5}}\n'
    begun += f'{MARK} {{"test": "matmul_fp8", "device": 0, "begins": true}}\n'
    begun += "Memory access fault by GPU node-2 on address 0x7f. Reason: Unknown."

    report = read_report(begun, "the canary program was ended by signal 6")

    assert by_test(report)["memory_copy", 0].value == 4100.5
    assert by_test(report)["matmul_fp8", 0].reason == "the canary program was ended by signal 6 during this test"
    assert report.reason == (
        "the canary program was ended by signal 6: its output ends with "
        "Memory access fault by GPU node-2 on address 0x7f. Reason: Unknown."
    )


def test_a_python_without_torch_says_so() -> None:
    line = f'{MARK} {{"reason": "torch cannot be imported by /opt/bin/python: No module named \'torch\'"}}\n'

    assert read_report(line, ENDED).reason == "torch cannot be imported by /opt/bin/python: No module named 'torch'"


def test_a_precision_that_the_gpu_lacks_has_a_reason_and_the_rest_a_value() -> None:
    lines = f'{MARK} {{"test": "matmul_fp8", "device": 0, "begins": true}}\n'
    why = "RuntimeError: torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9"
    lines += f'{MARK} {{"test": "matmul_fp8", "device": 0, "reason": "{why}"}}\n{MARK} {{"done": true}}\n'

    report = read_report(lines, ENDED)

    assert (report.reason, [result.reason for result in report.results]) == (None, [why])


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-3.0", "0", '"fast"', "null", "true", f"1{400 * '0'}"])
def test_what_is_not_a_speed_is_a_reason_and_never_a_value(value: str) -> None:
    result = read_report(f'{MARK} {{"test": "link", "device": 0, "peer": 1, "value": {value}}}\n', ENDED).results[0]

    assert result.value is None
    assert result.reason is not None
    assert result.reason.endswith("which is not a speed")


def test_tests_and_devices_that_are_unknown_are_passed_over() -> None:
    lines = f'{MARK} {{"test": "soul", "value": 1}}\n{MARK} {{"test": "link", "device": "all", "value": 1}}\n'

    assert read_report(lines, ENDED).results == ()


def test_each_peak_is_the_catalogues_and_a_cpu_has_none() -> None:
    h100, a100 = find_gpu("NVIDIA H100 80GB HBM3"), find_gpu("A100-80")

    assert [peak_of(test, h100) for test in ("memory_copy", "matmul_bf16", "matmul_fp8")] == [3350.0, 989.4, 1978.9]
    assert [peak_of(test, h100) for test in ("link", "disk_read")] == [None, None]
    assert peak_of("matmul_fp8", a100) is None
    assert peak_of("memory_copy", None) is None


def test_each_floor_is_of_a_known_gpu_and_test_and_below_the_peak() -> None:
    gpus = {gpu.gpu: gpu for gpu in read_gpus()}
    for row in read_canary_floors():
        peak = peak_of(row.test, gpus[row.gpu])
        assert row.test in UNITS
        assert peak is None or 0.15 * peak < row.floor < 0.9 * peak, row


def test_a_healthy_gpu_passes_and_has_its_shares() -> None:
    healthy = record({"memory_copy": 4200.0, "matmul_bf16": 590.0})

    copied, multiplied = compare(healthy, find_gpu, read_canary_floors())

    assert with_verdict(healthy, find_gpu, read_canary_floors()) == healthy
    assert copied.share_of_peak == pytest.approx(4200 / 5325)
    assert multiplied.over_floor == pytest.approx(590 / 327)


def test_a_gpu_below_its_floor_makes_the_machine_unfit_and_is_named_with_both_numbers() -> None:
    slow = with_verdict(record({"memory_copy": 4200.0, "matmul_bf16": 90.25}), find_gpu, read_canary_floors())

    assert slow.unfit == (
        "the canary is below its floor: matmul_bf16 of GPU 0 (AMD Instinct MI300X VF) reached 90.25 TFLOP/s, the floor "
        "is 327 TFLOP/s (catalog/canary_floors.csv, not verified); use another machine"
    )


def test_of_many_results_below_the_floor_the_worst_are_named() -> None:
    results = tuple(CanaryResult(test="memory_copy", device=at, value=100.0 + at) for at in range(8))
    all_slow = record({}).model_copy(update={"gpus": 8 * (MI300X,), "results": results})

    unfit = with_verdict(all_slow, find_gpu, read_canary_floors()).unfit

    assert unfit is not None
    assert "of GPU 0" in unfit
    assert "of GPU 3" not in unfit
    assert "5 more results are below" in unfit


@pytest.mark.parametrize("gpus", [(), ("Some GPU 9000",)])
def test_a_cpu_and_an_unknown_gpu_have_no_floor(gpus: tuple[str, ...]) -> None:
    slow = record({"memory_copy": 0.001}).model_copy(update={"gpus": gpus})

    assert with_verdict(slow, find_gpu, read_canary_floors()).unfit is None
    assert compare(slow, find_gpu, read_canary_floors())[0].share_of_peak is None


def test_a_test_without_a_value_is_not_below_the_floor() -> None:
    results = (CanaryResult(test="matmul_fp8", device=0, reason="unsupported"),)
    lacking = CanaryRecord(
        lease_id="l", position="before", started_at=STARTED, duration_s=1.0, gpus=(MI300X,), results=results
    )

    assert with_verdict(lacking, find_gpu, read_canary_floors()).unfit is None


def test_a_canary_that_did_not_start_is_a_record_with_its_reason() -> None:
    found = CanaryRecord.not_run("l-1", "after", datetime(2026, 11, 22, tzinfo=UTC), "the machine is gone")

    assert CanaryRecord.model_validate_json(found.model_dump_json()) == found
    assert (found.reason, found.unfit, found.results) == ("the machine is gone", None, ())
