"""Install the engine of a suite on this machine: in a virtual environment, or in a container."""

from bench.suite.engine import Engine
from infra.engines.container import ensure_image
from infra.engines.server import EngineAt
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
    return own_engine(settings, say)


def own_engine(settings: Settings, say: Say) -> EngineAt:
    """The engine that the settings name, else the one in our own environment, which is built if it is missing."""
    if settings.vllm_executable is not None:
        return EngineAt(settings.vllm_executable.absolute(), build=None, vllm_rs=settings.vllm_rs)
    built = ensure_engine(LOCK, settings.cache, say)
    return EngineAt(built.vllm, built.build, vllm_rs=settings.vllm_rs)
