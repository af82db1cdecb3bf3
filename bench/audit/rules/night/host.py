"""Whether other processes took the machine's CPU time or GPUs during the load."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

HOST_RULES: tuple[Rule, ...] = (
    Rule(
        code="host_busy",
        column=ev.OTHER_CPU_OVER_ALLOWED,
        family="host",
        is_of_batches=True,
        is_of_commands=True,
        passing=(None, 1.0),
        tolerated=(None, 4.0),
        sentence="other processes took {value:.1f} times the CPU time that the suite allows them",
        is_required=False,
        lacking="not measured: {not_measured}",
        note="{other_processes}",
        origin=(
            "measured busy host: vLLM on CPU loses 0.8 % of its tokens per second for each 1 % of the cores' time that "
            "others take. The default of 5 % costs what quiet runs differ by; four times that costs 17 %"
        ),
    ),
    Rule(
        code="host_busy_gpu",
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
