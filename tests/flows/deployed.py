"""What prefect.yaml deploys on a Prefect server, and workers, as on the computer that runs the nights."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import prefect
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun, State
from prefect.deployments import run_deployment

from tests.flows.serving import PATIENCE_S, Service, environment, start

ROOT = Path(__file__).parents[2]


# In one process: to import the commands takes longer than to run them.
COMMANDS = """
import sys
from prefect.cli import app
for command in (
    "work-pool create --type process nightbench",
    "work-queue create nights --pool nightbench --limit 1",
    "deploy --all",
):
    sys.argv = ["prefect", "--no-prompt", *command.split()]
    try:
        app()
    except SystemExit as end:
        if end.code:
            raise
"""


def deploy(home: Path, url: str) -> None:
    """Let a server know the pool, the queue of nights and every deployment."""
    argv, env = [sys.executable, "-c", COMMANDS], environment(home, url)
    done = subprocess.run(argv, env=env, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def working(home: Path, url: str, settings: Mapping[str, str], *more: str) -> Iterator[Service]:
    """A worker elsewhere than in the checkout: what it needs to know is in its environment."""
    home.mkdir()
    ours = {name: value for name, value in settings.items() if name.startswith("NIGHTBENCH_")}
    env = {**environment(home, url), **ours, "NIGHTBENCH_HOME": str(ROOT), "PREFECT_WORKER_QUERY_SECONDS": "2"}
    service = start(home, ["worker", "start", "--pool", "nightbench", *more], env)
    try:
        yield service
    finally:
        service.stop()


def state_of(api: SyncPrefectClient, run: UUID) -> State[Any]:
    state = api.read_flow_run(run).state
    assert state is not None
    return state


def begin(name: str, **parameters: object) -> FlowRun:
    """Ask for a run of a deployment, as the schedule or a person does."""
    run = run_deployment(name, parameters=parameters, timeout=0, as_subflow=False)
    assert isinstance(run, FlowRun)
    return run


def finish(api: SyncPrefectClient, worker: Service, name: str, **parameters: object) -> FlowRun:
    """Run a deployment to its good end."""
    run = begin(name, **parameters)
    worker.wait_until(lambda: state_of(api, run.id).is_final(), f"{name} is over")
    assert state_of(api, run.id).name == "Completed", worker.last_words()
    return run


def template_of(kind: str) -> dict[str, Any]:
    """The job template of a pool of this type, as Prefect's server knows it without the package of its worker."""
    known = Path(prefect.__file__).parent / "server/api/collections_data/views/aggregate-worker-metadata.json"
    template: dict[str, Any] = json.loads(known.read_text())[f"prefect-{kind}"][kind]["default_base_job_configuration"]
    return template
