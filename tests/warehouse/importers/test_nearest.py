"""A file of no known format is told which format it is nearest to, and what it lacks."""

import pytest

from bench.errors import UnknownFormatError
from tests.warehouse.importers.reading import FORMATS, claims_of, document_at
from warehouse.importers import FORMATS as IMPORTERS
from warehouse.importers.nearest import MARKS

TWINS = sorted(path for path in FORMATS.glob("*/*") if path.suffix in (".json", ".jsonl") and path.is_file())


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "run.json",
            '{"num_prompts": 3, "duration": 2.0, "completed": 3}',
            "the nearest is vllm-serve, which also has the key request_throughput; known formats: ",
        ),
        ("run.json", '{"version": 1, "run": {}}', "the nearest is llm-d, which also has the key results; "),
        ("run.json", '{"benchmarks": []}', "guidellm, whose keys it has; their values are not of that"),
        ("t.csv", "metric,valu,unit\na,1,s\n", "claims-table, which also has a column value; 'valu' is like 'value'"),
        ("t.csv", "Throughput (tok/s),Machine\n33,a\n", "claims-table, which also has a column model or gpu; "),
        (
            "t.csv",
            "Model,Thruput\nm,33\n",
            "has a column for a metric, such as 'Output token throughput (tok/s)'; ",
        ),
        ("t.csv", "Model,Thruput\nm,33\n", "'Thruput' is like 'Throughput'"),
        ("t.csv", "name,age\na,3\n", "the columns metric and value, or model and one for each metric"),
        ("run.json", '{"a": 1}', "run.json has no known format; known formats: "),
        ("notes.txt", "a text\n", "notes.txt has no known format; known formats: "),
    ],
)
def test_an_unknown_file_is_told_the_nearest_format_and_what_it_lacks(name: str, text: str, said: str) -> None:
    with pytest.raises(UnknownFormatError) as raised:
        claims_of(name, text)

    assert said in str(raised.value)


def test_the_marks_are_those_of_the_twins() -> None:
    seen = set()
    for document in map(document_at, TWINS):
        name = next((each.name for each in IMPORTERS if each.recognises(document)), "")
        if name in MARKS and "prometheus" not in document.name:  # the server's file beside inference-perf's
            assert (document.name, set(MARKS[name]) - document.first_object.keys()) == (document.name, set())
            seen.add(name)

    assert seen == set(MARKS)
