"""Download the data of lm-eval's tasks onto a rented machine, so that its servers can be asked offline later."""

from pathlib import Path

from bench.suite.quality import LmEval
from infra.processes.command import run_tool
from infra.reporting import Say

TIMEOUT_S = 900.0  # of one task's data; the model downloads at the same time and takes longer


def fetch_task_data(command: Path, asked: LmEval, endpoint: str | None, say: Say) -> None:
    """Have the harness load each task once with its dummy model, which fills the cache of the machine.

    A task whose data cannot be downloaded is reported, and has no score later. Tasks in a folder of the machine's own
    have their data there. `endpoint`: of the model hub; None: the library's own.
    """
    if asked.folder is not None:
        return
    online = ["env", "HF_HUB_OFFLINE=0", "HF_DATASETS_OFFLINE=0", *([f"HF_ENDPOINT={endpoint}"] if endpoint else [])]
    for task in asked.tasks:
        say(f"downloading the data of the lm-eval task {task}")
        loaded = run_tool(
            [*online, str(command), "run", "--model", "dummy", "--limit", "1", "--tasks", task], timeout_s=TIMEOUT_S
        )
        if not loaded.is_good:
            say(f"the data of the lm-eval task {task} could not be downloaded: {loaded.why}")
