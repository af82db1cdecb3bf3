"""A scenario of embeddings: what it needs, and what it cannot have."""

from typing import Any

import pytest
from pydantic import ValidationError

from bench.plan import describe_load
from bench.suite.workload import Workload
from tests.bench.builders import CLOSED, with_workload

EMBEDS = {"task": "embed", "isl": 64, "request_count": 40, "concurrency": 4}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"osl": 8}, "an embedding has no output tokens: leave osl out"),
        ({"driver": "vllm-bench"}, "embeddings need the meter, and have no text: leave driver out"),
        ({"adapters": ("news",)}, "leave adapters out"),
        ({"prompts": {"form": "chat"}}, "embeddings are of prompts as tokens or text"),
        ({"prompts": {"kind": "multi-turn", "turns": 2}}, "of the kinds random, shared-prefix, sharegpt, written"),
    ],
)
def test_what_embeddings_cannot_have_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Workload.model_validate(EMBEDS | changes)


def test_embeddings_have_a_server_and_an_id_of_their_own() -> None:
    embedding = with_workload(Workload.model_validate(EMBEDS))
    text = with_workload(CLOSED)

    assert describe_load(embedding) == "64 in, embedded, concurrency 4"
    assert embedding.server_id != text.server_id
    assert with_workload(Workload.model_validate(EMBEDS | {"task": "generate", "osl": 1})).scenario_id not in {
        embedding.scenario_id,
        text.scenario_id,
    }
