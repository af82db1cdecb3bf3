"""Runs one script of the folder: its time and its output are limited, and a failure is a sentence."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.errors import CloudDeniedError, CloudError, NotAskedError
from infra.clouds.command.replies import shorten
from infra.processes.bounded_command import KilledError, Limits, run_bounded
from infra.processes.environment import NETWORK, child_environment

Script = Literal["offers", "rent", "list", "release"]
# What the scripts get beside what every program gets: our settings for them, and Slurm's.
PASSED = (*NETWORK, "NIGHTBENCH_COMMAND_*", "NIGHTBENCH_COMMAND_TOKEN", "SLURM_*")
REMEDY = "see docs/reference/command-cloud.md"


@dataclass(frozen=True)
class Scripts:
    """A folder with the four executables."""

    folder: Path
    limits: Limits

    def run(self, script: Script, given: Mapping[str, object]) -> str:
        """What a script prints, for this JSON object on its standard input.

        Raises CloudDeniedError where the script is missing or not executable, NotAskedError where it was not started
        for another reason, and CloudError where it failed, so that it is unknown what it did.
        """
        path = self.path(script)
        if not path.is_file():
            raise CloudDeniedError(f"{path} does not exist: set NIGHTBENCH_COMMAND_CLOUD to the folder of the scripts")
        if not os.access(path, os.X_OK):
            raise CloudDeniedError(f"{path} is not executable: run `chmod +x {path}`")
        text = json.dumps(given).encode() + b"\n"
        try:
            ended = run_bounded([str(path)], text, child_environment(also=PASSED), self.limits)
        except KilledError as error:
            raise CloudError(f"{path} was killed: {error}; {REMEDY}") from error
        except OSError as error:
            raise NotAskedError(f"{path} could not be started ({error})") from error
        if ended.exit_code is None:
            raise CloudError(
                f"{path} was killed: it did not exit within {self.limits.seconds:g} s; make it faster, or raise "
                "NIGHTBENCH_COMMAND_TIMEOUT_S"
            )
        if ended.exit_code != 0:
            last = " | ".join((ended.err.strip() or ended.out.strip() or "it printed nothing").splitlines()[-3:])
            raise CloudError(f"{path} exited with {ended.exit_code}: {shorten(last)}")
        return ended.out

    def path(self, script: Script) -> Path:
        """The file of a script."""
        return self.folder / script
