"""The environment variables that switch off the telemetry of every library."""

import os

# Set before the libraries are imported; a value that the user has set stays.
QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",  # the second UI sends requests to an outside host even with analytics off
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "AWS_EC2_METADATA_DISABLED": "true",  # without keys, boto3 would try a cloud's metadata address and wait
    # The default start timeout of the ephemeral API is too short for a busy two-core machine.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "nightbench",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",  # what is logged after the end of a run is of no run
}


def quiet_environment() -> None:
    """Switch off every library's telemetry for this process and its children."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
