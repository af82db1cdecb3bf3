"""Download the data of lm-eval's tasks onto a rented machine, so that later the tasks run offline."""

from collections.abc import Sequence

from bench.quality.lm_eval import ENVIRONMENT
from bench.suite.quality import LmEval
from infra.measurement.lm_eval_venv import is_bfcl, ready_harness
from infra.processes.command import CommandResult, run_tool
from infra.reporting import Say
from infra.settings import Settings

TIMEOUT_S = 900.0  # of one task's data; the model downloads at the same time and takes longer


def fetch_task_data(settings: Settings, asked: LmEval, say: Say) -> list[str]:
    """Have the harness load each task once with its dummy model, which fills the cache of the machine.

    A task whose data is there, as on a machine that boots a golden image, is loaded without the hub. Returns a sentence
    for each task whose data cannot be downloaded: it has no score later. Tasks in a folder of the machine's own have
    their data there, and those of BFCL in its package. Raises as ready_harness does.
    """
    offline = ["env", *(f"{name}={value}" for name, value in ENVIRONMENT.items())]
    endpoint = settings.hub_endpoint
    online = ["env", "HF_HUB_OFFLINE=0", "HF_DATASETS_OFFLINE=0", *([f"HF_ENDPOINT={endpoint}"] if endpoint else [])]
    failed: list[str] = []
    for task in asked.tasks:
        command = ready_harness(settings, task, say)
        if asked.folder is not None or is_bfcl(task):
            continue
        if _load(offline, command, task).is_good:
            say(f"the data of the lm-eval task {task} is on this machine")
            continue
        say(f"downloading the data of the lm-eval task {task}")
        loaded = _load(online, command, task)
        if not loaded.is_good:
            failed.append(f"the data of the lm-eval task {task} could not be downloaded: {loaded.why}")
            say(failed[-1])
    return failed


def _load(environment: list[str], command: Sequence[str], task: str) -> CommandResult:
    argv = [*environment, *command, "run", "--model", "dummy", "--limit", "1", "--tasks", task]
    return run_tool(argv, timeout_s=TIMEOUT_S)
