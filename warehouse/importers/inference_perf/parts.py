"""Files of an inference-perf run that repeat or explain its stages, and are not separate measurements."""

import re
from collections.abc import Iterator

from bench.audit.claim import Claim
from bench.errors import ToldBesideError, UnknownFormatError
from warehouse.importers.format import Format
from warehouse.importers.inference_perf.run import CONFIG, REQUESTS, prefix_of, stages_beside
from warehouse.importers.parsing.document import Document

VALIDATION = "validation.json"
_REPORT = re.compile(r"(?P<prefix>.*)inference-perf\.(?:\w+\.)?stage_(?P<number>\d+)\.ya?ml")
_HEAD = 2000  # bytes in which a configuration names its parts


def recognises(document: Document) -> bool:
    """Whether it is one of these: by name, and by its keys or, for an llm-d report, by its stage beside it."""
    if prefix_of(document, VALIDATION) is not None:
        return document.has_keys("global", "reports")
    if prefix_of(document, CONFIG) is not None:
        return {b"api:", b"data:", b"load:"} <= {line.rstrip() for line in document.data[:_HEAD].splitlines()}
    if prefix_of(document, REQUESTS) is not None:
        return document.is_json_list and {"start_time", "end_time"} <= set(document.first_object)
    return _stage_beside(document) is not None


def _stage_beside(document: Document) -> str | None:
    """The stage that an llm-d report of the tool repeats, if its file is beside it."""
    found = _REPORT.fullmatch(document.path.name)
    if found is None:
        return None
    name = f"{found['prefix']}stage_{found['number']}_lifecycle_metrics.json"
    return name if name in document.siblings else None


def read(document: Document, _form: Format) -> Iterator[Claim]:
    """No claim: raises ToldBesideError beside a stage of its run, UnknownFormatError without one."""
    stage = _stage_beside(document)
    for name in (VALIDATION, CONFIG, REQUESTS):
        prefix = prefix_of(document, name)
        if prefix is not None and stage is None:
            stage = next(stages_beside(document, prefix), None)
    if stage is not None:
        raise ToldBesideError(f"{document.name} belongs to the run of {stage} beside it")
    raise UnknownFormatError(f"{document.name} holds no numbers: pass the stage files of inference-perf's run")
    yield  # as every importer, a generator


FORMAT = Format("inference-perf-parts", 1, recognises, read)
