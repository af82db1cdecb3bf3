"""The settings: the NIGHTBENCH_* environment variables."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator
from pydantic_settings import NoDecode

from bench.machine.names import PREFIX
from bench.time_of_day import parse_time_of_day
from nights.settings import StorageSettings

MACHINE_LOCK = Path("/tmp/nightbench-machine.lock")  # noqa: S108 - the same file for every user, never a link


# A path; None also where the variable is empty, which would be the current folder.
PathSetting = Annotated[Path | None, BeforeValidator(lambda given: given or None)]


class PricedSize(BaseModel):
    """The price and the regions of a size that the cloud does not list, such as one under contract."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    usd_per_hour: float = Field(ge=0)
    regions: tuple[str, ...]


class Settings(StorageSettings):
    """The settings of this process, each from NIGHTBENCH_<NAME> or its default."""

    engine_port: int = Field(default=0, ge=0, le=65535)  # 0: any free port
    vllm_executable: PathSetting = None  # None: the one that `make engine` builds
    llama_server: PathSetting = None  # of llama.cpp; None: the one that `make engines` builds
    lm_eval: PathSetting = None  # the harness's command; None: the environment that is built where a suite needs it
    vllm_rs: PathSetting = None  # None: the one in the engine's own package, else on PATH
    hub_endpoint: str | None = None  # of the model hub; None: the library's own. Its token: HF_TOKEN in the environment
    hub_stall_s: float = Field(default=120.0, gt=0)  # a download that brings almost no byte for so long is retried
    machine_lock: Path = MACHINE_LOCK
    keep_gaps_days: int | None = Field(default=None, ge=1)  # of older nights, dropped from the lake
    min_free_gib: float = Field(default=2.0, ge=0)
    prefix: str = Field(default=PREFIX, pattern="^[a-z0-9]+$")  # of the names of everything that is rented
    capacity_wait_s: float = Field(default=900.0, ge=0)  # how long to wait for a machine while a cloud has no capacity
    capacity_until: str | None = None  # a night waits for one until this time of day, such as `06:00 Europe/Berlin`
    month_usd_max: float | None = Field(default=None, gt=0)  # of leases and what is kept, in a calendar month
    endpoint_api_key: SecretStr | None = None  # of a server that already runs; see infra/engines/secret_environment.py
    # Of runs that are started through a deployment: whoever reaches Prefect's API chooses their parameters.
    # The only targets; also the only URLs with the key. None: this computer and every cloud.
    deployed_targets: Annotated[tuple[str, ...] | None, NoDecode] = None
    spread: bool = False  # give each machine of a deployed night to whichever worker takes it
    machines_pool: str | None = None  # a work pool that runs these machines in the place of ours, as one of containers
    machines_image: str | None = None  # of its containers; None: as the pool says
    deployed_suites: PathSetting = None  # a folder of suites besides the checkout's
    service_port: int = Field(default=4200, ge=1, le=65535)  # of Prefect's server, where `nightbench up` starts it
    pages_port: int = Field(default=4280, ge=1, le=65535)  # of the pages that `nightbench up` serves
    pages_url: str | None = None  # where people open the pages of nights; `nightbench up` sets it for its worker
    notify_urls: Annotated[tuple[SecretStr, ...], NoDecode] = ()  # of apprise; each may hold a password
    heartbeat_url: SecretStr | None = None  # called after each night without rejected or failed runs
    tracker_url: str | None = None  # of a project in the API of GitHub or GitLab, whose issues show what lasts
    tracker_token: SecretStr | None = None
    late_hours: float = Field(default=6.0, gt=0)  # a scheduled night that could begin only so late is skipped
    stale_hours: float = Field(default=36.0, gt=0)  # a suite without newer data than this is reported
    retired_suites: Annotated[tuple[str, ...], NoDecode] = ()  # names of suites of which no newer data is expected
    database_url: SecretStr | None = None  # of Prefect's server, postgresql+asyncpg://...; None: SQLite
    do_token: SecretStr | None = None  # of DigitalOcean, or of a cloud with its API
    do_endpoint: str = "https://api.digitalocean.com"
    do_ca: PathSetting = None  # further trusted certificates, for an endpoint that is not public
    do_image: str | None = None  # boots where the suite names no image; None: the base image for the size's GPUs
    do_sizes: dict[str, PricedSize] = Field(
        default_factory=dict
    )  # sizes that the cloud does not list, with their price
    image_patience_s: float = Field(default=7200.0, gt=0)  # an image of 50 GB takes 50 minutes
    do_ssh_user: str = "root"
    do_ssh_port: int = Field(default=22, ge=1, le=65535)
    do_settle_s: float = Field(default=120.0, ge=0)  # how long its lists may lag: a machine is gone after that
    do_connect_timeout_s: float = Field(default=10.0, gt=0)
    do_read_timeout_s: float = Field(default=60.0, gt=0)
    # Lets each machine delete itself at its deadline; None: the one that `nightbench doctor --fix` stored. Such a token
    # can delete every machine of the team, and every process on the machine can read it. It needs droplet:read and
    # droplet:delete only.
    do_dead_man_token: SecretStr | None = None
    unguarded_usd_max: float = Field(default=0.0, ge=0)  # of a lease whose machine cannot delete itself
    accept_risk: bool = False  # rent at any price where the machine cannot delete itself
    command_cloud: PathSetting = None  # a folder of scripts that rent; see docs/reference/command-cloud.md
    command_token: SecretStr | None = None  # for these scripts, which get all NIGHTBENCH_COMMAND_ variables
    command_timeout_s: float = Field(default=60.0, gt=0)  # for one script; it is killed after that
    command_lag_s: float = Field(default=60.0, ge=0)  # how long `list` may lag behind `rent` and `release`
    command_expires: bool = False  # whether their cloud itself ends a machine at the `expires_at` that `rent` gets
    command_ssh_user: str = "root"
    command_ssh_port: int = Field(default=22, ge=1, le=65535)
    s3_grace_s: float = Field(default=60.0, ge=0)  # the most that uploads may delay the release of a machine
    s3_patience_s: float = Field(default=900.0, ge=0)  # the most that uploads may take after the release
    ssh_key: PathSetting = None  # for your own hosts; None: the first of the usual ones
    ssh_known_hosts: PathSetting = None  # None: ~/.ssh/known_hosts
    ssh_ready_s: float = Field(
        default=600.0, gt=0
    )  # how long a machine with an address may take until it runs commands
    ssh_patience_s: float = Field(default=120.0, gt=0)  # how long a machine in use may be unreachable
    machine_python: str | None = None  # on a machine over SSH, with all packages; None: an environment is built
    git_commit: str | None = None  # the commit, if the code is installed without its git folder

    @field_validator("capacity_until")
    @classmethod
    def _is_a_time_of_day(cls, text: str | None) -> str | None:
        if text is not None:
            parse_time_of_day(text)
        return text

    @field_validator("notify_urls", mode="before")
    @classmethod
    def _split_urls(cls, listed: object) -> object:
        """A variable holds the addresses with spaces between them; a comma may be part of one."""
        return tuple(listed.split()) if isinstance(listed, str) else listed

    @field_validator("deployed_targets", "retired_suites", mode="before")
    @classmethod
    def _split(cls, listed: object) -> object:
        """A variable holds the names with spaces or commas between them."""
        return tuple(listed.replace(",", " ").split()) if isinstance(listed, str) else listed
