"""Where we run: the NIGHTBENCH_* environment, and the switches that keep every library from talking to anybody."""

import os
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

# No telemetry leaves the machine. Set before the libraries are imported; a value already set by the user stays.
QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",  # the second UI asks an outside host even with analytics off
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",
    # The default start timeout of the ephemeral API is too short for a busy two-core machine.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "nightbench",
}


def quiet_environment() -> None:
    """Switch off every library's telemetry for this process and its children."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


def _default_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nightbench"


class Settings(BaseSettings):
    """The settings of this process, each from NIGHTBENCH_<NAME> or its default."""

    model_config = SettingsConfigDict(env_prefix="NIGHTBENCH_", frozen=True, extra="ignore")

    data: Path = Path("data")
    cache: Path = Field(default_factory=_default_cache)
    engine_port: int = Field(default=0, ge=0, le=65535)  # 0: any free port
    vllm_executable: Path | None = None  # None: the environment that `make engine` builds
    vllm_rs: Path | None = None  # None: the one in the engine's own package, else on PATH
    hub_endpoint: str | None = None  # of the model hub; None: the library's own. Its token: HF_TOKEN in the environment
    hub_stall_s: float = Field(default=120.0, gt=0)  # a download that brings no byte for so long is killed and retried
    min_free_gib: float = Field(default=2.0, ge=0)
    git_commit: str | None = None  # where the code is installed without its git folder
