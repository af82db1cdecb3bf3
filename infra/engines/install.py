"""Install the engine of a suite on this machine: in a virtual environment, or in a container."""

import sys
from collections.abc import Callable, Mapping

from bench.engines import llama_cpp, vllm
from bench.engines.versions import llama_cpp_tag
from bench.errors import EngineBuildError, NoSpaceError
from bench.suite.engine import Engine
from infra.engines.container import ensure_image
from infra.engines.engine_at import EngineAt
from infra.engines.llama_cpp import SOURCE_LOCK, ensure_llama_cpp
from infra.engines.releases import lock_of
from infra.engines.venv import LOCK, ensure_engine
from infra.reporting import Say
from infra.settings import Settings


def ready_engine(engine: Engine, settings: Settings, say: Say, *, is_rented: bool) -> EngineAt:
    """Find or install the engine. `is_rented`: docker may be installed for it.

    An engine in a container is in the suite's image. Else it is the one that the settings name, or our own build.
    """
    if engine.image is not None:
        # The compiled kernels of one image do not fit another.
        homes = settings.cache.absolute() / "engine-homes"
        image = ensure_image(engine.image, homes, say, may_install=is_rented)
        return EngineAt(image.docker, build=None, image=image.name, cache=image.home, name=engine.name)
    return OWN[engine.name](settings, say, engine.version)


def own_engine(settings: Settings, say: Say, version: str | None = None) -> EngineAt:
    """The vLLM that the settings name, else a release in an environment of our own, which is built if it is missing.

    Without a `version`, the release that this checkout locks. Raises EngineBuildError for one that has no lock.
    """
    if settings.vllm_executable is not None:
        return EngineAt(settings.vllm_executable.absolute(), build=None, vllm_rs=settings.vllm_rs)
    lock = LOCK if version is None else lock_of(version)
    built = ensure_engine(lock, settings.cache, say)
    return EngineAt(built.vllm, built.build, vllm_rs=settings.vllm_rs)


def own_llama_cpp(settings: Settings, say: Say, version: str | None = None) -> EngineAt:
    """The server of llama.cpp that the settings name, else a build of ours, which is made if it is missing.

    It is of the tag that `version` names, else of the sources that this checkout locks. Raises EngineBuildError for a
    tag that has no lock.
    """
    if settings.llama_server is not None:
        return EngineAt(settings.llama_server.absolute(), build=None, name=llama_cpp.NAME)
    lock = lock_of(version) if version is not None and llama_cpp_tag(version) else SOURCE_LOCK
    built = ensure_llama_cpp(settings.cache, say, lock)
    return EngineAt(built.executable, built.build, name=llama_cpp.NAME)


# The engines whose `install` may be "venv".
OWN: Mapping[str, Callable[[Settings, Say, str | None], EngineAt]] = {
    vllm.NAME: own_engine,
    llama_cpp.NAME: own_llama_cpp,
}


def main() -> int:
    """Build every engine of our own that is missing, and print where each is."""

    def say(line: str) -> None:
        sys.stderr.write(line + "\n")

    try:
        for name, install in OWN.items():
            sys.stdout.write(f"{name} {install(Settings(), say, None).executable}\n")
    except (EngineBuildError, NoSpaceError) as error:
        say(str(error))
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
