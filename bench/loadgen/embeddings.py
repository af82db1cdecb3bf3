"""What a report of embeddings says: an answer has one event, which is its vector, and no tokens of its own."""

from collections import Counter
from dataclasses import replace

import numpy as np

from bench.loadgen.meter_rows import MeterRows
from bench.metrics import UNKNOWN, Requests, ratio

KIND = "embedding"  # of the event, as the meter names it


def is_of_embeddings(path: str | None) -> bool:
    """Whether the meter's plan asks for vectors."""
    return path == "/v1/embeddings"


def without_tokens(requests: Requests) -> Requests:
    """The same requests as embeddings: no first token, no output tokens; the last token's time is the vector's."""
    unknown = np.full(len(requests), UNKNOWN)
    nowhere = np.full(len(requests), np.nan)
    return replace(requests, first_token_s=nowhere, output_tokens=unknown, event_tokens=unknown)


def vectors_of(rows: MeterRows) -> tuple[int | None, float | None]:
    """The dimensions of most vectors, and the share of vectors that are unusable or have other dimensions.

    None where no request was answered with a vector.
    """
    good = rows.where(rows.is_equal("outcome", "ok"))
    dimensions, usable = good.counts("dimensions").tolist(), good.table["answer_is_valid"].to_pylist()
    if not dimensions:
        return None, None
    most = Counter(dimensions).most_common(1)[0][0]
    wrong = sum(one != most or not is_usable for one, is_usable in zip(dimensions, usable, strict=True))
    return most, ratio(wrong, len(dimensions))
