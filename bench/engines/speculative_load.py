"""Real prompts for engines that speculate: what a draft model or an n-gram guesses of random tokens says nothing."""

from bench.engines.speculation import speculation_of
from bench.errors import SuiteError
from bench.suite.prompts import Prompts
from bench.suite.source import SuiteSource
from bench.suite.suite import ScenarioEntry, Suite

CODE = "speculation_on_random_prompts"
WRITTEN = Prompts(kind="written", form="text")


def with_real_prompts(suite: Suite, source: SuiteSource) -> Suite:
    """The suite, whose scenarios on a speculating engine have written prompts where they say nothing of prompts.

    Raises SuiteError for one that asks for random tokens and does not say `random_speculation = true`.
    """
    entries = tuple(_with_real_prompts(suite, entry, source) for entry in suite.scenarios)
    return suite.model_copy(update={"scenarios": entries})


def _with_real_prompts(suite: Suite, entry: ScenarioEntry, source: SuiteSource) -> ScenarioEntry:
    engine = entry.engine or suite.engine
    if not _is_random(entry.prompts) or entry.random_speculation or speculation_of(engine.flags) is None:
        return entry
    says_nothing = "prompts" not in entry.model_fields_set or "kind" not in entry.prompts.model_fields_set
    if says_nothing and entry.driver == "meter":
        written = WRITTEN.model_copy(update={"seed": entry.prompts.seed})
        return entry.model_copy(update={"prompts": written})
    raise SuiteError(
        f"{source.where}: scenario {entry.name}: {CODE}: the engine speculates, and how many of its guesses are "
        f"accepted on random tokens says nothing about real text: leave prompts.kind out and use the meter, for "
        f'prompts.kind = "written", or set random_speculation = true'
    )


def _is_random(prompts: Prompts) -> bool:
    return prompts.kind in ("random", "shared-prefix", "multi-turn")
