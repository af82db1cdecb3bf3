"""Commands for releases of engines: lock another one, build and remove its environment, list all."""

from typing import Annotated

import typer

from flows.cli.arguments import JsonFlag, examples, read_settings
from flows.show import console

commands = typer.Typer()
engine = typer.Typer(
    name="engine",
    help="Lock, build, list and remove releases of vLLM and llama.cpp, so that a suite's `engine.version` can be any.",
    epilog=examples("nightbench engine list", "nightbench engine list --json"),
    no_args_is_help=True,
)
commands.add_typer(engine)
VersionsArgument = Annotated[
    list[str], typer.Argument(metavar="VERSION...", help="Releases of vLLM, such as 0.31.0, or tags of llama.cpp.")
]


@engine.command("lock")
def lock(versions: VersionsArgument) -> None:
    """Write a lock with hashes for each release, in requirements/engines; a suite may name the release then."""
    from infra.engines.lock_release import lock_release  # noqa: PLC0415

    settings = read_settings()
    for version in versions:
        console.line(str(lock_release(version, settings.cache, console.progress)))


@engine.command("build")
def build(versions: VersionsArgument) -> None:
    """Build the environment of each release that has a lock; otherwise its first night does. Equal files are shared."""
    from bench.engines.versions import llama_cpp_tag  # noqa: PLC0415
    from infra.engines.llama_cpp import ensure_llama_cpp  # noqa: PLC0415
    from infra.engines.releases import lock_of  # noqa: PLC0415
    from infra.engines.venv import ensure_engine  # noqa: PLC0415

    cache = read_settings().cache
    for version, locked in [(version, lock_of(version)) for version in versions]:
        if llama_cpp_tag(version):
            built = ensure_llama_cpp(cache, console.progress, locked).executable
        else:
            built = ensure_engine(locked, cache, console.progress).vllm
        console.line(str(built))


@engine.command("list")
def list_releases(as_json: JsonFlag = False) -> None:
    """List every release that is locked or built on this computer."""
    from infra.engines.environments import releases  # noqa: PLC0415

    rows = [
        {
            "release": one.version,
            "suites name it": one.is_own,
            "lock": None if one.lock is None else str(one.lock),
            "environment": None if one.environment is None else str(one.environment),
        }
        for one in releases(read_settings().cache)
    ]
    if as_json:
        console.print_json(rows)
        return
    console.table(rows, "releases of engines")


@engine.command("remove")
def remove(versions: VersionsArgument) -> None:
    """Delete the environments of these releases; `unfinished` names those whose build was killed. Locks stay."""
    from infra.engines.environments import remove_release  # noqa: PLC0415

    cache = read_settings().cache
    for version in versions:
        for place in remove_release(version, cache, console.progress):
            console.line(f"deleted {place}")
