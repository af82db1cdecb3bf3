"""The work pool, the queue that runs one night at a time, and the deployments of prefect.yaml."""

import hashlib
import subprocess

import yaml

from bench.errors import UsageError
from flows.service.api import reach
from flows.service.parts import CHECKOUT, POOL, QUEUE, Service
from infra.processes.environment import child_environment
from infra.processes.own_program import own_program
from infra.reporting import Say

FILE = CHECKOUT / "prefect.yaml"
PATIENCE_S = 300.0
LAST_LINES = 3
MACHINE_NIGHT = "machine-night/machine-night"
_KNOWN = "already exists"


def deploy(service: Service, say: Say) -> None:
    """Make pool, queue and deployments, where one is missing or `prefect.yaml` or the code of a flow has changed.

    What was changed in the UI, such as a schedule that is off, stays until then. Raises UsageError with Prefect's words
    where something is refused, such as a schedule that is not a cron expression.
    """
    deployed = service.folder / "deployed"
    now = _digest(service)
    if deployed.exists() and deployed.read_text("utf-8") == now and _are_there(service):
        return
    say("deploying prefect.yaml")
    _prefect(service, "work-pool", "create", "--type", "process", POOL, "--overwrite")
    _prefect(service, "work-queue", "create", QUEUE, "--pool", POOL, "--limit", "1", allowed=_KNOWN)
    _prefect(service, "deploy", "--all")
    place_machines(service)
    deployed.write_text(now, encoding="utf-8")


def place_machines(service: Service) -> None:
    """Let the work pool of the settings run the machines of a spread night; without one they stay in ours.

    Raises UsageError where the server does not have it.
    """
    from prefect.client.schemas.actions import DeploymentUpdate  # noqa: PLC0415 - takes seconds
    from prefect.exceptions import ObjectNotFound  # noqa: PLC0415

    pool, image = service.settings.machines_pool, service.settings.machines_image
    if pool is None:
        return
    with reach(service) as client:
        try:
            client.read_work_pool(pool)
        except ObjectNotFound as error:
            raise UsageError(
                f"NIGHTBENCH_MACHINES_POOL is {pool}, and this server has no such work pool: run `source "
                f"{service.folder / 'env'}` and `prefect work-pool create --type docker {pool}`, or unset the variable"
            ) from error
        known = client.read_deployment_by_name(MACHINE_NIGHT)
        variables = dict(known.job_variables) | ({} if image is None else {"image": image})
        there = {"work_pool_name": pool, "work_queue_name": known.work_queue_name, "job_variables": variables}
        client.update_deployment(known.id, DeploymentUpdate.model_validate(there))


def _entries() -> list[dict[str, str]]:
    try:
        return [dict(one) for one in yaml.safe_load(FILE.read_text("utf-8"))["deployments"]]
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{FILE} is not a list of deployments: {error}; correct it, or restore it from git") from error


def _digest(service: Service) -> str:
    """Of what a deployment stores: its entry, the parameters of its flow, and the pool of machines."""
    flows = sorted({one["entrypoint"].partition(":")[0] for one in _entries()})
    content = b"".join(path.read_bytes() for path in (FILE, *(CHECKOUT / flow for flow in flows)))
    suites = sorted(path.name for path in (CHECKOUT / "suites").glob("*.toml"))  # which the form of a run lists
    pool = f"{service.settings.machines_pool} {service.settings.machines_image}"
    return hashlib.sha256(content + "\n".join([*suites, pool]).encode()).hexdigest()


def _are_there(service: Service) -> bool:
    with reach(service) as client:
        known = {one.name for one in client.read_deployments()}
    return {one["name"] for one in _entries()} <= known


def _prefect(service: Service, *arguments: str, allowed: str | None = None) -> None:
    done = subprocess.run(
        own_program("prefect", "--no-prompt", *arguments),
        env=child_environment(service.client_environment()),
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    lines = [line.strip(" │") for line in (done.stdout + done.stderr).splitlines()]
    if done.returncode and not (allowed and any(allowed in line for line in lines)):
        why = " ".join([line for line in lines if line][-LAST_LINES:])
        raise UsageError(f"prefect {' '.join(arguments)} failed: {why}; correct {FILE} and run `nightbench up` again")
