"""What starts a server of a scenario in a container."""

from pathlib import Path

from bench.suite.engine import Engine
from bench.suite.machine import Machine
from bench.suite.model import Model
from bench.suite.scenario import Scenario
from bench.suite.workload import Workload
from infra.engines.install import ready_engine
from infra.engines.launch import ServerRequest
from infra.settings import Settings
from tests.infra.docker import IMAGE


def quiet(_line: str) -> None:
    return None


def settings(tmp_path: Path) -> Settings:
    return Settings(cache=tmp_path / "cache")


def scenario(image: str = IMAGE, **engine: object) -> Scenario:
    return Scenario(
        name="one",
        machine=Machine(),
        model=Model(name="small", source="generated:small?seed=0"),
        engine=Engine(version="0.32.0", max_model_len=4096, install="container", image=image, **engine),  # type: ignore[arg-type] # any
        workload=Workload(isl=8, osl=8, concurrency=1, request_count=1),
    )


def what(tmp_path: Path, asked: Scenario) -> ServerRequest:
    (tmp_path / "machines" / tmp_path.name).mkdir(parents=True, exist_ok=True)
    return ServerRequest(
        engine=ready_engine(asked.engine, settings(tmp_path), quiet, is_rented=False),
        scenario=asked,
        model=tmp_path,
        machine=tmp_path / "machines" / tmp_path.name,
        log=tmp_path / "logs" / "server.log",
        lease_id=tmp_path.name,
        port=0,
        ready_timeout_s=300.0,
    )
