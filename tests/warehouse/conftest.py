import shutil
from pathlib import Path

import pytest

from tests.warehouse.folders import ANSWERS, GPU_SAMPLES, QUIET, Shape, Told, whole_night, write_night, write_run
from warehouse.load import LoadSummary, load_night

NIGHT = "2026-03-01"
OLD, NEW = "0.32.0+cpu", "0.32.0+dev7"
SHAPES = {
    "chat": Shape(failed=10),
    "steady": Shape(arrivals="gamma", burstiness=100.0),
    "long": Shape(requests=3700, tokens=4),
    "peer": Shape(driver="vllm-bench", warmup=0),
    "broken": Shape(tokens=9),
    "never": Shape(tokens=10),
}
TOLD = {
    "chat": Told(gpu=GPU_SAMPLES, host_use=QUIET.model_copy(update={"gpu_telemetry": "nvidia-smi"})),
    "broken": Told("failed", "server", "<b>out of memory</b>", "oom_kv_len", ("3 ranks on 2 GPUs",)),
    "peer": Told(after=ANSWERS.model_copy(update={"logprob_mean": None, "lacking": "the server answered 400"})),
}


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LoadSummary]:
    """A data folder with one loaded night: two drivers, both loops, a failed run and one that never started."""
    data = tmp_path_factory.mktemp("loaded") / "it's [here]"
    night = write_night(data, NIGHT, SHAPES)
    for run in night.runs:
        name = run.scenario.name
        told = TOLD.get(name, Told())
        if name != "never":
            write_run(data, night, run, SHAPES[name], told)
    return data, load_night(data, NIGHT)


def _night_of_version(data: Path, name: str, gap_ms: float, version: str) -> None:
    shapes = {"chat": Shape(gap_ms=gap_ms)}
    record = write_night(data, name, shapes)
    for run in record.runs:
        write_run(data, record, run, shapes["chat"], Told(engine_version=version))
    load_night(data, name)


@pytest.fixture(scope="session")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nights of one engine version, and three of the next, which takes 10 % longer for each token."""
    data = tmp_path_factory.mktemp("versions")
    _night_of_version(data, "2026-03-01", 5.0, OLD)
    _night_of_version(data, "2026-03-04", 5.5, NEW)
    for table in (data / "lake").iterdir():
        for day, like in ((2, 1), (3, 1), (5, 4), (6, 4)) if table.is_dir() else ():
            shutil.copytree(table / f"night=2026-03-0{like}", table / f"night=2026-03-0{day}")
    return data


@pytest.fixture
def one_run(tmp_path: Path) -> tuple[Path, Path]:
    """A data folder with one good run, not loaded yet, and that run's folder."""
    night = whole_night(tmp_path, NIGHT)
    run = night.runs[0]
    return tmp_path, tmp_path / "runs" / NIGHT / run.scenario.scenario_id / "0"
