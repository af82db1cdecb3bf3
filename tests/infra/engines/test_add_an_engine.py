"""The page that adds an engine, followed literally: it is planned, refused by its rule, served, and read."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from infra.processes import detached
from tests.infra.docker import Docker

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "add-an-engine.md").read_text("utf-8")
# What a night does with an engine, step by step, in a folder where the changed packages are the ones imported.
STEPS = """\
import json, sys
from pathlib import Path

from bench.engines.by_name import sample
from bench.errors import NightbenchError
from catalog.engine_check import refusals
from infra.engines import server, server_facts
from infra.engines.install import ready_engine
from infra.engines.launch import ServerRequest
from infra.loadgen.suite_file import make_night
from infra.settings import Settings

here, lease = Path.cwd(), sys.argv[1]
night = make_night(Path("tiny.toml"), "digitalocean", poc=False, is_draft=True)
scenario = night.runs[0].scenario
engine = ready_engine(scenario.engine, Settings(cache=here / "cache"), lambda line: None, is_rented=False)
(here / "machine").mkdir()


def start(**environment):
    asked = scenario.model_copy(update={"engine": scenario.engine.model_copy(update={"environment": environment})})
    request = ServerRequest(engine, asked, here, here / "machine", here / "server.log", lease, 0, 30.0)
    return server.bring_up(request, lambda line: None)


running = start()
found = server_facts.look(running)
live = sample(engine.module, server.metrics(running))
server.stop(running)
try:
    start(TRUTH_FAULT="oom_at_start")
except NightbenchError as error:
    failure = error.failure
print(json.dumps({
    "refused": refusals(night.suite, night.runs, "digitalocean"),
    "facts": [found.engine_version, found.served_model, found.max_model_len, found.kv_cache_tokens],
    "argv": found.argv[-2:],
    "live": live,
    "failure": failure,
}))
"""


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_one_file_a_name_and_a_row_are_enough_to_plan_serve_and_read_a_new_engine(tmp_path: Path) -> None:
    for package in ("bench", "catalog"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (module, names), (row,), (suite,) = (_blocks(language) for language in ("python", "csv", "toml"))
    (tmp_path / "bench" / "engines" / "tinyserve.py").write_text(module)
    by_name = tmp_path / "bench" / "engines" / "by_name.py"
    text, count = re.subn(r"^_FILES: .*\n", names, by_name.read_text("utf-8"), flags=re.MULTILINE)
    by_name.write_text(text.replace("sglang, vllm\n", "sglang, tinyserve, vllm\n"))
    with (tmp_path / "catalog" / "engine_rules.csv").open("a") as rules:
        rules.write(row)
    (tmp_path / "tiny.toml").write_text(suite)
    docker = Docker(tmp_path / "docker", tmp_path / "docker-bin")

    argv = [sys.executable, "-c", STEPS, tmp_path.name]
    environment = {**os.environ, "PATH": f"{docker.folder}:{os.environ['PATH']}"}
    try:
        done = subprocess.run(
            argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
    finally:
        detached.end(detached.marked(tmp_path.name), patience_s=0.1)

    assert count == 1
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    needs = "the tensor-parallel size must divide the number of attention heads"
    assert found["refused"] == [f"32 attention heads on 3 GPUs: {needs} (heads_per_gpu)"]
    assert found["facts"] == ["0.32.0", "llama", 4096, 524288]
    assert found["argv"] == ["--tensor-parallel-size", "3"]
    live = found["live"]  # after the one request of its start
    assert (live.keys(), live["requests_running"]) == ({"requests_running", "prompt_tokens", "generation_tokens"}, 0)
    assert min(live["prompt_tokens"], live["generation_tokens"]) > 0
    assert found["failure"] == "oom_kv"
    assert docker.containers == []
