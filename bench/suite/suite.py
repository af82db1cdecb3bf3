"""What a suite file says, as frozen values, and the scenarios it expands to.

Units are the last part of a key: `ready_timeout_s`, `request_rate_per_s`. A suite file is TOML; every mistake in one
is a SuiteError that names the file and the line.
"""

import difflib
import hashlib
import json
import re
import tomllib
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from bench.errors import SuiteError
from bench.frozen import Frozen
from bench.suite.prompts import Prompts

Driver = Literal["meter", "vllm-bench", "vllm-rs-bench"]
Arrivals = Literal["closed", "constant", "poisson", "gamma", "trace"]
Spot = Literal["never", "first", "only"]
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]
REPEATS_MAX = 100
VOLUME_GIB_MAX = 16 * 1024  # the largest volume there is
BUCKET_MINUTES_MAX = 240  # longer than that, a machine costs more than any download
# name@sha256:digest; or the digest is left open, under the name of what will say it (see bench/suite/pins.py).
IMAGE = r"^[a-z0-9][\w./:-]*@(sha256:[0-9a-f]{64}|\{NIGHTBENCH_[A-Z0-9_]+\})$"
SPOT_ENDING = "-spot"  # a spot size is the same machine under another price


class Alternative(Frozen):
    """What to rent where the machine that was asked for cannot be had; no region means any of the suite's."""

    kind: str = Field(min_length=1)
    region: str | None = Field(default=None, min_length=1)


class Machine(Frozen):
    """Where the suite runs; on the local target `kind` is `local` and nothing is rented.

    What stands below `image` says where, for how long and at what price to rent: it moves no number and is in no id.
    """

    kind: str = Field(default="local", min_length=1)
    gpu: str | None = None
    gpu_count: int = Field(default=0, ge=0)
    image: str | None = Field(default=None, min_length=1)  # what it boots: drivers come with it
    alternatives: tuple[Alternative, ...] = Field(default=(), strict=False)  # tried in this order
    regions: tuple[str, ...] = Field(default=(), strict=False)  # tried in this order; none means wherever it is offered
    spot: Spot = "never"  # never, before its on-demand price, or nothing else
    usd_per_hour_max: Usd | None = None  # an offer above it is not taken
    budget_usd: Usd | None = None  # of the night, teardown included
    lease_minutes: int = Field(default=60, ge=1)

    @field_validator("usd_per_hour_max", "budget_usd")
    @classmethod
    def _pays_for_something(cls, usd: float | None) -> float | None:
        if usd == 0:
            msg = "0 rents nothing: say what it may cost, or leave the key out for no limit"
            raise ValueError(msg)
        return usd

    @model_validator(mode="after")
    def _is_for_rent(self) -> Self:
        if self.kind == "local" and (self.alternatives or self.spot != "never"):
            msg = "this computer has no alternatives and no spot price: name the kind of machine to rent"
            raise ValueError(msg)
        return self


def regions_of(machine: Machine) -> tuple[str, ...]:
    """Every region that a suite names, in the order in which they are tried."""
    named = (*machine.regions, *(other.region for other in machine.alternatives if other.region))
    return tuple(dict.fromkeys(named))


# What says where, for how long and at what price to rent.
RENTING = frozenset({"alternatives", "regions", "spot", "usd_per_hour_max", "budget_usd", "lease_minutes"})


def hardware_of(kind: str) -> str:
    """The kind of machine that a size is, whichever way it is paid."""
    return kind.removesuffix(SPOT_ENDING)


class Model(Frozen):
    """The weights: `source` says where they come from, `precision` how they are served.

    `cache` is a folder on the machine that outlives it, a mounted volume say; `cache_volume_gib` has the cloud keep one
    of this size for the model, found again by its name; `cache_bucket_minutes` keeps it in the bucket that the settings
    name, and is how long a night may spend filling that. They move no number and are in no id.
    """

    name: str
    source: str
    precision: str = "bf16"
    cache: str | None = Field(default=None, pattern="^/")  # None: the scratch disk, or wherever our data is
    cache_volume_gib: int | None = Field(default=None, ge=1, le=VOLUME_GIB_MAX)  # None: no volume
    cache_bucket_minutes: int | None = Field(default=None, ge=0, le=BUCKET_MINUTES_MAX)  # None: no bucket; 0: read only

    @model_validator(mode="after")
    def _is_kept_in_one_place(self) -> Self:
        if self.cache_bucket_minutes is not None and (self.cache or self.cache_volume_gib):
            msg = "a model is kept in one place: give cache_bucket_minutes, cache_volume_gib or cache"
            raise ValueError(msg)
        if self.cache_bucket_minutes is not None and not self.source.startswith("hf:"):
            msg = f"only a hub's models are kept in a bucket, not {self.source}: leave cache_bucket_minutes out"
            raise ValueError(msg)
        if self.cache_volume_gib is not None and self.cache is not None:
            msg = "a model is kept in one place: give cache or cache_volume_gib"
            raise ValueError(msg)
        if self.cache_volume_gib is not None and self.source.startswith("path:"):
            msg = f"the weights of {self.source} stay where they are: leave cache_volume_gib out"
            raise ValueError(msg)
        return self


# Where the weights are kept between nights.
KEEPING = frozenset({"cache", "cache_volume_gib", "cache_bucket_minutes"})


class Engine(Frozen):
    """The server software and everything told to it.

    `flags` go to its argv as they stand; `environment` is set for it and for nothing else.
    """

    name: Literal["vllm"] = "vllm"
    version: str
    max_model_len: int = Field(ge=1)
    flags: tuple[str, ...] = Field(default=(), strict=False)
    environment: dict[str, str] = Field(default_factory=dict)
    install: Literal["venv", "container"] = "venv"
    image: str | None = Field(default=None, pattern=IMAGE)  # of the container, always by digest

    @model_validator(mode="after")
    def _container_has_an_image(self) -> Self:
        if (self.install == "container") != (self.image is not None):
            msg = 'an image belongs to a container: give both install = "container" and image, or neither'
            raise ValueError(msg)
        return self


class Workload(Frozen):
    """What is asked of the server: `isl` tokens in, `osl` tokens out, `request_count` times after a warm-up.

    Driven by `concurrency` (closed loop), by `request_rate_per_s` or by a `trace` (open loop), never by two of them.
    """

    isl: int = Field(ge=1)
    osl: int = Field(ge=1)
    request_count: int = Field(ge=1)
    warmup_count: int = Field(default=0, ge=0)
    concurrency: int | None = Field(default=None, ge=1)
    request_rate_per_s: float | None = Field(default=None, gt=0)
    arrivals: Arrivals = "closed"
    burstiness: float | None = Field(default=None, gt=0)  # the shape of gamma gaps: 1 is Poisson, less is burstier
    driver: Driver = "meter"
    workers: int = Field(default=1, ge=1)  # processes that drive the load, a core each
    prompts: Prompts = Prompts()
    trace: str | None = None  # a file of arrival times
    trace_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")  # found when it is not given

    @property
    def total_count(self) -> int:
        """How many requests are sent, warm-up included."""
        return self.warmup_count + self.request_count

    @property
    def context_tokens(self) -> int:
        """What the longest request and its answer need, as far as that can be known."""
        return (self.isl + self.osl) * (self.prompts.turns or 1)

    @model_validator(mode="after")
    def _driven_one_way(self) -> Self:
        is_closed, is_trace = self.arrivals == "closed", self.arrivals == "trace"
        if is_trace != (self.trace is not None) or (self.trace is None and self.trace_sha256 is not None):
            msg = "a trace belongs to trace arrivals: give both, or neither"
            raise ValueError(msg)
        if is_trace and not (self.concurrency is None and self.request_rate_per_s is None):
            msg = "trace arrivals are driven by their file: give neither concurrency nor request_rate_per_s"
            raise ValueError(msg)
        if is_closed and (self.concurrency is None or self.request_rate_per_s is not None):
            msg = "a closed loop is driven by concurrency: give concurrency and no request_rate_per_s"
            raise ValueError(msg)
        if not (is_closed or is_trace) and (self.request_rate_per_s is None or self.concurrency is not None):
            msg = f"{self.arrivals} arrivals are driven by request_rate_per_s: give it and no concurrency"
            raise ValueError(msg)
        if (self.arrivals == "gamma") != (self.burstiness is not None):
            msg = "burstiness belongs to gamma arrivals: give both, or neither"
            raise ValueError(msg)
        if self.concurrency is not None and self.workers > self.concurrency:
            msg = f"{self.workers} workers cannot share a concurrency of {self.concurrency}: give fewer"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _conversations_are_whole(self) -> Self:
        turns = self.prompts.turns
        if turns is None:
            return self
        if self.arrivals != "closed":
            msg = "multi-turn prompts need a closed loop, since a turn waits for the answer before it: give concurrency"
            raise ValueError(msg)
        if self.request_count % turns or self.warmup_count % turns:
            msg = f"conversations are whole: request_count and warmup_count must be multiples of turns ({turns})"
            raise ValueError(msg)
        if self.total_count // turns < (self.concurrency or 0):
            msg = f"{self.total_count // turns} conversations cannot keep {self.concurrency} requests in flight"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _prompts_can_be_sent(self) -> Self:
        if (self.prompts.prefix_tokens or 0) >= self.isl:
            msg = f"each prompt needs a part of its own: prefix_tokens must be below isl ({self.isl})"
            raise ValueError(msg)
        is_plain = self.prompts.kind == "random" and self.prompts.has_exact_length
        if self.driver != "meter" and not (is_plain and self.trace is None):
            msg = f"the {self.driver} driver has random prompts and drawn arrivals only: take the meter for others"
            raise ValueError(msg)
        return self


class LmEval(Frozen):
    """Tasks of EleutherAI's lm-evaluation-harness, asked of each server once its loads are over: in no id.

    `folder` is one on the machine, with task files of one's own and their data beside them.
    """

    tasks: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$")], ...] = Field(strict=False, min_length=1)
    limit: int | None = Field(default=None, ge=1)  # questions of each task, the first ones; None: all
    few_shot: int | None = Field(default=None, ge=0)  # examples before each question; None: as the task says
    folder: str | None = Field(default=None, pattern="^/")
    concurrency: int = Field(default=8, ge=1)  # requests in flight
    timeout_s: float = Field(default=1800.0, gt=0)  # of all tasks together

    @field_validator("tasks")
    @classmethod
    def _are_distinct(cls, tasks: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(tasks)) < len(tasks):
            msg = "a task stands there twice"
            raise ValueError(msg)
        return tasks


class Quality(Frozen):
    """What this suite asks of a measurement before it counts; recorded in every row it judges."""

    min_duration_s: float = Field(default=60.0, gt=0)  # audit.md: a shorter window is a warning
    min_requests_per_slot: float = Field(default=10.0, gt=0)  # InferenceX and MAD use ten
    lm_eval: LmEval | None = None  # None: not asked


class Scenario(Frozen):
    """One point of the matrix: everything that can move a number, and its label."""

    name: str
    machine: Machine
    model: Model
    engine: Engine
    workload: Workload

    @property
    def scenario_id(self) -> str:
        """Hash of everything that can move a number; labels and settings at their default are left out of it."""
        labels: dict[str, Any] = {"name": True, "model": {"name"} | KEEPING, "machine": RENTING}
        labels["workload"] = {"trace": True, "prompts": {"file"}}  # files count by their content
        return _digest(self._as_measured().model_dump(mode="json", exclude_defaults=True, exclude=labels))

    @property
    def server_id(self) -> str:
        """Hash of what one server process is started with: scenarios that share it are measured on one server."""
        others: dict[str, Any] = {"name": True, "workload": True, "model": KEEPING, "machine": RENTING}
        return _digest(self._as_measured().model_dump(mode="json", exclude_defaults=True, exclude=others))

    def on(self, kind: str) -> Self:
        """The scenario on another kind of machine: another measurement, unless only the way of paying differs."""
        if hardware_of(kind) == hardware_of(self.machine.kind):
            return self
        # Which GPU an alternative has is for the machine to say; how many, for the engine's flags.
        machine = self.machine.model_copy(update={"kind": kind, "gpu": None})
        return self.model_copy(update={"machine": machine})

    def _as_measured(self) -> Self:
        kind = hardware_of(self.machine.kind)
        return self.model_copy(update={"machine": self.machine.model_copy(update={"kind": kind})})


def _digest(value: dict[str, Any]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class ScenarioEntry(Workload):
    """One `[[scenarios]]` table of a suite file."""

    name: str

    def workload(self) -> Workload:
        """What is asked of the server, without the label."""
        return Workload.model_validate(self.model_dump(exclude={"name"}))


class Suite(Frozen):
    """A suite file: one model on one engine and machine, and the scenarios to measure on it."""

    name: str
    repeats: int = Field(default=3, ge=1, le=REPEATS_MAX)
    seed: int = 0
    ready_timeout_s: float = Field(default=600.0, gt=0)
    request_timeout_s: float = Field(default=600.0, gt=0)
    run_timeout_s: float = Field(default=3600.0, gt=0)  # one run of one scenario, warm-up included
    machine: Machine = Machine()
    model: Model
    engine: Engine
    quality: Quality = Quality()
    scenarios: tuple[ScenarioEntry, ...] = Field(strict=False, min_length=1)

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        names = [entry.name for entry in self.scenarios]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            msg = f"two scenarios share the name {twice[0]!r}"
            raise ValueError(msg)
        return self

    def expand(self) -> tuple[Scenario, ...]:
        """Every scenario of this suite, in file order."""
        return tuple(
            Scenario(
                name=entry.name,
                machine=self.machine,
                model=self.model,
                engine=self.engine,
                workload=entry.workload(),
            )
            for entry in self.scenarios
        )


def parse_suite(text: str, where: str) -> Suite:
    """Parse a suite file's text; `where` is the file's name for the errors.

    Raises SuiteError naming file, line and key: broken TOML, an unknown or missing key, a value of the wrong kind or
    unit, or a scenario that cannot fit the model's context.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{where}: not TOML: {error}") from error
    try:
        suite = Suite.model_validate(raw)
    except ValidationError as error:
        raise SuiteError(_explain(error, text, where)) from error
    for index, entry in enumerate(suite.scenarios):
        needed = entry.context_tokens
        if needed > suite.engine.max_model_len:
            line = line_of(text, ("scenarios", index, "isl"))
            raise SuiteError(
                f"{where}:{line}: scenario {entry.name!r} needs {_sum_of(entry)} = {needed} tokens of context, "
                f"but engine.max_model_len is {suite.engine.max_model_len}; shorten it or raise max_model_len"
            )
    return suite


def _sum_of(work: Workload) -> str:
    return "isl + osl" if work.prompts.turns is None else f"{work.prompts.turns} turns of isl + osl"


def _explain(error: ValidationError, text: str, where: str) -> str:
    wrong = error.errors()
    # A misspelt key is both unknown and missing; the first helps more.
    first = next((one for one in wrong if one["type"] == "extra_forbidden"), wrong[0])
    path = tuple(first["loc"])
    line = line_of(text, path)
    key = ".".join(str(part) for part in path) or "suite"
    if first["type"] == "extra_forbidden":
        return f"{where}:{line}: unknown key {key!r}{_suggestion(path)}"
    if first["type"] == "missing":
        return f"{where}:{line}: the key {key!r} is missing"
    said = first["msg"].removeprefix("Value error, ")
    unit = _unit_hint(str(path[-1])) if path else ""
    shown = f", got {first['input']!r}" if not isinstance(first["input"], dict) else ""
    return f"{where}:{line}: {key}: {said}{shown}{unit}"


def _suggestion(path: tuple[int | str, ...]) -> str:
    tables: dict[str, type[Frozen]] = {
        "machine": Machine,
        "model": Model,
        "engine": Engine,
        "quality": Quality,
        "scenarios": ScenarioEntry,
    }
    table = tables.get(str(path[0]), Suite) if len(path) > 1 else Suite
    inner: dict[int | str, type[Frozen]] = {"prompts": Prompts, "alternatives": Alternative, "lm_eval": LmEval}
    table = next((inner[part] for part in path[:-1] if part in inner), table)
    close = difflib.get_close_matches(str(path[-1]), table.model_fields, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}? Units are part of a key's name" if close else ""


def _unit_hint(key: str) -> str:
    hints = {
        "_s": "a number of seconds",
        "_per_s": "a number per second",
        "_minutes": "a whole number of minutes",
        "_usd": "a number of US dollars",
        "_gib": "a whole number of GiB",
        "usd_per_hour_max": "a number of US dollars an hour",
    }
    fitting = [hint for ending, hint in sorted(hints.items(), key=lambda item: len(item[0])) if key.endswith(ending)]
    return f" ({key} is {fitting[-1]})" if fitting else ""


def line_of(text: str, path: tuple[int | str, ...]) -> int:
    """The line (from 1) where the key at this path stands, or that of the nearest table above it; 1 if none does."""
    wanted = [str(part) for part in path if isinstance(part, str)]
    place = next((at for at, part in enumerate(path) if isinstance(part, int)), len(path))
    repeated = ".".join(map(str, path[:place]))  # the [[table]] that the number counts; none where it is written inline
    has_headers = re.search(rf"^\s*\[\[\s*{re.escape(repeated)}\s*\]\]", text, re.MULTILINE)
    nth = path[place] if has_headers and place < len(path) else None
    table, found, count = "", 1, -1
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[+\s*([\w.]+)\s*\]+", line)
        if header:
            table = header[1]
            count += table == repeated
        is_ours = not table or nth in (None, count)
        if header and is_ours and table.split(".") in (wanted[:1], wanted[:-1], wanted):
            found = number
        key = re.match(r"\s*([\w-]+)\s*=", line)
        if key and is_ours and [*filter(None, table.split(".")), key[1]] == wanted:
            return number
    # A key of an inline table stands on the line of that table's own key.
    outermost = path[: 2 if len(path) > 1 and isinstance(path[1], int) else 1]
    return line_of(text, path[:-1]) if len(wanted) > 2 and found == line_of(text, outermost) else found  # noqa: PLR2004
