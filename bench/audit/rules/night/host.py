"""Whether other processes or a hypervisor took the machine's CPU time or GPUs during the load, or cores were slower.

That is noise and no fault: it makes a run suspect, and how far the repeats then differ says what it cost.
"""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

_ORIGIN = (
    "measured busy host: vLLM on CPU loses 0.8 % of its tokens per second for each 1 % of the cores' time that others"
    " take. The default of 5 % costs what quiet runs differ by. It only warns: the interval of the repeats has the rest"
)

HOST_RULES: tuple[Rule, ...] = (
    Rule(
        code="busy_host",
        is_noise=True,
        column=ev.OTHER_CPU_OVER_ALLOWED,
        family="host",
        is_of_batches=True,
        is_of_commands=True,
        passing=(None, 1.0),
        tolerated=None,
        sentence="other processes took {value:.1f} times the CPU time that the suite allows them",
        is_required=False,
        lacking="not measured: {not_measured}",
        note="{other_processes}",
        origin=_ORIGIN,
    ),
    Rule(
        code="stolen_cpu",
        is_noise=True,
        column=ev.STEAL_OVER_ALLOWED,
        family="host",
        is_of_batches=True,
        is_of_commands=True,
        passing=(None, 1.0),
        tolerated=None,
        sentence="the hypervisor took {value:.1f} times the CPU time that the suite allows others",
        is_required=False,
        lacking="the kernel does not count stolen CPU time",
        note="{host_pressure}",
        origin=_ORIGIN,
    ),
    Rule(
        code="slow_core",
        is_noise=True,
        column=ev.CORE_TIME_OVER_BEST,
        family="host",
        is_of_batches=True,
        is_of_commands=True,
        passing=(None, 1.05),
        tolerated=None,
        sentence="the cores took {value:.2f} times as long for a fixed piece of work as in the night's fastest run",
        scope="metric",
        is_required=False,
        only_where="core_speed_share",
        note="{host_pressure}",
        origin=(
            "chosen by Nightbench: what busy_host allows others. It is the cause of a wide interval and alone doubts no"
            " run: where repeats agree nevertheless, their mean is as sure as their interval"
        ),
    ),
    Rule(
        code="busy_host_gpu",
        column=ev.OTHER_GPU_PROCESSES,
        family="host",
        is_of_batches=True,
        is_of_commands=True,
        passing=ZERO,
        tolerated=None,
        sentence="{value:#other process|other processes} used the GPUs during the load",
        is_required=False,
        lacking="not measured: {not_measured}",
        only_where="gpus",
        note="{other_gpu_processes}",
        origin="another process on a GPU takes its memory, its bandwidth and its compute; how much is not known",
    ),
)
