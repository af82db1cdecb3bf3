"""Checks whether this computer can run a night."""

import os
import platform
import shutil
import sys
from dataclasses import dataclass

from bench.errors import NightbenchError
from bench.suite.endpoint import API_KEY
from catalog.read import read_catalog
from flows.defaults import DEFAULT, rented
from infra.bootstrap import ledger, nets, unguarded
from infra.clouds.by_name import RENTED, set_up
from infra.engines.endpoint import unused_proxies
from infra.engines.venv import LOCK, engine_place, is_built
from infra.hardware.host_facts import read_host
from infra.leases.nets import exposure
from infra.leases.watchdog import is_watched
from infra.loadgen.truth.run import find_compiler, server_place
from infra.settings import Settings
from infra.storage import store
from infra.storage.store import GIB
from nights.files import unknown_files
from warehouse.lake.bucket.location import lake_name
from warehouse.lake.swap import lost_files

PYTHON_MIN, PYTHON_MAX = (3, 11), (3, 13)
MEMORY_NEEDED_GIB = 4.0  # the small model with 1 GiB of KV cache on CPU takes 2.3 GiB


@dataclass(frozen=True)
class Check:
    """One check: what was found, and what to do if it is not good."""

    what: str
    found: str
    is_good: bool
    advice: str


def examine(settings: Settings) -> list[Check]:
    """Check everything a night needs; the only change is that a missing ledger is created."""
    found = [_python(), _platform(), _memory(), _space(settings), _compiler(settings), _engine(settings)]
    found += [_leases(settings), _nights(settings), _lake(settings)]
    found += [_nets(settings, cloud) for cloud in set_up(settings) or [rented(settings, DEFAULT)]]
    return [*found, _endpoint(settings), _prefect()]


def _python() -> Check:
    is_good = PYTHON_MIN <= sys.version_info[:2] <= PYTHON_MAX
    return Check("python", platform.python_version(), is_good, "use Python 3.11, 3.12 or 3.13")


def _platform() -> Check:
    found = f"{platform.system()} {platform.machine()}"
    is_good = platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64")
    return Check("platform", found, is_good, "use Linux on x86_64 or aarch64: vLLM has no wheels for other platforms")


def _memory() -> Check:
    host = read_host()
    gib = host.memory_bytes / GIB
    found = f"{gib:.1f} GiB, {host.cpu_count} cores, GPUs: {', '.join(host.gpus) or 'none'}"
    return Check(
        "host",
        found,
        gib >= MEMORY_NEEDED_GIB,
        f"suites/local.toml needs {MEMORY_NEEDED_GIB:g} GiB of memory: use a larger host, or --target",
    )


def _space(settings: Settings) -> Check:
    folder = settings.data.absolute()
    while not folder.exists():
        folder = folder.parent
    free_gib = shutil.disk_usage(folder).free / GIB
    is_good = free_gib >= settings.min_free_gib and os.access(folder, os.W_OK)
    return Check(
        "data",
        f"{settings.data.absolute()}: {free_gib:.1f} GiB free",
        is_good,
        f"{settings.min_free_gib:g} GiB must be free and the folder writable: free some space, or pass another --data",
    )


def _engine(settings: Settings) -> Check:
    if settings.vllm_executable is not None:
        is_good = os.access(settings.vllm_executable, os.X_OK)
        return Check(
            "engine",
            str(settings.vllm_executable),
            is_good,
            "not executable: set NIGHTBENCH_VLLM_EXECUTABLE to a vllm command, or unset it",
        )
    engine = engine_place(LOCK, settings.cache)
    found = str(engine.vllm) if is_built(engine) else "not built yet"
    return Check("engine", found, is_built(engine), "run `make engine`; otherwise the first night builds it")


def _compiler(settings: Settings) -> Check:
    built, compiler = server_place(settings.cache), find_compiler()
    found = str(built) if built.exists() else compiler or "none"
    advice = "install a C compiler or set CC: without one the load client cannot be calibrated and no run is accepted"
    return Check("compiler", found, built.exists() or compiler is not None, advice)


def _leases(settings: Settings) -> Check:
    opened = ledger(settings).open_leases()
    orphaned = [lease.lease_id for lease in opened if lease.is_orphan()]
    watched = [lease.lease_id for lease in opened if is_watched(settings.data, lease.lease_id)]
    found = f"{len(opened)} open, {len(watched)} with a watchdog on this computer, {len(orphaned)} orphaned"
    return Check("leases", found, not orphaned, "run `nightbench reap` to release their machines")


def _nights(settings: Settings) -> Check:
    """The nights of the data folder, and the files in them that no part of a night is; those do no harm."""
    found = store.nights(settings.data)
    unknown = [f"{night}/{name}" for night in found for name in unknown_files(store.night_folder(settings.data, night))]
    kept = f"; kept, and neither copied nor loaded: {', '.join(unknown)}" if unknown else ""
    return Check("nights", f"{len(found)} in {settings.data / 'runs'}{kept}", is_good=True, advice="")


def _lake(settings: Settings) -> Check:
    """The lake, and the objects that its bucket lacks."""
    try:
        lost = lost_files()
    except NightbenchError as error:
        return Check("lake", "not read", is_good=False, advice=str(error))
    missing = f"; missing or cut short: {', '.join(lost)}" if lost else ""
    return Check(
        "lake",
        f"{lake_name(settings.data)}{missing}",
        not lost,
        "run `nightbench rebuild` on a computer that has these nights and imports",
    )


def _nets(settings: Settings, cloud: str) -> Check:
    """Which nets stand under a night on a machine of a cloud; a fault where nothing is rented for lack of one."""
    found = nets(settings, cloud)
    down = [f"{net.net} ({net.stands})" for net in found if not net.is_up]
    up = ", ".join(net.net for net in found if net.is_up)
    why = RENTED[cloud].why_no_switch(settings)
    dearest = max(size.usd_per_hour or 0.0 for size in read_catalog().sizes)
    left = f"; {exposure(why_no_switch=why)} (the catalogue's highest price: {dearest:.2f} USD/h)"
    limit = unguarded(settings, cloud)
    is_good = RENTED[cloud].why_closed(settings) is not None or limit is None or limit.usd_max > 0
    advice = f"nothing is rented: {why}, or accept the risk with NIGHTBENCH_ACCEPT_RISK=1"
    return Check("nets", f"{cloud}: {up}{'; not: ' if down else ''}{', '.join(down)}{left}", is_good, advice)


def _endpoint(settings: Settings) -> Check:
    """The API key for a server that already runs, and what its load does not use; most nights need neither."""
    key, proxies = settings.endpoint_api_key, unused_proxies()
    found = f"{API_KEY} is {'set' if key is not None and key.get_secret_value() else 'not set'}"
    through = f"; a load connects directly, not through {', '.join(proxies)}" if proxies else ""
    return Check("endpoint", found + through, is_good=True, advice="")


def _prefect() -> Check:
    api = os.environ.get("PREFECT_API_URL")
    return Check("prefect", api or "a local API server per run", is_good=True, advice="")
