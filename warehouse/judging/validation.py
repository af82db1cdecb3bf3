"""Validate a pandas frame with great-expectations, in one validation of all that is expected of it."""

import importlib
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from bench.suite.expectations import Expectation, parse_expectations

if TYPE_CHECKING:
    import pandas as pd

EXPECTATIONS = "warehouse.expectations"  # folder of our own suites, a file a table
# Each unexpected row by its place; the Python code that would select these rows is as long as their list.
_WANTED = {"result_format": "COMPLETE", "return_unexpected_index_query": False}
# Four of its expectations use these, for which every process would pay a second of CPU time.
_RARELY_USED = ("scipy.stats", "altair")


class _Later(ModuleType):
    """A module that is imported when something of it is first used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            sys.modules.pop(self.__name__, None)
        return getattr(importlib.import_module(self.__name__), name)


def import_later(name: str) -> None:
    """Let imports of this module, where it is not imported yet, give one that is imported when it is first used.

    importlib's LazyLoader does not serve: an import statement looks at the module's spec, and that is a use for it.
    """
    if name not in sys.modules:
        later = _Later(name)
        later.__spec__ = find_spec(name)
        sys.modules[name] = later


def great_expectations() -> Any:
    """The library, which takes seconds to import the first time; only judging needs it."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read on import: disables usage reports
    if "great_expectations" not in sys.modules:
        for name in _RARELY_USED:
            import_later(name)
    import great_expectations as gx  # noqa: PLC0415

    logging.getLogger("great_expectations").setLevel(logging.WARNING)  # it logs each folder that it creates
    return gx


@contextmanager
def imported_meanwhile() -> Iterator[None]:
    """Import great-expectations in a thread while the block waits for something; it has ended when this returns.

    An error of the import is not raised here: it is raised again where the library is used.
    """
    with ThreadPoolExecutor(1, "import") as pool:
        pool.submit(great_expectations)
        yield


@cache
def built_in() -> Mapping[str, tuple[Expectation, ...]]:
    """Our own expectations by the table or view that they are about."""
    found = sorted(files(EXPECTATIONS).iterdir(), key=lambda file: file.name)
    texts = [(file.name, file.read_text("utf-8")) for file in found if file.name.endswith(".json")]
    suites = [suite for name, text in texts for suite in parse_expectations(text, name)]
    return {suite.name: suite.expectations for suite in suites}


def as_library(expectation: Expectation, meta: Mapping[str, Any] | None = None) -> Any:
    """The same as a value of great-expectations, with `meta` added to its own.

    Raises ExpectationNotFoundError for an unknown type, pydantic's ValidationError for wrong kwargs.
    """
    great_expectations()
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration  # noqa: PLC0415

    given = expectation.model_dump(exclude={"id"}) | {"meta": {**(expectation.meta or {}), **(meta or {})}}
    return ExpectationConfiguration(**given).to_domain_obj()


@cache
def _definition(name: str) -> Any:
    """What turns a frame of this name into a batch; to declare it takes as long as to validate ten expectations."""
    asset = _source().add_dataframe_asset(name)
    return asset.add_batch_definition_whole_dataframe("all")


@cache
def _source() -> Any:
    context = great_expectations().get_context(mode="ephemeral")
    context.variables.progress_bars = cast("Any", {"globally": False})
    return context.data_sources.add_pandas("night")


def validated(
    name: str,
    frame: "pd.DataFrame",
    expectations: Sequence[Expectation],
    parameters: Mapping[str, Any] | None = None,
) -> Any:
    """great-expectations' own result for a frame; in a result's `meta`, `at` is the place of its expectation."""
    batch = _definition(name).get_batch(batch_parameters={"dataframe": frame})
    asked = [as_library(one, {"at": at}) for at, one in enumerate(expectations)]
    suite = great_expectations().ExpectationSuite(name=name, expectations=asked)
    return batch.validate(suite, result_format=cast("Any", _WANTED), expectation_parameters=dict(parameters or {}))


def place_of(result: Any) -> int:
    """The place of the expectation of a result; results have no order."""
    return int(result.expectation_config.meta["at"])


def raised(exception_info: Mapping[str, Any]) -> str | None:
    """The error message of a failed check; great-expectations stores it flat or once per metric."""
    shapes = [exception_info, *(value for value in exception_info.values() if isinstance(value, Mapping))]
    messages = [str(shape.get("exception_message")) for shape in shapes if shape.get("raised_exception")]
    return messages[0] if messages else None
